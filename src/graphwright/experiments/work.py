"""A job done: trained or asked, evaluated, and put on record; and what becomes of jobs, whoever does them."""

from __future__ import annotations

import csv
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from traceback import format_exc
from typing import Any

import numpy as np
import torch

from graphwright import __version__
from graphwright.baselines import predict_baseline
from graphwright.experiments.job import (
    FAILURE,
    FORMAT,
    RECORD,
    SAMPLES,
    Job,
    JobBusyError,
    State,
    Store,
    lock_job,
    read_json_object,
)
from graphwright.files import replacing, write_json
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference import evaluate_saved
from graphwright.inference.decoders import PLAIN
from graphwright.inference.export import commit, hardware, run_record
from graphwright.inference.model import SavedModel, load_model
from graphwright.metrics import METRICS, Report, evaluate_graphs
from graphwright.metrics.metric import Values
from graphwright.parallel import Engine, Lost, Stopped
from graphwright.settings import Loss, Run
from graphwright.tasks import task_of
from graphwright.training import train
from graphwright.training.log import VALIDATION, read_log
from graphwright.training.processes import threads as torch_threads

PROCESSOR = "processor.json"
"""The processor time of a run's sessions so far."""


@dataclass(frozen=True)
class Done:
    """What is left of a job: its record, and the figures of every sample."""

    record: dict[str, Any]
    report: Report


def perform(job: Job, folder: Path, threads: int = 0) -> None:
    """Do a job in its folder, or go on with it, and write its record; a finished one is left alone.

    threads: torch threads where the run leaves their number open. An exception is put on record, and raised.
    """
    with lock_job(folder):
        if (folder / RECORD).exists():
            return
        (folder / FAILURE).unlink(missing_ok=True)
        try:
            done = _train_and_evaluate(job, folder, threads) if job.baseline is None else _ask(job, threads)
        except Exception as error:
            facts = {"error": f"{type(error).__name__}: {error}", "traceback": format_exc()}
            write_json(folder / FAILURE, facts)
            raise
        _write_samples(folder / SAMPLES, done.report)
        # Last: a record says that everything else is there.
        write_json(folder / RECORD, {"key": job.key, "format": FORMAT, "samples": job.samples, **done.record})


def _train_and_evaluate(job: Job, folder: Path, threads: int) -> Done:
    resume = checkpoints.exists(folder / "checkpoints" / "last")
    if not resume:
        (folder / PROCESSOR).unlink(missing_ok=True)
    with _processor_time(folder):
        trained = train(with_threads(job.run, threads), folder, resume=resume)
    model = load_model(str(folder))
    begun = perf_counter()
    # What was learned, slot by slot: other decoders would hide the difference between two ways to learn.
    result = evaluate_saved(aligned_by_J(model), at_most=job.samples, decode=PLAIN)
    seconds = perf_counter() - begun
    progress = trained.progress
    training = {
        "steps": progress.step,
        "seconds": progress.seconds,
        "processor_seconds": _processor_seconds(folder),
        "seconds_per_sample": seconds_per_sample(folder, job.run.train.batch_size),
        "validation_metric": job.run.train.metric,
        "best_validation": model.facts["progress"]["best"],
        "validation": model.facts["progress"]["metrics"],
        "validations": validations(folder),
    }
    record = run_record(model, result.data) | {"training": training, "evaluation_seconds": seconds}
    return Done(record | {"test": result.figures()}, result.evaluation.report)


@contextmanager
def _processor_time(folder: Path) -> Iterator[None]:
    """Add what this process works to that of the sessions before, without data workers and what a kill cut off."""
    begun = process_time()
    try:
        yield
    finally:
        write_json(folder / PROCESSOR, {"seconds": _processor_seconds(folder) + process_time() - begun})


def _processor_seconds(folder: Path) -> float:
    return float((read_json_object(folder / PROCESSOR) or {"seconds": 0.0})["seconds"])


def _ask(job: Job, threads: int) -> Done:
    with torch_threads(job.run.train.threads or threads):
        evaluated = evaluate_untrained(job)
    return Done(evaluated.record, evaluated.report)


def with_threads(run: Run, threads: int) -> Run:
    """The run with its number of threads filled in, if it leaves it open."""
    if run.train.threads:
        return run
    return run.model_copy(update={"train": run.train.model_copy(update={"threads": threads})})


def aligned_by_J(model: SavedModel) -> SavedModel:
    """The model with the paper's objective and weights in its settings, so that all are aligned by the same one.

    What a model was trained with would otherwise also decide how it is measured.
    """
    return replace(model, run=model.run.model_copy(update={"loss": Loss()}))


def seconds_per_sample(folder: Path, batch_size: int) -> float | None:
    """Training time per sample by the run's own clock: forward, backward, plan, optimiser, data.

    The median between two lines of the log, so that validations, which fall between a few of them, do not count.
    """
    told = [record for record in read_log(folder / "log.jsonl") if "loss" in record]
    steps = np.diff([0, *(record["step"] for record in told)])
    seconds = np.diff([0.0, *(record["seconds"] for record in told)])
    return float(median(seconds / (steps * batch_size))) if told else None


def validations(folder: Path) -> list[dict[str, float]]:
    """When a run was validated, and with what result: step, seconds, the headline metrics."""
    records = [record for record in read_log(folder / "log.jsonl") if VALIDATION in record]
    names = ("step", "seconds", *(metric.name for metric in METRICS.headlines()))
    return [{name: record[name] for name in names if name in record} for record in records]


def _write_samples(path: Path, report: Report) -> None:
    """Every metric sample by sample, for intervals over seeds and samples."""
    told = {metric.name: metric.values(report) for metric in METRICS.entries()}
    columns = {name: _as_numbers(values) for name, values in told.items() if values is not None}
    groups = range(len(report)) if report.groups is None else report.groups
    with replacing(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["sample", "group", *columns])
        for at, group in enumerate(groups):
            writer.writerow([at, group, *(values[at] for values in columns.values())])


def _as_numbers(values: Values) -> list[int] | list[float]:
    """Shares that are all or nothing as 0 and 1."""
    array = np.asarray(values)
    numbers: list[int] | list[float] = (array.astype(np.int64) if array.dtype == np.bool_ else array).tolist()
    return numbers


@dataclass(frozen=True, eq=False)
class EvaluatedBaseline:
    """A record like that of a run, and the figures of every sample."""

    record: dict[str, Any]
    report: Report


def evaluate_untrained(job: Job) -> EvaluatedBaseline:
    """Ask a job's untrained method about the first samples of the test split."""
    assert job.baseline is not None
    settings = job.method()
    begun = perf_counter()
    task = task_of(job.run.task)
    data = task.data("test", limit=job.samples)
    indices = list(range(min(job.samples, len(data))))
    answered = predict_baseline(job.baseline, job.run, indices, "test", settings=settings)
    _, target = data.batch(indices)
    targets = target.graphs()
    membership = data.membership(indices)
    groups = None if membership is None else membership.groups
    report = evaluate_graphs(answered.graphs, targets, groups=groups)
    figures: dict[str, Any] = {"task": task.name} | report.to_json()
    for extra in task.extras(answered.graphs, targets):
        figures[extra.name] = (100 if extra.share else 1) * float(extra.values.mean())
    seconds = perf_counter() - begun
    record = {
        "settings": {"task": job.run.task.model_dump(mode="json")},
        "baseline": {
            "name": job.baseline,
            "settings": asdict(answered.settings),
            "likeness": answered.likeness,
            "seconds_per_prediction": answered.seconds_per_prediction,
            "preparation_seconds": answered.preparation_seconds,
            "seconds": seconds,
        },
        "data_sha256": data.digest(),
        "commit": commit(),
        "graphwright": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "hardware": hardware(),
        "test": figures,
    }
    return EvaluatedBaseline(record, report)


@dataclass(frozen=True)
class Outcome:
    """What became of a job, and why if it is not done."""

    job: Job
    state: State
    reason: str = ""


def run_jobs(engine: Engine, jobs: Sequence[Job], store: Store, stopped: Stopped) -> Iterator[Outcome]:
    """Outcomes as they come, in any order; once `stopped`, runs save their state and nothing new is begun."""
    work = _Work(store.root.resolve(), engine.threads)
    for job, ended in engine.tasks(work, jobs, stopped):
        if isinstance(ended, Lost):
            yield Outcome(job, State.INTERRUPTED if ended.interrupted else State.FAILED, ended.reason)
        else:
            yield ended


def attempt(job: Job, folder: Path, threads: int) -> Outcome:
    """A job's outcome, whatever happens in it but an interrupt: the failure of one is not the failure of all."""
    try:
        perform(job, folder, threads)
    except JobBusyError as error:
        return Outcome(job, State.RUNNING, str(error))
    except Exception as error:
        return Outcome(job, State.FAILED, f"{type(error).__name__}: {error}")
    return Outcome(job, State.DONE)


@dataclass(frozen=True)
class _Work:
    """A job in its folder, on so many torch threads where a run leaves their number open."""

    root: Path
    threads: int

    def __call__(self, job: Job) -> Outcome:
        return attempt(job, self.root / job.key, self.threads)
