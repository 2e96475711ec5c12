"""Input, prediction and truth side by side, with what is wrong in red."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphwright.graphs import Graph
from graphwright.graphs.graph import IntArray
from graphwright.inference.decoders import PLAIN
from graphwright.inference.evaluate import Evaluated, evaluate_saved
from graphwright.inference.model import load_model
from graphwright.metrics import Report, edit_distance
from graphwright.tasks import Task
from graphwright.tasks.task import Positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WRONG = "#d62728"
DRAWN_FROM = 64
"""Validation samples among which a run's pictures are chosen."""


def write_samples(run_folder: Path) -> None:
    """Draw samples.png of a run: validation samples, hits and misses in their proportion."""
    model = load_model(str(run_folder))
    count = min(DRAWN_FROM, model.run.train.validation_samples)
    # What training has to show for itself, not what a decoder makes of it.
    result = evaluate_saved(model, "validation", at_most=count, decode=PLAIN)
    sheet = comparison_sheet(result, pick_examples(result.evaluation.report))
    sheet.savefig(run_folder / "samples.png", dpi=80)


def pick_examples(report: Report, count: int = 8) -> list[int]:
    """Samples to show: hits and misses in the proportion of the report, at least one of each where there is."""
    hits, misses = np.flatnonzero(report.isomorphic), np.flatnonzero(~report.isomorphic)
    wanted = round(count * len(hits) / len(report))
    if len(misses):
        wanted = min(wanted, count - 1)
    if len(hits):
        wanted = max(wanted, 1)
    chosen = [*hits[:wanted].tolist(), *misses[: count - wanted].tolist()]
    return sorted(chosen)[:count]


def comparison_sheet(result: Evaluated, examples: Sequence[int]) -> Figure:
    """One row per example: input, predicted graph, true graph. Wrong nodes are ringed, wrong edges red,
    missing edges red and dotted; predicted nodes stand where the nodes that they match stand."""
    from matplotlib.figure import Figure

    task = result.model.task
    figure = Figure(figsize=(8.4, 2.7 * max(len(examples), 1)), layout="constrained")
    panels = figure.subplots(max(len(examples), 1), 3, squeeze=False)
    for (left, middle, right), at in zip(panels, examples, strict=True):
        sample = result.data[result.evaluation.indices[at]]
        predicted, truth = result.evaluation.predicted[at], result.evaluation.targets[at]
        edit = edit_distance(predicted, truth)
        positions = task.positions(sample)
        task.draw_input(task.input_of(sample), left)
        _draw_prediction(task, predicted, truth, edit.alignment, positions, middle)
        task.draw_graph(truth, right, positions)
        for panel in (middle, right):
            _frame(panel, positions)
        left.set_title("input", fontsize=9)
        verdict = "exact" if edit.distance == 0 else f"{edit.distance} edit{'s' if edit.distance > 1 else ''} away"
        middle.set_title(f"prediction: {verdict}", fontsize=9, color="black" if edit.distance == 0 else WRONG)
        right.set_title("truth", fontsize=9)
    return figure


def _frame(panel: Axes, positions: Positions) -> None:
    """The same cut for prediction and truth, with room below for nodes that match nothing."""
    low, high = positions.min(0), positions.max(0)
    side = max(float((high - low).max()), 1.0)
    (left, top), (right, bottom) = (low + high - side) / 2, (low + high + side) / 2
    panel.set_xlim(left - 0.12 * side, right + 0.12 * side)
    panel.set_ylim(bottom + 0.2 * side, top - 0.12 * side)


def _draw_prediction(
    task: Task, predicted: Graph, truth: Graph, alignment: IntArray, positions: Positions, panel: Axes
) -> None:
    low, high = positions.min(0), positions.max(0)
    side = max(float((high - low).max()), 1.0)
    spare = (low + high - side) / 2 + (0.1 * side, 1.12 * side)
    beside = np.array([0.12 * side, 0])
    where = np.array([positions[t] if t < truth.size else spare + i * beside
                      for i, t in enumerate(alignment[: predicted.size])]).reshape(-1, 2)  # fmt: skip
    task.draw_graph(predicted, panel, where)
    matrix = truth.edge_matrix()
    seen = set()
    for (i, j), label in zip(predicted.edges.tolist(), predicted.edge_labels.tolist(), strict=True):
        a, b = int(alignment[i]), int(alignment[j])
        seen.add((min(a, b), max(a, b)))
        if max(a, b) >= truth.size or matrix[a, b] != label:
            panel.plot(*where[[i, j]].T, color=WRONG, linewidth=2.5, zorder=1.5)
    for a, b in truth.edges.tolist():
        if (a, b) not in seen:
            panel.plot(*positions[[a, b]].T, color=WRONG, linewidth=2, linestyle=":", zorder=1.5)
    names = predicted.node_names
    for i, t in enumerate(alignment[: predicted.size].tolist()):
        if t >= truth.size or names[i] != truth.node_names[t]:
            panel.scatter(
                where[i, 0], where[i, 1], s=420, facecolors="none", edgecolors=WRONG, linewidths=2, zorder=4
            )
    for t in set(range(truth.size)) - set(alignment[: predicted.size].tolist()):
        panel.scatter(
            positions[t, 0],
            positions[t, 1],
            s=220,
            facecolors="none",
            edgecolors=WRONG,
            linestyle=":",
            linewidths=2,
            zorder=4,
        )
