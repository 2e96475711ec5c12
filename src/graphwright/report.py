"""What a run achieved, as pictures and a page: learning curves, samples beside their truth, one HTML file."""

from __future__ import annotations

import base64
import html
import io
import platform
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from graphwright import __version__
from graphwright.files import write_text
from graphwright.graphs import Graph, save_figure, turned_towards
from graphwright.graphs.graph import IntArray
from graphwright.inference.decoders import PLAIN
from graphwright.inference.evaluate import Evaluated, evaluate_saved
from graphwright.inference.model import load_model
from graphwright.losses import LOSS_TERMS, matching_problem
from graphwright.metrics import PERCENT, Metric, Report, edit_distance
from graphwright.tasks import Task
from graphwright.tasks.task import Positions
from graphwright.training.log import VALIDATION, read_log, told_metrics
from graphwright.transport import mirror_descent, round_to_permutation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def learning_curves(records: Sequence[dict[str, Any]], chosen: str) -> Figure:
    """Loss terms, validation figures and the matcher's health over training minutes.

    chosen: the metric that the run's best model was chosen by; it is drawn beside the headlines.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    steps = [record for record in records if "loss" in record]
    checks = [record for record in records if VALIDATION in record]
    for name in (*LOSS_TERMS.names(), "recognition"):
        if any(record.get(name) for record in steps):
            left.plot(*_series(steps, name), label=name.replace("_", " "))
    left.set_yscale("log")
    left.set_title("loss terms")
    _draw_validations(checks, told_metrics(chosen), middle)
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


def _draw_validations(checks: Sequence[dict[str, Any]], metrics: Sequence[Metric], panel: Axes) -> None:
    """Shares from 0 to 100 % on the left, other figures on an axis of their own on the right."""
    panel.set_ylim(0, 100)
    others = panel.twinx()
    others.set_axis_off()
    for at, metric in enumerate(metrics):
        times, values = _series(checks, metric.name)
        if not values:
            continue
        axes, line = (panel, "-") if metric.unit == PERCENT else (others, "--")
        axes.plot(times, values, line, marker="o", markersize=3, color=f"C{at}")
        # One legend for both axes.
        panel.plot([], [], line, color=f"C{at}", label=metric.column)
        axes.set_axis_on()
    others.set_ylim(bottom=0)


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
    save_figure(sheet, run_folder / "samples.png", dpi=80)


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
    missing ones red and dotted: in the prediction, whose nodes stand where those that they match stand, or in the
    truth, where graphs have shapes of their own."""
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
        own = task.own_positions(predicted)
        if own is None:
            _draw_over_truth(task, predicted, truth, edit.alignment, positions, middle)
            task.draw_graph(truth, right, positions)
            for panel in (middle, right):
                _frame(panel, positions)
        else:
            met = edit.alignment[: predicted.size]
            # What is right looks right: the same atoms at the same positions.
            where = positions[met] if edit.distance == 0 else turned_towards(own, positions, met.tolist())
            task.draw_graph(predicted, middle, where)
            task.draw_graph(truth, right, positions)
            _mark_wrong(predicted, truth, edit.alignment, where, middle)
            _mark_missing(predicted, truth, edit.alignment, positions, right)
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


def _draw_over_truth(
    task: Task, predicted: Graph, truth: Graph, alignment: IntArray, positions: Positions, panel: Axes
) -> None:
    """A prediction at the positions of the truth, nodes that match nothing in a row below."""
    low, high = positions.min(0), positions.max(0)
    side = max(float((high - low).max()), 1.0)
    spare = (low + high - side) / 2 + (0.1 * side, 1.12 * side)
    beside = np.array([0.12 * side, 0])
    where = np.array([positions[t] if t < truth.size else spare + i * beside
                      for i, t in enumerate(alignment[: predicted.size])]).reshape(-1, 2)  # fmt: skip
    task.draw_graph(predicted, panel, where)
    _mark_wrong(predicted, truth, alignment, where, panel)
    _mark_missing(predicted, truth, alignment, positions, panel)


def _mark_wrong(predicted: Graph, truth: Graph, alignment: IntArray, where: Positions, panel: Axes) -> None:
    """Red what the truth has not, or has otherwise."""
    matrix = truth.edge_matrix()
    for (i, j), label in zip(predicted.edges.tolist(), predicted.edge_labels.tolist(), strict=True):
        a, b = int(alignment[i]), int(alignment[j])
        if max(a, b) >= truth.size or matrix[a, b] != label:
            panel.plot(*where[[i, j]].T, color=WRONG, linewidth=2.5, zorder=1.5)
    names = predicted.node_names
    for i, t in enumerate(alignment[: predicted.size].tolist()):
        if t >= truth.size or names[i] != truth.node_names[t]:
            x, y = where[i]
            panel.scatter(x, y, s=420, facecolors="none", edgecolors=WRONG, linewidths=2, zorder=4)


def _mark_missing(predicted: Graph, truth: Graph, alignment: IntArray, positions: Positions, panel: Axes) -> None:
    """Red and dotted what only the truth has."""
    met = alignment[: predicted.size].tolist()
    seen = {tuple(sorted((met[i], met[j]))) for i, j in predicted.edges.tolist()}
    for a, b in truth.edges.tolist():
        if (a, b) not in seen:
            panel.plot(*positions[[a, b]].T, color=WRONG, linewidth=2, linestyle=":", zorder=2.5)
    for t in set(range(truth.size)) - set(met):
        x, y = positions[t]
        panel.scatter(x, y, s=220, facecolors="none", edgecolors=WRONG, linestyle=":", linewidths=2, zorder=4)


STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { margin-bottom: 0; } .lead { color: #555; margin-top: .3rem; }
.big { font-size: 2.6rem; font-weight: 700; margin: 1rem 0 0; }
table { border-collapse: collapse; } td, th { padding: .25rem .9rem .25rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
img { max-width: 100%; } pre { background: #f4f4f4; padding: .8rem; overflow-x: auto; font-size: .85rem; }
"""


def write_report(run_folder: Path, out: Path, samples: int | None, title: str) -> Evaluated:
    """Evaluate a run's best checkpoint on unseen samples and write the page; returns the figures."""
    model = load_model(str(run_folder))
    begun = perf_counter()
    result = evaluate_saved(model, samples=samples, decode=PLAIN)  # what training has to show for itself
    seconds = perf_counter() - begun
    records = read_log(run_folder / "log.jsonl")
    examples = pick_examples(result.evaluation.report)
    sections = [
        ("Learning", _image(learning_curves(records, model.run.train.metric), "learning curves")),
        ("Figures on unseen samples", _figures(result)),
        ("Input, prediction, truth", _legend() + _image(comparison_sheet(result, examples), "examples")),
        ("A transport plan", _plan_text() + _image(plan_heat_map(result, examples[0]), "plan")),
        ("Time", _timings(records, len(result.evaluation.targets), seconds)),
        ("Settings", f"<pre>{html.escape(model.run.model_dump_json(indent=2))}</pre>"),
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, _page(title, result, sections))
    return result


def _page(title: str, result: Evaluated, sections: list[tuple[str, str]]) -> str:
    facts = result.evaluation.report.to_json()
    low, high = facts["isomorphic_interval"]
    body = "".join(f"<h2>{heading}</h2>{content}" for heading, content in sections)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style></head><body>
<h1>{html.escape(title)}</h1>
<p class="lead">{html.escape(result.model.task.summary)} The graph is predicted in one pass;
nothing tells the model which node is which.</p>
<p class="big">{facts["isomorphic"]:.1f} % of unseen graphs exactly right</p>
<p class="lead">95 % interval {low:.1f} to {high:.1f}, {facts["samples"]} samples; same nodes, same edges, same
labels{html.escape(decided(result))}.</p>
{body}
</body></html>
"""


def decided(result: Evaluated) -> str:
    """How answers came about, in words that end a sentence, where it is not how the model answers."""
    usual = result.model.decode
    return "" if result.decode == usual else f"; decided slot by slot (`evaluate` decodes {usual})"


def _figures(result: Evaluated) -> str:
    facts, rows = result.figures(), []
    for name, text in result.titles().items():
        if facts.get(name) is None:
            continue
        interval = facts.get(f"{name}_interval")
        shown = "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"
        cells = f'<td class="number">{facts[name]:.2f}</td><td class="number">{shown}</td>'
        rows.append(f"<tr><td>{html.escape(text, quote=False)}</td>{cells}</tr>")
    return f"<table><tr><th></th><th>mean</th><th>95 % interval</th></tr>{''.join(rows)}</table>"


def _timings(records: list[dict[str, float]], samples: int, seconds: float) -> str:
    steps = [record for record in records if "samples_per_second" in record]
    trained = records[-1] if records else {"seconds": 0.0, "step": 0}
    speed = sum(record["samples_per_second"] for record in steps) / max(len(steps), 1)
    rows = (
        ("training", f"{trained['seconds'] / 60:.1f} minutes, {trained['step']:,} steps"),
        ("training speed", f"{speed:,.0f} samples/s"),
        ("evaluation", f"{samples:,} samples in {seconds:.1f} s"),
        ("machine", f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"),
        ("versions", f"graphwright {__version__}, torch {torch.__version__}, Python {platform.python_version()}"),
    )
    return "<table>" + "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows) + "</table>"


def _legend() -> str:
    return (
        "<p>Wrong edges are red, missing ones red and dotted, wrong nodes ringed. Predicted nodes are drawn where "
        "the true nodes that they match stand; of molecules, what is missing is marked in the truth.</p>"
    )


def _plan_text() -> str:
    return (
        "<p>Which predicted slot (row) is taken for which true node (column): the alignment under which the loss "
        "is computed. Inside the frame are the real nodes, outside padding.</p>"
    )


def _image(figure: Figure, text: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    code = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{text}" src="data:image/png;base64,{code}">'
