"""The figures of the grids: bars beside the paper's, quality against cost, error against size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphwright.experiments.grid import FigureKind, Grid, Scale
from graphwright.experiments.table import Average, Measured, Row
from graphwright.graphs.drawing import PALETTE, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

PRINTED = "#222222"
MARKERS = "osD^vP*X"


def write_figure(folder: Path, drawing: Drawing, name: str = "figure") -> None:
    """As PNG and SVG; the same figures give the same bytes."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "graphwright"}):
        save_figure(drawing, folder / f"{name}.png", dpi=110)
        save_figure(drawing, folder / f"{name}.svg", metadata={"Date": None})


def draw_grid(grid: Grid, scale: Scale, rows: Sequence[Row]) -> Drawing:
    drawings = {
        FigureKind.BARS: _bars,
        FigureKind.FRONTIER: _frontier,
        FigureKind.CURVE: _curve,
        FigureKind.PROGRESS: _progress,
    }
    drawing = drawings[grid.figure](grid, rows)
    drawing.suptitle(f"{grid.title}, scale {scale}", fontsize=10)
    return drawing


BARS = (("aligned_edit", "edit", "edit distance"), ("aligned_exact", "isomorphic", "exact graphs, %"))
"""Panels: the paper's own metric, with which its figures compare; the true one of what has no slots; a title."""


def _bars(grid: Grid, rows: Sequence[Row]) -> Drawing:
    """Per task edit distance (left) and exact graphs (right) as the paper measures them, its own as diamonds; true
    ones, hatched, of methods that give graphs without slots."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    parts = [[row for row in rows if row.measured.configuration.column == column.name] for column in grid.columns]
    # A task of which there is nothing to show, yet, has no panel.
    parts = [part for part in parts if any(row.measured.figures or row.printed for row in part)]
    if not parts:
        return Figure(figsize=(9.5, 0.6), layout="constrained")
    heights = [1.0 + 0.3 * len(part) for part in parts]
    drawing = Figure(figsize=(9.5, sum(heights) + 0.6), layout="constrained")
    panels = drawing.subplots(len(parts), 2, squeeze=False, gridspec_kw={"height_ratios": heights})
    names = list(dict.fromkeys(row.measured.configuration.method for row in rows))
    for pair, own in zip(panels, parts, strict=True):
        column = own[0].measured.configuration.column
        for at, (panel, (aligned, true, title)) in enumerate(zip(pair, BARS, strict=True)):
            shown = [_aligned_or_true(row.measured, aligned, true) for row in own]
            _bar_panel(panel, own, shown, names)
            printed = [(row.printed[at], index) for index, row in enumerate(own) if row.printed is not None]
            panel.plot(*zip(*printed, strict=True) if printed else ([], []), "D", color=PRINTED, markersize=6)
            panel.set_title(f"{column}: {title}", fontsize=9)
            averages = [average.mean for average, _ in shown if average is not None]
            # Bars that are all nothing look like nothing.
            panel.set_xlim(0, None if max([0, *averages, *(value for value, _ in printed)]) > 0 else 1)
        pair[1].set_yticklabels([])
    handles = [
        Line2D([], [], marker="D", color=PRINTED, linestyle="none", label="paper"),
        Line2D([], [], marker="o", color="white", markeredgecolor="k", markersize=3, label="one seed"),
        Patch(facecolor="white", edgecolor="k", hatch=HATCH, label="true, without slots to align"),
    ]
    drawing.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=7)
    return drawing


HATCH = "////"


def _aligned_or_true(measured: Measured, aligned: str, true: str) -> tuple[Average | None, bool]:
    """What a bar shows, and whether it is the true metric, in want of the paper's."""
    return measured.figures.get(aligned, measured.figures.get(true)), aligned not in measured.figures


def _bar_panel(
    panel: Axes, rows: Sequence[Row], shown: Sequence[tuple[Average | None, bool]], names: Sequence[str]
) -> None:
    """A bar for every row, with its interval and seeds."""
    for index, (row, (average, true)) in enumerate(zip(rows, shown, strict=True)):
        if average is None:
            continue
        color = PALETTE[names.index(row.measured.configuration.method) % len(PALETTE)]
        low, high = _spread(average)
        error = [[max(average.mean - low, 0)], [max(high - average.mean, 0)]]
        bar = panel.barh(index, average.mean, xerr=error, capsize=3, height=0.7, color=color)
        if true:
            bar[0].set(facecolor="white", edgecolor=color, hatch=HATCH)
        heights = [index] * len(average.seeds)
        panel.plot(average.seeds, heights, "o", color="white", markersize=3, markeredgecolor="k")
    panel.set_yticks(range(len(rows)), [row.measured.configuration.method for row in rows], fontsize=8)
    panel.set_ylim(len(rows) - 0.4, -0.6)
    panel.grid(axis="x", alpha=0.3)


def _spread(average: Average) -> tuple[float, float]:
    """The interval of a figure; where there is none, its seeds' least and largest mean."""
    if average.interval is None:
        return min(average.seeds), max(average.seeds)
    return average.interval.low, average.interval.high


def _frontier(grid: Grid, rows: Sequence[Row]) -> Drawing:  # noqa: ARG001
    """Edit distance (left) and exact graphs (right) against what a sample costs in training, a line through what
    nothing of its method dominates; the name of every point stands beside the panel."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(12, 4.8), layout="constrained")
    panels = drawing.subplots(1, 2)
    _cost_panel(panels[0], rows, "aligned_edit", better=-1)
    _cost_panel(panels[1], rows, "isomorphic", better=1)
    panels[0].set_ylabel("aligned edit distance")
    panels[1].set_ylabel("isomorphic graphs, %")
    panels[0].legend(fontsize=8)
    return drawing


def _cost_panel(panel: Axes, rows: Sequence[Row], metric: str, better: int) -> None:
    """A metric against milliseconds per sample; `better` is 1 where more is better, else -1."""
    names: list[tuple[str, str, float, float]] = []
    for series, color, marker, own in _series(rows):
        known = [row for row in own if "seconds_per_sample" in row.measured.training]
        known = [row for row in known if metric in row.measured.figures]
        figures = [row.measured.figures[metric] for row in known]
        xs = [1000 * row.measured.training["seconds_per_sample"] for row in known]
        ys = [figure.mean for figure in figures]
        for row, x, figure in zip(known, xs, figures, strict=True):
            panel.plot([x, x], _spread(figure), color=color, linewidth=1, alpha=0.6)
            name = row.measured.configuration.method.removeprefix(series).strip(" ,")
            names.append((name, color, x, figure.mean))
        panel.plot(xs, ys, marker, color=color, label=series)
        best = frontier([(x, -better * y) for x, y in zip(xs, ys, strict=True)])
        panel.plot([x for x, _ in best], [-better * y for _, y in best], color=color, linewidth=1)
    costs = [x for _, _, x, _ in names]
    if costs:
        # Costs that hardly differ shall not look as if they did.
        middle, spread = (max(costs) * min(costs)) ** 0.5, max((max(costs) / min(costs)) ** 0.5, LEAST_SPREAD)
        panel.set_xscale("log")
        panel.set_xlim(middle / spread / 1.1, middle * spread * 1.1)
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter("{x:g}")
    panel.set_xlabel("milliseconds of training per sample")
    panel.grid(alpha=0.3)
    _names_beside(panel, names)


LEAST_SPREAD = 1.25
"""The axis of costs reaches at least this factor to each side of their middle."""


def _names_beside(panel: Axes, names: Sequence[tuple[str, str, float, float]]) -> None:
    """Names (text, color, x, y) in a list at the right of a panel, each joined to its point."""
    low, high = panel.get_ylim()
    ordered = sorted(names, key=lambda each: each[3])
    heights = spread_apart([(y - low) / (high - low) for *_, y in ordered], 0.056)
    for (text, color, x, y), height in zip(ordered, heights, strict=True):
        panel.annotate(
            text,
            (x, y),
            xytext=(1.03, height),
            textcoords="axes fraction",
            fontsize=7,
            color=color,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.4, "alpha": 0.5, "shrinkB": 3},
        )


def spread_apart(heights: Sequence[float], gap: float) -> list[float]:
    """Ascending heights moved as little as a pass up and a pass down can, so that neighbours are `gap` apart."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + gap) if moved else max(height, 0.0))
    ceiling = max(1.0, gap * (len(moved) - 1))
    for at in reversed(range(len(moved))):
        moved[at] = min(moved[at], ceiling)
        ceiling = moved[at] - gap
    return moved


def frontier(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other equals or beats in both coordinates, by the first."""
    kept: list[tuple[float, float]] = []
    for point in sorted(points):
        if not kept or point[1] < kept[-1][1]:
            kept.append(point)
    return kept


def _curve(grid: Grid, rows: Sequence[Row]) -> Drawing:
    """Edit distance against N (left), and seed by seed divided by that of the first series (right), where those
    that lead are below one: as the paper aligns, and dotted the true one."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = drawing.subplots(1, 2)
    first = _series(rows)[0][3]
    for series, color, marker, own in _series(rows):
        for row in own:
            if "aligned_edit" in row.measured.figures:
                y = row.measured.figures["aligned_edit"].mean
                left.plot(row.measured.configuration.x, y, marker, color=color, alpha=0.3, markersize=4)
        line, reference = _selected(own, "aligned_edit"), _selected(first, "aligned_edit")
        style = {"marker": marker, "color": color, "label": series}
        left.plot(list(line), [figure.mean for figure in line.values()], **style)
        lows, highs = zip(*map(_spread, line.values()), strict=True) if line else ((), ())
        left.fill_between(list(line), lows, highs, color=color, alpha=0.15, linewidth=0)
        shared = [x for x in line if x in reference]
        right.plot(shared, [line[x].mean / reference[x].mean for x in shared], **style)
        for x in shared:
            pairs = zip(line[x].seeds, reference[x].seeds, strict=False)
            ratios = [own_seed / other for own_seed, other in pairs]
            right.plot([x] * len(ratios), ratios, marker, color=color, alpha=0.4, markersize=4)
        true, true_reference = _selected(own, "edit"), _selected(first, "edit")
        if shared := [x for x in true if x in true_reference]:
            right.plot(shared, [true[x].mean / true_reference[x].mean for x in shared], ":", color=color)
    for method, cells in (grid.printed | grid.beside).items():
        order = {column.name: at for at, column in enumerate(grid.columns)}
        names = sorted(cells, key=lambda name: order[name])
        xs = [float(name.rpartition(" ")[2]) for name in names]
        left.plot(xs, [cells[name][0] for name in names], "D", color=PRINTED, label=f"paper: {method}")
    left.set_ylabel("aligned edit distance")
    right.set_ylabel(f"divided by {_series(rows)[0][0]}'s (dotted: true edits)")
    for panel in (left, right):
        panel.set_xlabel("largest graph, N")
        panel.grid(alpha=0.3)
    left.legend(fontsize=8)
    return drawing


def _selected(rows: Sequence[Row], metric: str) -> dict[float, Average]:
    """What a series has of a metric, by N."""
    return {
        row.measured.configuration.x: row.measured.figures[metric]
        for row in rows
        if row.selected and metric in row.measured.figures
    }


def _progress(grid: Grid, rows: Sequence[Row]) -> Drawing:
    """Per task the validation samples that are exactly right against minutes of training, a line for every run."""
    from matplotlib.figure import Figure

    # Tasks and methods without a run, yet, have nothing to show.
    rows = [row for row in rows if any(row.measured.progress)]
    present = {row.measured.configuration.column for row in rows}
    columns = [column for column in grid.columns if column.name in present]
    if not columns:
        return Figure(figsize=(9.5, 0.6), layout="constrained")
    drawing = Figure(figsize=(4.2 * len(columns), 4.0), layout="constrained")
    panels = drawing.subplots(1, len(columns), squeeze=False)[0]
    for panel, column in zip(panels, columns, strict=True):
        for _, color, marker, own in _series(rows):
            here = [row.measured for row in own if row.measured.configuration.column == column.name]
            for run in (run for measured in here for run in measured.progress):
                minutes, values = [seconds / 60 for seconds, _ in run], [value for _, value in run]
                panel.plot(minutes, values, f"{marker}-", color=color, markersize=3, linewidth=1)
        for method, cells in grid.printed.items():
            if column.name in cells:
                panel.axhline(cells[column.name][1], color=PRINTED, linewidth=0.8, linestyle=":")
                where = {"transform": panel.get_yaxis_transform(), "va": "bottom"}
                panel.text(0.01, cells[column.name][1], f"paper: {method}", fontsize=6, **where)
        panel.set_title(column.name, fontsize=9)
        panel.set_xlabel("minutes of training")
        panel.grid(alpha=0.3)
    for series, color, marker, _ in _series(rows):
        panels[0].plot([], [], f"{marker}-", color=color, markersize=3, linewidth=1, label=series)
    panels[0].set_ylabel("isomorphic, % of validation samples")
    panels[0].legend(fontsize=7)
    return drawing


def _series(rows: Sequence[Row]) -> list[tuple[str, str, str, list[Row]]]:
    names = list(dict.fromkeys(row.measured.configuration.series for row in rows))
    return [
        (
            name,
            PALETTE[at % len(PALETTE)],
            MARKERS[at % len(MARKERS)],
            [row for row in rows if row.measured.configuration.series == name],
        )
        for at, name in enumerate(names)
    ]
