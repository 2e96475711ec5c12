"""Records that were committed beside a page are finished jobs on another machine."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graphwright.experiments import Configuration, Job, State, Store, take_over
from graphwright.experiments.archive import PACKED, RECORDS, pack_records
from graphwright.experiments.job import lock_job
from graphwright.experiments.table import measure
from graphwright.experiments.work import perform
from tiny import tiny_settings

STEPS = {"steps": 2, "validate_every": 2, "validation_samples": 4}
JOB = Job(tiny_settings(train=STEPS), samples=5)
ASKED = Job(JOB.run, 5, "nearest", references=4)


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """A page's folder with the records of a trained and of an untrained job."""
    root = tmp_path_factory.mktemp("first")
    store = Store(root / "runs")
    for job in (JOB, ASKED):
        perform(job, store.folder(job))
    pack_records([JOB.key, ASKED.key], store, root / "page")
    return root / "page"


def measured(job: Job, store: Store):
    return measure(Configuration("column", "method", "series", True, 0.0, (job,)), store)


def test_a_finished_job_is_taken_over_with_its_figures_and_intervals(page, tmp_path):
    first, second = Store(page.parent / "runs"), Store(tmp_path)
    assert take_over(page.parent, second) == 2
    for job in (JOB, ASKED):
        assert second.state(job) is State.DONE
        assert second.record(job) == first.record(job)
        assert measured(job, second) == measured(job, first)
    assert take_over(page.parent, second) == 0


def test_without_the_samples_there_are_means_and_no_intervals(page, tmp_path):
    records = tmp_path / RECORDS
    records.mkdir()
    (records / "any.json").write_bytes((page / RECORDS / f"{JOB.key}.json").read_bytes())
    store = Store(tmp_path / "runs")
    assert take_over(tmp_path, store) == 1
    whole, means = measured(JOB, Store(page.parent / "runs")), measured(JOB, store)
    assert means.figures.keys() == whole.figures.keys()
    for name, figure in means.figures.items():
        assert figure == replace(whole.figures[name], interval=None, mean=pytest.approx(figure.mean))


def test_a_record_counts_for_what_its_settings_mean_today(page, tmp_path):
    """Not for what it was called."""
    records = tmp_path / RECORDS
    records.mkdir()
    record = json.loads((page / RECORDS / f"{JOB.key}.json").read_text())
    record["settings"]["train"]["seed"] = 7
    (records / f"{JOB.key}.json").write_text(json.dumps(record))
    store = Store(tmp_path / "runs")
    assert take_over(tmp_path, store) == 1
    assert store.state(JOB) is State.MISSING
    other = Job(JOB.run.model_copy(update={"train": JOB.run.train.model_copy(update={"seed": 7})}), 5)
    assert store.record(other)["key"] == other.key


@pytest.mark.parametrize("change", [{"format": 3}, {"settings": {"train": {"invented": 1}}}])
def test_records_of_other_times_count_for_nothing(page, tmp_path, change):
    records = tmp_path / RECORDS
    records.mkdir()
    record = json.loads((page / RECORDS / f"{JOB.key}.json").read_text())
    (records / "any.json").write_text(json.dumps(record | change))
    assert take_over(tmp_path, Store(tmp_path / "runs")) == 0


def test_a_page_keeps_no_records_of_others_and_the_same_samples_are_the_same_bytes(page, tmp_path):
    store, folder = Store(page.parent / "runs"), tmp_path / "page"
    pack_records([JOB.key, ASKED.key], store, folder)
    packed = f"{JOB.key}{PACKED}"
    assert (folder / RECORDS / packed).read_bytes() == (page / RECORDS / packed).read_bytes()
    pack_records([ASKED.key], store, folder)
    assert {path.name.partition(".")[0] for path in (folder / RECORDS).iterdir()} == {ASKED.key}


def test_what_another_process_is_taking_over_is_left_to_it(page, tmp_path):
    store = Store(tmp_path)
    store.folder(JOB).mkdir(parents=True)
    with lock_job(store.folder(JOB)):
        assert take_over(page.parent, store) == 1
        assert store.state(JOB) is State.RUNNING
        assert store.state(ASKED) is State.DONE
    assert take_over(page.parent, store) == 1


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="nowhere is no folder of records"):
        take_over(tmp_path / "nowhere", Store(tmp_path))
