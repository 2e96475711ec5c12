"""Methods without training, on the samples and with the figures of a trained model."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import torch

from graphwright import __version__
from graphwright.baselines import predict_baseline
from graphwright.experiments.job import Job
from graphwright.inference.record import commit, hardware
from graphwright.metrics import Report, evaluate_graphs
from graphwright.tasks import Grouped, task_of


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
    groups = data.membership(indices).groups if isinstance(data, Grouped) else None
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
