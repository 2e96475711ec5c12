"""Jobs: found again by their configuration, resumed exactly, failing alone."""

import csv
import hashlib
import json
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import pytest
import torch
from pydantic import TypeAdapter

from graphwright.baselines import BASELINES, BarycentreSettings, NearestSettings
from graphwright.experiments import Configuration, InProcess, Job, Scale, State, Store, read_grid
from graphwright.experiments import work as work_module
from graphwright.experiments.job import FORMAT, JobBusyError, lock_job, read_json_object
from graphwright.experiments.table import markdown, measure, rows_of
from graphwright.experiments.work import aligned_by_J, attempt, perform, run_jobs, seconds_per_sample, with_threads
from graphwright.files import LOCK, PAUSE, is_locked
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.model import load_model
from graphwright.metrics import METRICS
from graphwright.settings import Loss, Matching, Model, Run, Train
from graphwright.settings.choices import TASKS
from graphwright.tasks.coloring import ColoringTask
from graphwright.tasks.molecules import FingerprintTask
from graphwright.tasks.spectra import SpectrumTask
from graphwright.training import loop, train
from graphwright.training.log import read_log
from tiny import tiny_settings

STEPS = {"steps": 4, "validate_every": 2, "validation_samples": 4, "checkpoint_minutes": 1e-9}
RUN = tiny_settings(model={"dropout": 0.2}, train=STEPS)
JOB = Job(RUN, samples=5)


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    """The folder of a finished job."""
    folder = tmp_path_factory.mktemp("done") / "job"
    perform(JOB, folder)
    return folder


def test_a_key_is_of_everything_that_changes_the_result_and_of_nothing_else():
    def key(**train):
        return Job(tiny_settings(model={"dropout": 0.2}, train=STEPS | train), samples=5).key

    assert key() == JOB.key
    assert key(workers=2, log_every=7, checkpoint_minutes=5.0) == JOB.key
    others = {key(seed=1), key(steps=5), key(threads=2), Job(RUN, samples=6).key, Job(RUN, 5, "nearest").key}
    assert len(others | {JOB.key}) == 6


def test_settings_of_other_matchings_change_no_key():
    def key(kind, **matching):
        return Job(tiny_settings(matching={"kind": kind, **matching}, train=STEPS), samples=5).key

    for kind in ("mirror", "conditional_gradient", "labels", "order"):
        assert key(kind, temperature=0.5, dimension=16, plan="rounded") == key(kind)
    assert key("learned", tau=1.0, inner=7, outer=9, steps=3, starts=2) == key("learned")
    assert key("learned", temperature=0.5) != key("learned")
    assert key("mirror", inner=7) != key("mirror") != key("mirror", starts=2)
    assert key("conditional_gradient", starts=2) != key("conditional_gradient")
    assert key("conditional_gradient", inner=7) == key("conditional_gradient")


DEFAULTS = (4, "641911bc83c2ac1c")
"""The format and the SHA-256 of every default setting."""


def test_a_changed_default_comes_with_a_new_format():
    """Keys leave defaults out: under one format the same key must never mean two values."""
    sections = [Model(), Matching(), Loss(), Train(minutes=1), *(TASKS[kind].settings_class() for kind in TASKS)]
    defaults = {type(each).__name__: TypeAdapter(type(each)).dump_python(each, mode="json") for each in sections}
    sha = hashlib.sha256(json.dumps(defaults, sort_keys=True).encode()).hexdigest()[:16]
    assert (FORMAT, sha) == DEFAULTS, (
        "Default settings are not those of this format. If one has changed, raise experiments.job.FORMAT; if one "
        f"is new and its default does what was done before it, do not. Then write {sha} here."
    )


def test_a_new_setting_at_its_default_changes_no_key():
    @dataclass(frozen=True)
    class NewLoss(Loss):
        invented: float = 0.5

    class NewTask(ColoringTask):
        invented: int = 3

    def wider(**given):
        loss, task = NewLoss(**asdict(RUN.loss), **given), NewTask(**RUN.task.model_dump())
        return RUN.model_copy(update={"loss": loss, "task": task})

    assert replace(JOB, run=wider()).key == JOB.key
    assert replace(JOB, run=wider(invented=0.7)).key != JOB.key


def test_kinds_of_task_are_told_apart_though_each_is_its_own_default():
    runs = [Run(task=TASKS[kind].settings_class()) for kind in TASKS]
    assert len({Job(run, 5, "nearest").key for run in runs} | {Job(run, 5).key for run in runs}) == 2 * len(runs)


@pytest.mark.parametrize("task", [FingerprintTask, SpectrumTask])
def test_a_key_is_of_the_contents_of_a_data_file(task, tmp_path):
    def key(path):
        return Job(Run(task=task(data=str(path))), 5).key

    file, folder = tmp_path / "own.smi", tmp_path / "prepared"
    folder.mkdir()
    found = []
    for path in (file, folder / "manifest.json"):
        found.append(key(path if path is file else folder))
        for text in ("CCO", "CCN and more"):
            path.write_text(text)
            found.append(key(path if path is file else folder))
    assert len(set(found)) == 6
    file.write_text("CCO")
    assert key(file) == found[1]


def test_a_key_is_of_an_untrained_methods_own_settings(monkeypatch):
    plain, barycentre = Job(RUN, 5, "nearest"), Job(RUN, 5, "barycentre")
    assert plain.key == Job(RUN, 5, "nearest", references=NearestSettings().references).key
    assert barycentre.identity()["settings"] == asdict(BarycentreSettings())
    before = barycentre.key
    monkeypatch.setitem(BASELINES, "barycentre", partial(BarycentreSettings, kept=3))
    assert barycentre.key != before


def test_an_untrained_method_knows_only_the_task_of_a_run():
    other = tiny_settings(train={"seed": 3, "steps": 9})
    assert Job(RUN, 5, "nearest").key == Job(other, 5, "nearest").key
    assert Job(RUN, 5, "nearest", references=4).key != Job(RUN, 5, "nearest").key
    assert Job(tiny_settings(task={"seed": 1}), 5, "nearest").key != Job(RUN, 5, "nearest").key


def test_the_cost_of_a_sample_is_by_the_clock_of_the_run_and_without_validations(tmp_path):
    """A busy machine's wall would put a run further right in the figure of quality against cost."""
    lines = [(50, 10.0), (100, 20.0), (150, 36.0), (200, 46.0)]
    write = "".join(
        json.dumps({"step": step, "seconds": seconds, "loss": 1.0, "samples_per_second": 1.0}) + "\n"
        for step, seconds in lines
    )
    (tmp_path / "log.jsonl").write_text(write)
    assert seconds_per_sample(tmp_path, 64) == pytest.approx(10 / (50 * 64))


def test_a_record_says_how_its_figures_came_about(done):
    record = json.loads((done / "record.json").read_text())
    assert record["key"] == JOB.key
    assert record["settings"]["train"]["seed"] == 0
    assert record["training"]["steps"] == 4
    assert record["training"]["seconds"] > 0
    assert record["training"]["processor_seconds"] > 0
    assert record["training"]["seconds_per_sample"] == seconds_per_sample(done, RUN.train.batch_size) > 0
    assert record["training"]["best_validation"] == load_model(str(done)).facts["progress"]["best"]
    validated = [each for each in read_log(done / "log.jsonl") if "isomorphic" in each]
    assert validated
    assert [each["seconds"] for each in record["training"]["validations"]] == [
        each["seconds"] for each in validated
    ]
    assert {"commit", "data_sha256", "hardware", "torch", "test", "evaluation_seconds"} <= set(record)
    assert record["test"]["samples"] == 5


def test_the_figures_of_every_sample_have_the_means_of_the_record(done):
    test = json.loads((done / "record.json").read_text())["test"]
    rows = list(csv.DictReader((done / "samples.csv").read_text().splitlines()))
    assert [row["sample"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert {"edit", "aligned_edit", "isomorphic", "aligned_exact"} <= set(METRICS.names())
    for metric in METRICS.entries():
        if metric.name == "attribute_error":  # regions of a picture have no numbers
            assert metric.name not in rows[0]
            continue
        mean = sum(float(row[metric.name]) for row in rows) / 5
        assert metric.scale * mean == pytest.approx(test[metric.name])


def test_a_finished_job_is_left_alone(done, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("it was done before")

    monkeypatch.setattr(work_module, "train", refuse)
    perform(JOB, done)


def test_an_interrupted_job_goes_on_to_the_same_result(done, tmp_path, monkeypatch):
    store, calls = Store(tmp_path), []
    folder, step = store.folder(JOB), loop.Session._step

    def interrupted(session, batches):
        calls.append(session)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(session, batches)

    monkeypatch.setattr(loop.Session, "_step", interrupted)
    outcomes = list(run_jobs(InProcess(), [JOB, Job(RUN, samples=6)], store, lambda: False))
    assert [outcome.state for outcome in outcomes] == [State.INTERRUPTED]
    assert store.state(JOB) is State.INTERRUPTED
    between = read_json_object(folder / "processor.json")["seconds"]
    assert len(list(run_jobs(InProcess(), [JOB], store, lambda: False))) == 1
    assert store.state(JOB) is State.DONE
    assert len(calls) == 2 + 1 + 2  # two steps, the interrupt, and only the two that were left
    assert store.record(JOB)["training"]["processor_seconds"] > between
    one, other = (checkpoints.load(each / "checkpoints" / "last").tensors for each in (done, folder))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert (done / "samples.csv").read_text() == (folder / "samples.csv").read_text()


def test_nothing_new_is_begun_once_stopped(tmp_path):
    assert list(run_jobs(InProcess(), [JOB], Store(tmp_path), lambda: True)) == []
    assert Store(tmp_path).state(JOB) is State.MISSING


def test_a_failure_is_put_on_record_and_tried_again(tmp_path, monkeypatch):
    store = Store(tmp_path)

    def fail(*_, **__):
        raise RuntimeError("no good")

    with monkeypatch.context() as patch:
        patch.setattr(work_module, "train", fail)
        outcomes = list(run_jobs(InProcess(), [JOB, Job(RUN, samples=6)], store, lambda: False))
    assert [(each.state, each.reason) for each in outcomes] == [(State.FAILED, "RuntimeError: no good")] * 2
    assert store.state(JOB) is State.FAILED
    assert store.failure(JOB) == "RuntimeError: no good"
    assert "in fail" in read_json_object(store.folder(JOB) / "failure.json")["traceback"]
    assert attempt(JOB, store.folder(JOB), 0).state is State.DONE
    assert store.failure(JOB) is None
    assert store.state(JOB) is State.DONE


LOCKING = """
import sys
from pathlib import Path
from graphwright.experiments.job import lock_job
with lock_job(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_folder_belongs_to_one_process_until_that_dies(tmp_path):
    store = Store(tmp_path)
    folder = store.folder(JOB)
    command = [sys.executable, "-c", LOCKING, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "locked\n"
        assert store.state(JOB) is State.RUNNING
        outcome = attempt(JOB, folder, 0)
        assert (outcome.state, "process " in outcome.reason) == (State.RUNNING, True)
        with pytest.raises(JobBusyError, match=r"process \d+ is at work in"), lock_job(folder):
            pass
        other.kill()
    assert not is_locked(folder)
    assert store.state(JOB) is State.MISSING


def test_who_only_looks_does_not_keep_a_job_from_starting(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    (tmp_path / LOCK).touch()
    with (tmp_path / LOCK).open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        end = threading.Timer(PAUSE, fcntl.flock, (looking, fcntl.LOCK_UN))
        end.start()
        with lock_job(tmp_path):
            assert is_locked(tmp_path)
        end.join()


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / "record.json").write_text('{"key": ')
    with pytest.raises(ValueError, match=r"record\.json is damaged .*: delete its folder"):
        read_json_object(tmp_path / "record.json")
    (tmp_path / "record.json").write_text("[]")
    with pytest.raises(ValueError, match="an object was expected"):
        read_json_object(tmp_path / "record.json")
    assert read_json_object(tmp_path / "nothing.json") is None


def test_an_untrained_method_leaves_the_same_kind_of_record(tmp_path):
    job = Job(RUN, samples=5, baseline="nearest", references=10)
    perform(job, tmp_path)
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["baseline"]["name"] == "nearest"
    assert record["baseline"]["settings"]["references"] == 10
    assert record["baseline"]["seconds"] > 5 * record["baseline"]["seconds_per_prediction"] > 0
    assert record["test"]["samples"] == 5
    assert record["settings"]["task"]["capacity"] == 4
    rows = list(csv.DictReader((tmp_path / "samples.csv").read_text().splitlines()))
    assert "aligned_edit" not in rows[0]
    assert sum(float(row["edit"]) for row in rows) / 5 == pytest.approx(record["test"]["edit"])


def test_a_table_says_how_many_samples_an_untrained_method_looks_at(tmp_path):
    job, store = Job(RUN, samples=5, baseline="nearest", references=10), Store(tmp_path)
    perform(job, store.folder(job))
    found = measure(Configuration("Coloring 10", "Nearest neighbour", "", False, 0.0, (job,)), store)
    assert found.training["references"] == 10
    grid = read_grid("table1")
    assert "| none; looks at 10 samples, " in markdown(grid, Scale.CPU, rows_of(grid, [found]))


def test_an_unknown_untrained_method_is_refused(tmp_path):
    outcome = attempt(Job(RUN, samples=5, baseline="oracle"), tmp_path, 0)
    assert outcome.state is State.FAILED
    assert "no baseline 'oracle'" in outcome.reason


def test_all_models_are_aligned_by_J_whatever_they_were_trained_with(tmp_path):
    loss = {"objective": "J_b", "divergence": "kl", "order": "target_first", "presence": 2.0, "adjacency": 1.0}
    train(tiny_settings(loss=loss, train={"steps": 1}), tmp_path)
    aligned = aligned_by_J(load_model(str(tmp_path))).run.loss
    assert (aligned.objective, aligned.divergence, aligned.order) == ("J", "cross_entropy", "prediction_first")
    assert (aligned.presence, aligned.adjacency) == (1.0, 0.5)


@pytest.mark.parametrize(("own", "threads", "expected"), [(0, 3, 3), (2, 3, 2), (0, 0, 1)])
def test_an_untrained_method_keeps_to_its_threads(own, threads, expected, tmp_path, monkeypatch):
    def ask(_):
        raise RuntimeError(f"{torch.get_num_threads()} threads")

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(work_module, "evaluate_untrained", ask)
    try:
        with pytest.raises(RuntimeError, match=f"{expected} threads"):
            perform(Job(tiny_settings(train={"threads": own}), 5, "nearest"), tmp_path, threads)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_threads_are_filled_in_only_where_a_run_leaves_them_open():
    assert with_threads(tiny_settings(train={"threads": 0}), 3).train.threads == 3
    assert with_threads(tiny_settings(train={"threads": 2}), 3).train.threads == 2
