"""The figures of a configuration over its seeds, with intervals."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphwright.experiments.expansion import Configuration
from graphwright.experiments.job import Job
from graphwright.experiments.store import SAMPLES, State, Store
from graphwright.experiments.work import PER_SAMPLE
from graphwright.metrics.bootstrap import Interval

PERCENT = ("isomorphic", "aligned_exact")
RESAMPLES = 2000


@dataclass(frozen=True)
class Figure:
    """A mean over seeds and samples, its 95 % interval, and the mean of every seed."""

    mean: float
    interval: Interval
    seeds: tuple[float, ...]


@dataclass(frozen=True)
class Measured:
    """What is known of a configuration: figures by name, the keys behind them, and what is not done, with why.

    training: means over the finished runs of seconds, processor_seconds, steps, seconds_per_sample and
    best_validation; of a method without training seconds_per_prediction, and references, the training samples that
    it looked at.
    progress: for every finished run (seconds, isomorphic validation samples in %) of its validations.
    """

    configuration: Configuration
    figures: Mapping[str, Figure]
    training: Mapping[str, float]
    keys: tuple[str, ...]
    missing: tuple[str, ...]
    progress: tuple[tuple[tuple[float, float], ...], ...] = ()


def measure(configuration: Configuration, store: Store) -> Measured:
    """The figures of a configuration's finished jobs."""
    finished = [job for job in configuration.jobs if store.state(job) is State.DONE]
    missing = tuple(_excuse(job, store) for job in configuration.jobs if job not in finished)
    tables = [read_samples(store.folder(job) / SAMPLES) for job in finished]
    figures = {}
    for name in PER_SAMPLE:
        if tables and all(name in table.values for table in tables):
            values = np.stack([table.values[name] for table in tables])
            figures[name] = figure(values * (100 if name in PERCENT else 1), tables[0].groups)
    keys = tuple(job.key for job in finished)
    progress = tuple(_progress(job, store) for job in finished)
    return Measured(configuration, figures, _training(finished, store), keys, missing, progress)


def _progress(job: Job, store: Store) -> tuple[tuple[float, float], ...]:
    found = (store.record(job) or {}).get("training", {}).get("validations", [])
    return tuple((each["seconds"], each["isomorphic"]) for each in found)


def _excuse(job: Job, store: Store) -> str:
    state = store.state(job)
    # Of one line: it goes into tables and lists.
    reason = " ".join((store.failure(job) or "").split()) if state is State.FAILED else ""
    seed = f"seed {job.run.train.seed} " if job.baseline is None else ""
    return f"{seed}{state}{': ' + reason if reason else ''}"


def _training(jobs: Sequence[Job], store: Store) -> dict[str, float]:
    records = [store.record(job) or {} for job in jobs]
    found: dict[str, float] = {}
    for name in ("seconds", "processor_seconds", "steps", "seconds_per_sample", "best_validation"):
        values = [record.get("training", {}).get(name) for record in records]
        known = [value for value in values if value is not None]
        if known and len(known) == len(records):
            found[name] = float(np.mean(known))
    asked = [record["baseline"] for record in records if "baseline" in record]
    if asked:
        found["seconds_per_prediction"] = float(np.mean([each["seconds_per_prediction"] for each in asked]))
        found["references"] = float(asked[0]["settings"]["references"])
    return found


@dataclass(frozen=True, eq=False)
class SampleTable:
    """Figures (m,) by name, and the group of every sample as a code (m,)."""

    values: Mapping[str, NDArray[np.float64]]
    groups: NDArray[np.int64]


def read_samples(path: Path) -> SampleTable:
    """The figures of every sample that a job left."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        raise ValueError(f"{path} has no samples: delete its folder, and the job is done again")
    codes: dict[str, int] = {}
    groups = np.array([codes.setdefault(row["group"], len(codes)) for row in rows])
    names = [name for name in PER_SAMPLE if name in rows[0]]
    return SampleTable({name: np.array([float(row[name]) for row in rows]) for name in names}, groups)


def figure(values: NDArray[np.float64], groups: NDArray[np.int64], seed: int = 0) -> Figure:
    """Of values (seeds, m): mean and percentile bootstrap interval that draws seeds and groups of samples anew.

    Both are drawn with replacement, and the samples drawn are the same for all seeds, as they were in truth. With
    one seed the interval is over samples alone; with two or three it says little of the variation between seeds,
    which is why every seed's own mean is kept.
    """
    count = values.shape[0]
    sums = np.stack([np.bincount(groups, row) for row in values])
    sizes = np.bincount(groups).astype(np.float64)
    generator = np.random.default_rng(seed)
    # How often each is drawn, instead of which: the same thing, all draws at once.
    seeds = generator.multinomial(count, np.full(count, 1 / count), RESAMPLES) / count
    drawn = generator.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), RESAMPLES)
    means = (seeds @ sums * drawn).sum(1) / (drawn @ sizes)
    low, high = np.quantile(means, [0.025, 0.975])
    return Figure(float(values.mean()), Interval(float(low), float(high)), tuple(values.mean(1).tolist()))
