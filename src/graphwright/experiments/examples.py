"""Input, prediction and truth for every task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from graphwright.experiments.archive import RECORDS, pack_records
from graphwright.experiments.figures import write_figure
from graphwright.experiments.grid import Configuration, Grid, Scale, expand
from graphwright.experiments.job import RECORD, State, Store
from graphwright.experiments.reproduction import (
    PAGE,
    Report,
    Reproduced,
    page_folder,
    store_of,
    work_off,
)
from graphwright.experiments.table import measure
from graphwright.files import SHIPPED_MODELS, write_json, write_text
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference import evaluate_saved
from graphwright.inference.export import run_record
from graphwright.inference.model import SavedModel, load_model, shipped_names
from graphwright.parallel import Engine, Stopped
from graphwright.report import comparison_sheet, pick_examples
from graphwright.settings import TaskSettings
from graphwright.tasks import task_of

SHOWN = 3
"""Examples of each task."""
DRAWN_FROM = 64
"""Test samples among which they are chosen."""


def write_examples(
    grid: Grid,
    scale: Scale,
    out: Path,
    engine: Engine,
    *,
    seeds: int | None = None,
    columns: Sequence[str] = (),
    stopped: Stopped,
    report: Report,
) -> Reproduced:
    """Examples by each task's finished run, by the shipped model of the task, or by a run made for them."""
    store = store_of(out)
    configurations = expand(grid, scale, seeds)
    shipped = _shipped(configurations, scale)
    wanted = [each for each in runs_wanted(grid, scale, store, seeds) if not columns or each.column in columns]
    interrupted = work_off(wanted, store, engine, stopped, report)
    folder = page_folder(out, grid.name, scale)
    finished = {each.column: job for each in configurations if (job := _finished(each, store))}
    pack_records([job.name for job in finished.values()], store, folder)
    parts = [f"# {grid.title}, scale `{scale}`", grid.summary]
    for column in (each.column for each in configurations):
        if column in finished:
            model, source = load_model(str(finished[column])), f"[record]({RECORDS}/{finished[column].name}.json)"
        elif column in shipped:
            model, source = load_model(shipped[column]), _shipped_source(shipped[column], folder)
        else:
            parts += [f"## {column}", "There is no model yet."]
            continue
        parts += [f"## {column}", _draw(model, folder, column, source)]
    if finished:
        whose = f" ({', '.join(finished)})" if len(finished) < len(configurations) else ""
        notes = "\n".join(f"- {note}" for note in grid.scales[scale].differs)
        parts += [f"## What differs from the paper{whose}", notes]
    write_text(folder / PAGE, "\n\n".join(parts) + "\n")
    lacking = [each for each in configurations if each.column not in finished and each.column not in shipped]
    return Reproduced(folder, [measure(_first_seed(each), store) for each in lacking], interrupted)


def runs_wanted(grid: Grid, scale: Scale, store: Store, seeds: int | None = None) -> list[Configuration]:
    """The first seed's run of every task that has neither a finished run nor a shipped model."""
    configurations = expand(grid, scale, seeds)
    shipped = _shipped(configurations, scale)
    wanting = [each for each in configurations if not _finished(each, store) and each.column not in shipped]
    return [_first_seed(each) for each in wanting]


def _draw(model: SavedModel, folder: Path, column: str, source: str) -> str:
    result = evaluate_saved(model, at_most=DRAWN_FROM)
    name = column.lower().replace(" ", "-")
    chosen = pick_examples(result.evaluation.report, SHOWN)
    write_figure(folder, comparison_sheet(result, chosen), name)
    facts = run_record(model, result.data) | {"examples": [result.evaluation.indices[at] for at in chosen]}
    write_json(folder / f"{name}.json", facts)
    exact = 100 * float(result.evaluation.report.isomorphic.mean())
    return (
        f"{model.task.name}, {exact:.1f} % exactly right of the first {len(result.evaluation.targets)} test "
        f"samples; {source}, [settings]({name}.json).\n\n![{column}]({name}.png)"
    )


def _first_seed(configuration: Configuration) -> Configuration:
    return replace(configuration, jobs=configuration.jobs[:1])


def _finished(configuration: Configuration, store: Store) -> Path | None:
    """The folder of the first finished run whose weights are here: of one that was taken over only figures are."""
    folders = [store.folder(job) for job in configuration.jobs if store.state(job) is State.DONE]
    return next((folder for folder in folders if checkpoints.exists(folder / "checkpoints" / "best")), None)


def _shipped_source(name: str, folder: Path) -> str:
    """What a shipped model is, instead of the grid's own data and budget; its record is put beside the page."""
    record = json.loads((SHIPPED_MODELS / name / RECORD).read_text(encoding="utf-8"))
    write_json(folder / RECORDS / f"{name}.json", record)
    settings, progress = record["settings"], record["progress"]
    return (
        f"by the shipped model `{name}`, no run of this grid: {progress['step']:,} steps of "
        f"{settings['train']['batch_size']} samples in {progress['seconds'] / 60:.0f} minutes with the "
        f"`{settings['matching']['kind']}` matcher; [its record]({RECORDS}/{name}.json)"
    )


def _shipped(configurations: Sequence[Configuration], scale: Scale) -> dict[str, str]:
    """For every column the shipped model of the same kind of task, if there is one: the nearest in its settings.

    None at the smoke scale, which is there to show that runs are made and drawn.
    """
    if scale is Scale.SMOKE:
        return {}
    models = {name: load_model(name).run.task for name in shipped_names()}
    sources = {}
    for configuration in configurations:
        task = configuration.jobs[0].run.task
        alike = [name for name, own in models.items() if own.kind == task.kind]
        if alike:
            sources[configuration.column] = min(alike, key=lambda name: _distance(models[name], task))
    return sources


def _distance(first: TaskSettings, second: TaskSettings) -> tuple[int, int]:
    """How far two tasks of one kind are apart: in capacity, then in how many settings."""
    ours, theirs = first.model_dump(), second.model_dump()
    sizes = abs(task_of(first).capacity - task_of(second).capacity)
    return sizes, sum(value != theirs.get(name) for name, value in ours.items())
