"""A table or figure of the paper as data: what is trained on what, how long, and what the paper prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, model_validator

from graphwright.experiments.job import Job
from graphwright.metrics import METRICS
from graphwright.settings import Override, Run, load_run
from graphwright.settings.choices import Count, NameIn, Positive, Settings, SettingsError

FOLDER = Path(__file__).parent / "grids"
"""One YAML file each, named after what it reproduces; at the root of the repository, linked here."""
SHARED = FOLDER / "shared"
Value = str | int | float | bool
Values = dict[str, Value]
"""Settings of a run by dotted name."""
Printed = dict[str, dict[str, tuple[float, float]]]
"""By name and column the paper's edit distance and accuracy in per cent."""


class Scale(StrEnum):
    """How much is spent."""

    SMOKE = "smoke"
    CPU = "cpu"
    PAPER = "paper"


class FigureKind(StrEnum):
    """How the figures of a grid are drawn."""

    BARS = "bars"
    FRONTIER = "frontier"
    CURVE = "curve"
    PROGRESS = "progress"


class Changes(Settings):
    """What is laid over a run: values, factors of what is there, how many seeds instead of the scale's own."""

    set: Values = Field(default_factory=dict)
    times: dict[str, Positive] = Field(default_factory=dict)
    seeds: Count | None = None


class Column(Settings):
    """A task. start: a preset for every scale that has it; at: changes for one scale."""

    name: str
    start: dict[Scale, str]
    x: dict[Scale, float] = Field(default_factory=dict)
    """Where a curve puts it."""
    at: dict[Scale, Changes] = Field(default_factory=dict)


class Method(Changes):
    """A row, or with `vary` one for every combination of the values given, whose names fill in `name`.

    series: what a figure joins with a line. baseline: an untrained method instead of a run. only: the columns that
    it has, all by default. scales: those that have it, all by default. paper: whether the paper has it.
    """

    name: str
    series: str = ""
    baseline: str | None = None
    vary: dict[str, tuple[Value, ...]] = Field(default_factory=dict)
    only: tuple[str, ...] | None = None
    scales: tuple[Scale, ...] | None = None
    paper: bool = True
    at: dict[Scale, Changes] = Field(default_factory=dict)

    def rows(self) -> Iterator[tuple[str, Values]]:
        """Name and varied values of every row."""
        for values in product(*self.vary.values()):
            varied, name = dict(zip(self.vary, values, strict=True)), self.name
            for key, value in varied.items():
                name = name.replace(f"{{{key}}}", f"{value:g}" if isinstance(value, float) else str(value))
            yield name, varied


class ScalePlan(Settings):
    """The budget of a scale: seeds, test samples, settings for all runs, training samples of a baseline.

    differs: in what data, budget and metric differ from the paper's, a line each.
    """

    seeds: Count
    samples: Count
    set: Values = Field(default_factory=dict)
    references: Count | None = None
    differs: tuple[str, ...] = ()


class Grid(Settings):
    """A whole experiment.

    printed: the paper's figures of the grid's own methods. beside: those of what is no method of the grid, rows of
    their own. selected: series of which only the method with the best validation counts, column by column.
    further_metrics: names of metrics shown beside those of the paper.
    """

    name: str
    title: str
    summary: str
    figure: FigureKind
    columns: tuple[Column, ...]
    methods: tuple[Method, ...]
    scales: dict[Scale, ScalePlan]
    printed: Printed = Field(default_factory=dict)
    beside: Printed = Field(default_factory=dict)
    selected: tuple[str, ...] = ()
    further_metrics: tuple[Annotated[str, NameIn(METRICS)], ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        columns = {column.name for column in self.columns}
        for scale in self.scales:
            if not any(scale in column.start for column in self.columns):
                raise ValueError(f"no column has a start at scale {scale}")
        for method in self.methods:
            unknown = set(method.only or ()) - columns
            if unknown:
                raise ValueError(f"method {method.name} names the column {sorted(unknown)[0]}, which is none")
        for name, cells in (*self.printed.items(), *self.beside.items()):
            if set(cells) - columns:
                raise ValueError(f"printed {name} names the column {sorted(set(cells) - columns)[0]}")
        rows = {name for method in self.methods for name, _ in method.rows()}
        if self.printed.keys() - rows:
            raise ValueError(f"printed {sorted(self.printed.keys() - rows)[0]} is no method; is it beside them?")
        if self.beside.keys() & rows:
            raise ValueError(f"beside {sorted(self.beside.keys() & rows)[0]} is a method; its figures are printed")
        return self


def grid_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


@cache
def read_grid(name: str) -> Grid:
    """The grid of a name; a complaint names the file and the field."""
    path = FOLDER / f"{name}.yaml"
    if name not in grid_names():
        raise SettingsError(f"there is no experiment {name!r}: they are {', '.join(grid_names())}")
    return parse_grid(name, path)


def parse_grid(name: str, path: Path) -> Grid:
    """A grid from any file.

    A column that is only a name is the shared one; the shared settings of a scale lie under the grid's own.
    """
    fields = _read(path)
    if not isinstance(fields, dict):
        raise SettingsError(f"{path}: expected the fields {', '.join(Grid.model_fields)}")
    shared = {column["name"]: column for column in _read(SHARED / "columns.yaml")}
    columns = fields.get("columns")
    if isinstance(columns, list):
        fields["columns"] = [shared.get(each, each) if isinstance(each, str) else each for each in columns]
    settings, scales = _read(SHARED / "scales.yaml"), fields.get("scales")
    if isinstance(scales, dict):
        for scale, plan in scales.items():
            if isinstance(plan, dict):
                plan["set"] = settings.get(scale, {}) | plan.get("set", {})
    try:
        return Grid.model_validate({"name": name, **fields})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        origin = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"{path}: {origin + ': ' if origin else ''}{first['msg']}") from error


def _read(path: Path) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise ImportError("reproducing needs PyYAML and Lightning: pip install 'graphwright[train]'") from error
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error


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
    """Every configuration, column by column; `seeds` replaces every number of seeds that the grid has."""
    plan = plan_of(grid, scale)
    return [
        _configuration(grid, plan, scale, column, method, name, varied, seeds)
        for column in grid.columns
        if scale in column.start
        for method in grid.methods
        if (method.only is None or column.name in method.only)
        and (method.scales is None or scale in method.scales)
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
    seeds: int | None,
) -> Configuration:
    layers = [Changes(set=plan.set, seeds=plan.seeds), column.at.get(scale, Changes()), method]
    layers += [Changes(set=dict(varied)), method.at.get(scale, Changes())]
    run = build_run(column.start[scale], layers, f"{grid.name}.yaml")
    if method.baseline is None:
        count = seeds or [layer.seeds for layer in layers if layer.seeds][-1]
        runs = [_with_seed(run, seed) for seed in range(count)]
        jobs = tuple(Job(each, plan.samples) for each in runs)
    else:
        jobs = (Job(run, plan.samples, method.baseline, plan.references),)
    return Configuration(
        column.name, name, method.series or method.name, method.paper, column.x.get(scale, 0.0), jobs
    )


def build_run(start: str, layers: list[Changes], origin: str) -> Run:
    """A preset with changes laid over it, the last on top: values first, then factors."""
    values: dict[str, Value] = {}
    for layer in layers:
        values |= layer.set
    run = _load(start, values, origin)
    for layer in layers:
        for key, factor in layer.times.items():
            values[key] = _scaled(run, key, factor, origin)
    return _load(start, values, origin)


def _load(start: str, values: Mapping[str, Value], origin: str) -> Run:
    return load_run(start, [Override(key, value, origin) for key, value in values.items()])


def _scaled(run: Run, key: str, factor: float, origin: str) -> float:
    section, _, name = key.partition(".")
    before = getattr(getattr(run, section, None), name, None)
    if isinstance(before, bool) or not isinstance(before, int | float):
        raise SettingsError(f"{origin}: times {key}: there is no number to multiply")
    return max(1, round(before * factor)) if isinstance(before, int) else before * factor


def _with_seed(run: Run, seed: int) -> Run:
    return run.model_copy(update={"train": run.train.model_copy(update={"seed": seed})})
