"""A grid at a scale to its configurations, and these to jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphwright.experiments.grid import Changes, Column, Grid, Method, Scale, ScalePlan, Value
from graphwright.experiments.job import Job
from graphwright.settings import Override, Run, load_run
from graphwright.settings.base import SettingsError


@dataclass(frozen=True)
class Configuration:
    """One cell of a table or point of a figure: a method on a task, with a job for every seed.

    method: the row's name, the varied values filled in. x: where a curve has it.
    """

    column: str
    method: str
    series: str
    paper: bool
    x: float
    jobs: tuple[Job, ...]

    @property
    def trained(self) -> bool:
        """Whether there is a run behind it."""
        return self.jobs[0].baseline is None


def plan_of(grid: Grid, scale: Scale) -> ScalePlan:
    """The budget of a grid at a scale."""
    if scale not in grid.scales:
        raise SettingsError(f"{grid.name} has no scale {scale}, only {', '.join(grid.scales)}")
    return grid.scales[scale]


def expand(grid: Grid, scale: Scale, seeds: int | None = None) -> list[Configuration]:
    """Every configuration, column by column; `seeds` replaces the scale's number of seeds."""
    plan = plan_of(grid, scale)
    count = plan.seeds if seeds is None else seeds
    return [
        _configuration(grid, plan, scale, column, method, name, varied, count)
        for column in grid.columns
        for method in grid.methods
        if method.only is None or column.name in method.only
        for name, varied in method.rows()
    ]


def _configuration(
    grid: Grid,
    plan: ScalePlan,
    scale: Scale,
    column: Column,
    method: Method,
    name: str,
    varied: Mapping[str, Value],
    seeds: int,
) -> Configuration:
    layers = [Changes(set=plan.set), column.at.get(scale, Changes()), method]
    layers += [Changes(set=dict(varied)), method.at.get(scale, Changes())]
    run = build_run(column.start[scale], layers, f"{grid.name}.yaml")
    if method.baseline is None:
        runs = [_with_seed(run, seed) for seed in range(seeds)]
        jobs = tuple(Job(each, plan.samples) for each in runs)
    else:
        jobs = (Job(run, plan.samples, method.baseline, plan.references),)
    return Configuration(
        column.name, name, method.series or method.name, method.paper, column.x.get(scale, 0.0), jobs
    )


def build_run(start: str, layers: list[Changes], place: str) -> Run:
    """A preset with changes laid over it, the last on top: values first, then factors."""
    values: dict[str, Value] = {}
    for layer in layers:
        values |= layer.set
    run = _load(start, values, place)
    for layer in layers:
        for key, factor in layer.times.items():
            values[key] = _scaled(run, key, factor, place)
    return _load(start, values, place)


def _load(start: str, values: Mapping[str, Value], place: str) -> Run:
    return load_run(start, [Override(key, value, place) for key, value in values.items()])


def _scaled(run: Run, key: str, factor: float, place: str) -> float:
    section, _, name = key.partition(".")
    before = getattr(getattr(run, section, None), name, None)
    if isinstance(before, bool) or not isinstance(before, int | float):
        raise SettingsError(f"{place}: times {key}: there is no number to multiply")
    return max(1, round(before * factor)) if isinstance(before, int) else before * factor


def _with_seed(run: Run, seed: int) -> Run:
    return run.model_copy(update={"train": run.train.model_copy(update={"seed": seed})})
