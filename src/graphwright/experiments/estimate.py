"""What an experiment will take on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from graphwright.experiments.expansion import Configuration
from graphwright.experiments.job import Job
from graphwright.experiments.step_time import Cost
from graphwright.experiments.store import State, Store
from graphwright.training.schedule import Budget

START = 10.0
"""Seconds in which a process is there and its data are read."""


@dataclass(frozen=True)
class Estimate:
    """A configuration: milliseconds per sample and steps of its training (None: not trained), seconds of one job,
    jobs without a record."""

    configuration: Configuration
    milliseconds: float | None
    steps: int | None
    seconds: float
    missing: int

    @property
    def remaining(self) -> float:
        """Seconds of all its jobs that have no record."""
        return self.missing * self.seconds


def estimates(
    configurations: Sequence[Configuration], store: Store, cost_of: Callable[[Job], Cost]
) -> Iterator[Estimate]:
    """Of every configuration, by the measured cost of a step; a job that several share counts for the first.

    A run that was interrupted counts in full.
    """
    counted: set[str] = set()
    for configuration in configurations:
        own = {job.key for job in configuration.jobs if store.state(job) is not State.DONE} - counted
        counted |= own
        job = configuration.jobs[0]
        cost = cost_of(job)
        whole = START + cost.preparation + cost.evaluation * job.samples
        if not configuration.trained:
            yield Estimate(configuration, None, None, whole, len(own))
            continue
        steps, seconds = training_time(job, cost)
        whole += seconds
        yield Estimate(configuration, 1000 * cost.training, steps, whole, len(own))


def training_time(job: Job, cost: Cost) -> tuple[int, float]:
    """Steps, and seconds with validations; minutes, where they are the budget, include these."""
    train = job.run.train
    step = cost.training * train.batch_size
    validation = cost.evaluation * train.validation_samples / train.validate_every
    budget = Budget.of(train, max(cost.epoch // train.batch_size, 1))
    limits = []
    if budget.steps is not None:
        limits.append(budget.steps)
    if budget.minutes is not None:
        limits.append(max(1, int(60 * budget.minutes / (step + validation))))
    steps = min(limits)
    return steps, steps * (step + validation)


def wall_seconds(estimates: Sequence[Estimate], jobs: int) -> float:
    """Seconds until all are done, `jobs` at a time, the longest first, each by whoever is free."""
    lengths = sorted((each.seconds for each in estimates for _ in range(each.missing)), reverse=True)
    free = [0.0] * max(jobs, 1)
    for length in lengths:
        at = free.index(min(free))
        free[at] += length
    return max(free)
