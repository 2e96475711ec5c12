"""How far every experiment is, at every scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from graphwright.experiments.expansion import expand
from graphwright.experiments.grid import Grid, Scale
from graphwright.experiments.store import State, Store


@dataclass(frozen=True)
class Status:
    """Jobs of an experiment at a scale by their state, and the keys of all of them."""

    name: str
    scale: Scale
    configurations: int
    keys: frozenset[str]
    counts: dict[State, int]


@dataclass(frozen=True)
class JobStatus:
    """One job: its place in the grid, how far it is, its folder, and why it failed."""

    column: str
    method: str
    seed: int | None
    state: State
    key: str
    reason: str


def status(grid: Grid, scale: Scale, store: Store, seeds: int | None = None) -> Status:
    """How many jobs are done, running, interrupted, failed, missing."""
    configurations = expand(grid, scale, seeds)
    jobs = {job.key: job for configuration in configurations for job in configuration.jobs}
    counts = Counter(store.state(job) for job in jobs.values())
    by_state = {state: counts[state] for state in State}
    return Status(grid.name, scale, len(configurations), frozenset(jobs), by_state)


def job_list(grid: Grid, scale: Scale, store: Store, seeds: int | None = None) -> Sequence[JobStatus]:
    """Every job of an experiment."""
    return [
        JobStatus(
            configuration.column,
            configuration.method,
            job.run.train.seed if configuration.trained else None,
            state := store.state(job),
            job.key,
            (store.failure(job) or "") if state is State.FAILED else "",
        )
        for configuration in expand(grid, scale, seeds)
        for job in configuration.jobs
    ]
