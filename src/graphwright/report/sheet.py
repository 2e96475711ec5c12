"""Input, prediction and truth side by side, with what is wrong in red."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphwright.graphs import Graph, draw
from graphwright.graphs.graph import IntArray
from graphwright.metrics import Report, edit_distance
from graphwright.report.evaluation import Evaluated, evaluate_saved
from graphwright.tasks.coloring import RGB
from graphwright.training.saved_model import load_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WRONG = "#d62728"
DRAWN_FROM = 64
"""Validation samples among which a run's pictures are chosen."""


def write_samples(run_folder: Path) -> None:
    """Draw samples.png of a run: validation samples, hits and misses in their proportion."""
    model = load_model(str(run_folder))
    result = evaluate_saved(model, "validation", None, min(DRAWN_FROM, model.run.train.validation_samples))
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
    """One row per example: picture, predicted graph, true graph. Wrong nodes are ringed, wrong edges red,
    missing edges red and dotted; predicted nodes stand where the nodes that they match stand."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 2.7 * max(len(examples), 1)), layout="constrained")
    panels = figure.subplots(max(len(examples), 1), 3, squeeze=False)
    for (left, middle, right), at in zip(panels, examples, strict=True):
        sample = result.data[result.evaluation.indices[at]]
        predicted, truth = result.evaluation.predicted[at], result.evaluation.targets[at]
        edit = edit_distance(predicted, truth)
        side = sample.image.shape[-1]
        places = sample.pixels[:, ::-1].astype(np.float64)
        left.imshow(sample.image.transpose(1, 2, 0), interpolation="nearest")
        left.set_axis_off()
        _draw_prediction(predicted, truth, edit.alignment, places, side, middle)
        draw(truth, right, places, RGB)
        for panel in (middle, right):
            panel.set_xlim(-0.08 * side, 1.08 * side)
            panel.set_ylim(1.08 * side, -0.08 * side)
        left.set_title("input", fontsize=9)
        verdict = "exact" if edit.distance == 0 else f"{edit.distance} edit{'s' if edit.distance > 1 else ''} away"
        middle.set_title(f"prediction: {verdict}", fontsize=9, color="black" if edit.distance == 0 else WRONG)
        right.set_title("truth", fontsize=9)
    return figure


def _draw_prediction(
    predicted: Graph, truth: Graph, alignment: IntArray, places: NDArray[np.float64], side: int, panel: Axes
) -> None:
    where = np.array([places[t] if t < truth.size else (side * (0.1 + 0.12 * i), side * 1.04)
                      for i, t in enumerate(alignment[: predicted.size])]).reshape(-1, 2)  # fmt: skip
    draw(predicted, panel, where, RGB)
    matrix = truth.edge_matrix()
    seen = set()
    for i, j in predicted.edges.tolist():
        a, b = int(alignment[i]), int(alignment[j])
        seen.add((min(a, b), max(a, b)))
        if max(a, b) >= truth.size or matrix[a, b] == 0:
            panel.plot(*where[[i, j]].T, color=WRONG, linewidth=2.5, zorder=1.5)
    for a, b in truth.edges.tolist():
        if (a, b) not in seen:
            panel.plot(*places[[a, b]].T, color=WRONG, linewidth=2, linestyle=":", zorder=1.5)
    names = predicted.node_names
    for i, t in enumerate(alignment[: predicted.size].tolist()):
        if t >= truth.size or names[i] != truth.node_names[t]:
            panel.scatter(
                where[i, 0], where[i, 1], s=420, facecolors="none", edgecolors=WRONG, linewidths=2, zorder=4
            )
    for t in set(range(truth.size)) - set(alignment[: predicted.size].tolist()):
        panel.scatter(
            places[t, 0],
            places[t, 1],
            s=220,
            facecolors="none",
            edgecolors=WRONG,
            linestyle=":",
            linewidths=2,
            zorder=4,
        )
