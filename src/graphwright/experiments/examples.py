"""Input, prediction and truth for every task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from graphwright.experiments.engine import Engine, Stopped
from graphwright.experiments.expansion import Configuration, expand
from graphwright.experiments.figures import write_figure
from graphwright.experiments.grid import Grid, Scale
from graphwright.experiments.reproduction import Report, Reproduced, copy_records, page_folder, store_of, work_off
from graphwright.experiments.store import State, Store
from graphwright.experiments.summary import measure
from graphwright.report import comparison_sheet, evaluate_saved, pick_examples
from graphwright.report.record import run_record
from graphwright.training.saved_model import SavedModel, load_model, shipped_names

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
    stopped: Stopped,
    report: Report,
) -> Reproduced:
    """Examples by each task's finished run, by the shipped model of the task, or by a run made for them."""
    store = store_of(out)
    configurations = expand(grid, scale, seeds)
    shipped = {} if scale is Scale.SMOKE else _shipped(configurations)
    wanting = [each for each in configurations if not _finished(each, store) and each.column not in shipped]
    interrupted = work_off([_first_seed(each) for each in wanting], store, engine, stopped, report)
    folder = page_folder(out, grid.name, scale)
    finished = {each.column: found for each in configurations if (found := _finished(each, store))}
    copy_records([found.name for found in finished.values()], store, folder)
    parts = [f"# {grid.title}, scale `{scale}`", grid.summary]
    for column in (each.column for each in configurations):
        if column in finished:
            model, source = load_model(str(finished[column])), f"[record](records/{finished[column].name}.json)"
        elif column in shipped:
            model, source = load_model(shipped[column]), f"the shipped model `{shipped[column]}`"
        else:
            parts += [f"## {column}", "There is no model yet."]
            continue
        parts += [f"## {column}", _draw(model, folder, column, source)]
    parts += ["## What differs from the paper", "\n".join(f"- {note}" for note in grid.scales[scale].differs)]
    (folder / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    lacking = [each for each in configurations if each.column not in finished and each.column not in shipped]
    return Reproduced(folder, [measure(_first_seed(each), store) for each in lacking], interrupted)


def _draw(model: SavedModel, folder: Path, column: str, source: str) -> str:
    result = evaluate_saved(model, at_most=DRAWN_FROM)
    name = column.lower().replace(" ", "-")
    chosen = pick_examples(result.evaluation.report, SHOWN)
    write_figure(folder, comparison_sheet(result, chosen), name)
    facts = run_record(model, result.data) | {"examples": [result.evaluation.indices[at] for at in chosen]}
    (folder / f"{name}.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    exact = 100 * float(result.evaluation.report.isomorphic.mean())
    return (
        f"{model.task.name}, {exact:.1f} % exactly right of the first {len(result.evaluation.targets)} test "
        f"samples; {source}, [settings]({name}.json).\n\n![{column}]({name}.png)"
    )


def _first_seed(configuration: Configuration) -> Configuration:
    return replace(configuration, jobs=configuration.jobs[:1])


def _finished(configuration: Configuration, store: Store) -> Path | None:
    """The folder of the first finished run."""
    return next((store.folder(job) for job in configuration.jobs if store.state(job) is State.DONE), None)


def _shipped(configurations: Sequence[Configuration]) -> dict[str, str]:
    """For every column the shipped model of the same kind of task, if there is one: the nearest in size."""
    models = {name: load_model(name).run.task for name in shipped_names()}
    found = {}
    for configuration in configurations:
        task = configuration.jobs[0].run.task
        alike = [name for name, own in models.items() if own.kind == task.kind]
        if alike:
            found[configuration.column] = min(alike, key=lambda name: abs(models[name].capacity - task.capacity))
    return found
