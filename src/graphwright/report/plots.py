"""Learning curves and a plan as figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from graphwright.inference.evaluate import Evaluated
from graphwright.losses import matching_problem
from graphwright.metrics import METRICS
from graphwright.training.log import VALIDATION
from graphwright.transport import mirror_descent, round_to_permutation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOSSES = ("presence", "node_labels", "edge_labels", "adjacency", "diffusion", "marginals", "recognition")


CURVES = ("isomorphic", "size_accuracy")
"""Metrics of validations, in per cent."""


def learning_curves(records: Sequence[dict[str, Any]]) -> Figure:
    """Loss terms, validation figures and the matcher's health over training minutes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    steps = [record for record in records if "loss" in record]
    checks = [record for record in records if VALIDATION in record]
    for name in LOSSES:
        if any(record.get(name) for record in steps):
            left.plot(*_series(steps, name), label=name.replace("_", " "))
    left.set_yscale("log")
    left.set_title("loss terms")
    for name in CURVES:
        middle.plot(*_series(checks, name), marker="o", markersize=3, label=METRICS[name].column)
    middle.set_ylim(0, 100)
    middle.set_title("validation")
    for name in ("gap", "plan_entropy", "marginal_error"):
        if any(name in record for record in steps):
            right.plot(*_series(steps, name), label=name.replace("_", " "))
    right.set_title("matcher")
    for panel in (left, middle, right):
        panel.set_xlabel("minutes")
        if panel.get_legend_handles_labels()[0]:
            panel.legend(fontsize=8)
        panel.grid(alpha=0.3)
    return figure


def _series(records: Sequence[dict[str, Any]], name: str) -> tuple[list[float], list[float]]:
    points = [(record["seconds"] / 60, record[name]) for record in records if name in record]
    return [x for x, _ in points], [y for _, y in points]


@torch.no_grad()
def plan_heat_map(result: Evaluated, at: int) -> Figure:
    """The transport plan between predicted slots and target nodes of one sample, real nodes framed."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    inputs, target = result.data.batch([result.evaluation.indices[at]])
    prediction = result.model.predictor(inputs).graphs
    target = target.pad(prediction.capacity)
    plan = mirror_descent(matching_problem(prediction, target, result.model.run.loss)).matrix[0]
    order = round_to_permutation(plan.mT[None])[0]
    figure = Figure(figsize=(3.8, 3.4), layout="constrained")
    panel = figure.subplots()
    image = panel.imshow(plan[order].numpy(), cmap="magma", vmin=0, vmax=1)
    size, n = int(target.sizes[0]), target.capacity
    names = [name[:2] for name in target[0].node_names]
    panel.add_patch(Rectangle((-0.5, -0.5), size, size, fill=False, edgecolor="#4cc9f0", linewidth=2))
    panel.set_xticks(range(n), [names[t] if t < size else "·" for t in range(n)])
    panel.set_yticks(range(n), [str(slot) for slot in order.tolist()])
    panel.set_xlabel("target node (its label; · is padding)")
    panel.set_ylabel("slot")
    figure.colorbar(image)
    return figure
