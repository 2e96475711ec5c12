"""What was measured beside what the paper prints: Markdown for people, CSV for programs."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphwright.experiments.archive import RECORDS
from graphwright.experiments.grid import Configuration, Grid, Scale
from graphwright.experiments.job import SAMPLES, Job, State, Store
from graphwright.files import replacing
from graphwright.metrics import METRICS, Interval
from graphwright.tasks import task_of
from graphwright.transport import Order

RESAMPLES = 2000


@dataclass(frozen=True)
class Average:
    """A mean over seeds and samples, its 95 % interval where the samples are known, and the mean of every seed."""

    mean: float
    interval: Interval | None
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
    figures: Mapping[str, Average]
    training: Mapping[str, float]
    keys: tuple[str, ...]
    missing: tuple[str, ...]
    progress: tuple[tuple[tuple[float, float], ...], ...] = ()


def measure(configuration: Configuration, store: Store, further: Sequence[str] = ()) -> Measured:
    """The figures of a configuration's finished jobs, those of `further` metrics beside the paper's."""
    finished = [job for job in configuration.jobs if store.state(job) is State.DONE]
    missing = tuple(_excuse(job, store) for job in configuration.jobs if job not in finished)
    names = (*SHOWN, *further)
    known = all((store.folder(job) / SAMPLES).is_file() for job in finished)
    figures = (_figures_of_samples if known else _figures_of_records)(finished, store, names)
    keys = tuple(job.key for job in finished)
    progress = tuple(_progress(job, store) for job in finished)
    return Measured(configuration, figures, _training(finished, store), keys, missing, progress)


def _figures_of_samples(jobs: Sequence[Job], store: Store, names: Sequence[str]) -> dict[str, Average]:
    tables = [read_samples(store.folder(job) / SAMPLES) for job in jobs]
    figures = {}
    for name in names:
        if tables and all(name in table.values for table in tables):
            values = np.stack([table.values[name] for table in tables])
            figures[name] = average(values * METRICS[name].scale, tables[0].groups)
    return figures


def _figures_of_records(jobs: Sequence[Job], store: Store, names: Sequence[str]) -> dict[str, Average]:
    """Means alone: records that were committed before their samples were have no more."""
    tests = [(store.record(job) or {})["test"] for job in jobs]
    seeds = {name: tuple(float(test[name]) for test in tests if test.get(name) is not None) for name in names}
    return {
        name: Average(float(np.mean(values)), None, values)
        for name, values in seeds.items()
        if len(values) == len(jobs)
    }


def _progress(job: Job, store: Store) -> tuple[tuple[float, float], ...]:
    validations = (store.record(job) or {}).get("training", {}).get("validations", [])
    return tuple((each["seconds"], each["isomorphic"]) for each in validations)


def _excuse(job: Job, store: Store) -> str:
    state = store.state(job)
    # Of one line: it goes into tables and lists.
    reason = " ".join((store.failure(job) or "").split()) if state is State.FAILED else ""
    seed = f"seed {job.run.train.seed} " if job.baseline is None else ""
    return f"{seed}{state}{': ' + reason if reason else ''}"


def _training(jobs: Sequence[Job], store: Store) -> dict[str, float]:
    records = [store.record(job) or {} for job in jobs]
    means: dict[str, float] = {}
    for name in ("seconds", "processor_seconds", "steps", "seconds_per_sample", "best_validation"):
        values = [record.get("training", {}).get(name) for record in records]
        known = [value for value in values if value is not None]
        if known and len(known) == len(records):
            means[name] = float(np.mean(known))
    asked = [record["baseline"] for record in records if "baseline" in record]
    if asked:
        means["seconds_per_prediction"] = float(np.mean([each["seconds_per_prediction"] for each in asked]))
        means["references"] = float(asked[0]["settings"]["references"])
    return means


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
    names = [name for name in METRICS.names() if name in rows[0]]
    return SampleTable({name: np.array([float(row[name]) for row in rows]) for name in names}, groups)


def average(values: NDArray[np.float64], groups: NDArray[np.int64], seed: int = 0) -> Average:
    """Mean of values (seeds, m), and its percentile bootstrap interval over seeds and groups of samples.

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
    return Average(float(values.mean()), Interval(float(low), float(high)), tuple(values.mean(1).tolist()))


BAR = r"\|"
"""A bar within a cell."""
SHOWN = ("aligned_edit", "aligned_exact", "edit", "isomorphic")
"""The paper's own diagnostic first, then the true figures; a grid may name further metrics."""
METRIC = (
    "Metric: `aligned edit` and `aligned exact` are the paper's diagnostic (one alignment: the best of four "
    "starts of conditional gradient on J with the paper's weights, rounded, for every method) and are what its "
    "printed figures compare with; `edit` (fewest edits over all alignments) and `isomorphic` are the true ones. "
    "Methods that give graphs without slots have only these."
)
INTERVALS = (
    "In brackets the 95 % interval of the mean, by drawing seeds and test samples anew (none where only the "
    "record of a run is left), then the mean of every seed. With two or three seeds the interval says little of "
    "the variation between seeds."
)


@dataclass(frozen=True)
class Row:
    """A configuration with its figures, the paper's edit and accuracy, and whether it is the one selected, among
    how many others."""

    measured: Measured
    printed: tuple[float, float] | None
    selected: bool
    rivals: int


def rows_of(grid: Grid, measured: Sequence[Measured]) -> list[Row]:
    """Rows in the grid's order; of a selected series, the best validation of every column counts."""
    chosen = _selection(grid, measured)
    candidates = Counter(_group(each) for each in measured if each.configuration.series in grid.selected)
    return [
        Row(
            each,
            grid.printed.get(each.configuration.method, {}).get(each.configuration.column),
            each.configuration.series not in grid.selected or each in chosen,
            max(0, candidates[_group(each)] - 1),
        )
        for each in measured
    ]


def _group(measured: Measured) -> tuple[str, str]:
    """Column and series: those of one group are candidates for the same point."""
    return measured.configuration.column, measured.configuration.series


def _selection(grid: Grid, measured: Sequence[Measured]) -> list[Measured]:
    """By the best validation metric, which is the same for all methods of a series."""
    groups: dict[tuple[str, str], list[Measured]] = {}
    for each in measured:
        if each.configuration.series in grid.selected and "best_validation" in each.training:
            groups.setdefault(_group(each), []).append(each)
    return [max(group, key=_validation_gain) for group in groups.values()]


def _validation_gain(measured: Measured) -> float:
    metric = METRICS[measured.configuration.jobs[0].run.train.metric]
    return metric.gain(measured.training["best_validation"], 0.0)


def markdown(grid: Grid, scale: Scale, rows: Sequence[Row]) -> str:
    """The whole page: a table per column, then what differs from the paper."""
    parts = [f"# {grid.title}, scale `{scale}`", grid.summary, "![figure](figure.png)"]
    for column in grid.columns:
        own = [row for row in rows if row.measured.configuration.column == column.name]
        if own:
            parts += [f"## {_heading(column.name, own)}", _column_table(column.name, own, grid)]
    notes = [METRIC, INTERVALS, *grid.scales[scale].differs]
    parts += ["## What differs from the paper", "\n".join(f"- {note}" for note in notes)]
    return "\n\n".join(parts) + "\n"


def _heading(column: str, rows: Sequence[Row]) -> str:
    jobs = rows[0].measured.configuration.jobs
    task = task_of(jobs[0].run.task)
    data = getattr(task.settings, "data", None)
    own = f"{task.heading}{f', data {data}' if data else ''}, N = {task.capacity}"
    return f"{column} (here {own}, {jobs[0].samples} test samples at most)"


def _column_table(column: str, rows: Sequence[Row], grid: Grid) -> str:
    relaxations = [relaxation(row.measured.configuration) for row in rows]
    # Where all have the same there is nothing to tell apart.
    differ = len({each for each in relaxations if each}) > 1
    headings = ["method", *(["divergence, reading"] if differ else []), "paper: edit", "paper: GI, %"]
    shown = (*SHOWN, *grid.further_metrics)
    headings += [*(METRICS[name].column for name in shown), "training", "records"]
    lines = [_line(headings), f"|{'---|' * len(headings)}"]
    for row, told in zip(rows, relaxations, strict=True):
        measured = row.measured
        name = measured.configuration.method
        if not measured.configuration.paper:
            name += " (not in the paper)"
        if row.selected and row.rivals and measured.keys:
            name += " **selected**"
        printed = ["", ""] if row.printed is None else _shown(row.printed)
        figures = [_cell(measured.figures.get(metric)) for metric in shown]
        links = " ".join(f"[{key[:6]}]({RECORDS}/{key}.json)" for key in measured.keys)
        links += "".join(f" {excuse}" for excuse in measured.missing)
        cells = [name, *([told] if differ else []), *printed, *figures]
        lines.append(_line([*cells, _training_cell(measured.training), links.strip()]))
    for name, columns in grid.beside.items():
        if column in columns:
            cells = [name, *([""] if differ else []), *_shown(columns[column])]
            lines.append(_line([*cells, *[""] * (len(headings) - len(cells))]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    """A line of a table, whatever its cells say."""
    return f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


def _shown(printed: tuple[float, float]) -> list[str]:
    return [f"{value:g}" for value in printed]


def relaxation(configuration: Configuration) -> str:
    """The divergence, and how a swapped order is read; nothing of a method without training."""
    if not configuration.trained:
        return ""
    loss = configuration.jobs[0].run.loss
    reading = loss.reading if loss.order is Order.TARGET_FIRST else "not swapped"
    return f"{loss.divergence}, {reading}".replace("_", " ")


def _cell(average: Average | None) -> str:
    if average is None:
        return ""
    shown = f"{average.mean:.2f}"
    if average.interval is not None:
        shown += f" ({average.interval.low:.2f} to {average.interval.high:.2f})"
    return shown if len(average.seeds) == 1 else f"{shown}; {', '.join(f'{seed:.2f}' for seed in average.seeds)}"


def _training_cell(training: Mapping[str, float]) -> str:
    if "seconds_per_prediction" in training:
        milliseconds = 1000 * training["seconds_per_prediction"]
        return f"none; looks at {training['references']:,.0f} samples, {milliseconds:.3g} ms per prediction"
    if "seconds" not in training:
        return ""
    shown = f"{training['seconds'] / 60:.2g} min, {training['steps']:,.0f} steps"
    if "seconds_per_sample" in training:
        shown += f", {1000 * training['seconds_per_sample']:.3g} ms per sample"
    return shown


BEFORE = (
    "column", "method", "series", "in_paper", "selected", "divergence", "order", "reading",
    "printed_edit", "printed_isomorphic", "seeds",
)  # fmt: skip
AFTER = (
    "training_seconds", "processor_seconds", "steps", "seconds_per_sample", "best_validation",
    "seconds_per_prediction", "references", "records", "missing",
)  # fmt: skip
"""Columns of the CSV before and after those of the metrics."""


def write_csv(path: Path, grid: Grid, rows: Sequence[Row]) -> None:
    """One line per configuration, then what the paper prints beside them; lists are separated by blanks."""
    metrics = (*SHOWN, *grid.further_metrics)
    columns = [*BEFORE, *(f"{name}{part}" for name in metrics for part in ("", "_low", "_high", "_seeds")), *AFTER]
    with replacing(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(_facts(row))
        for name, cells in grid.beside.items():
            for column, (edit, isomorphic) in cells.items():
                printed = {"printed_edit": edit, "printed_isomorphic": isomorphic}
                writer.writerow({"column": column, "method": name, "in_paper": True, **printed})


def _facts(row: Row) -> dict[str, object]:
    measured, configuration = row.measured, row.measured.configuration
    facts: dict[str, object] = {
        "column": configuration.column,
        "method": configuration.method,
        "series": configuration.series,
        "in_paper": configuration.paper,
        "selected": row.selected,
        "seeds": len(measured.keys),
        "records": " ".join(measured.keys),
        "missing": "; ".join(measured.missing),
    }
    if configuration.trained:
        loss = configuration.jobs[0].run.loss
        facts |= {"divergence": loss.divergence, "order": loss.order, "reading": loss.reading}
    if row.printed is not None:
        facts["printed_edit"], facts["printed_isomorphic"] = row.printed
    for name, figure in measured.figures.items():
        facts[name] = figure.mean
        if figure.interval is not None:
            facts |= {f"{name}_low": figure.interval.low, f"{name}_high": figure.interval.high}
        facts[f"{name}_seeds"] = " ".join(f"{seed:g}" for seed in figure.seeds)
    training = dict(measured.training)
    if "seconds" in training:
        facts["training_seconds"] = training.pop("seconds")
    return facts | training
