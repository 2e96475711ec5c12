"""The figures of the grids: bars beside the paper's, quality against cost, error against size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphwright.experiments.grid import FigureKind, Grid, Scale
from graphwright.experiments.table import Figure as Measured
from graphwright.experiments.table import Row
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


def _bars(grid: Grid, rows: Sequence[Row]) -> Drawing:
    """Per task the true edit distance (left) and exact graphs (right), which all methods have; the paper's, which
    are of its own alignment, as diamonds."""
    from matplotlib.figure import Figure

    parts = [[row for row in rows if row.measured.configuration.column == column.name] for column in grid.columns]
    # A task of which there is nothing to show, yet, has no panel.
    parts = [part for part in parts if any(row.measured.figures or row.printed for row in part)]
    if not parts:
        return Figure(figsize=(9.5, 0.6), layout="constrained")
    heights = [1.0 + 0.3 * len(part) for part in parts]
    drawing = Figure(figsize=(9.5, sum(heights) + 0.3), layout="constrained")
    panels = drawing.subplots(len(parts), 2, squeeze=False, gridspec_kw={"height_ratios": heights})
    names = list(dict.fromkeys(row.measured.configuration.method for row in rows))
    for (left, right), own in zip(panels, parts, strict=True):
        column = own[0].measured.configuration.column
        for panel, metric, at in ((left, "edit", 0), (right, "isomorphic", 1)):
            _bar_panel(panel, own, names, metric, at)
        left.set_title(f"{column}: true edit distance", fontsize=9)
        right.set_title(f"{column}: isomorphic graphs, %", fontsize=9)
        right.set_yticklabels([])
    panels[0, 0].legend(fontsize=7)
    return drawing


def _bar_panel(panel: Axes, rows: Sequence[Row], names: Sequence[str], metric: str, at: int) -> None:
    """The bars of a metric, and what the paper prints at `at`."""
    for index, row in enumerate(rows):
        color = PALETTE[names.index(row.measured.configuration.method) % len(PALETTE)]
        measured = row.measured.figures.get(metric)
        if measured is not None:
            low, high = _spread(measured)
            error = [[max(measured.mean - low, 0)], [max(high - measured.mean, 0)]]
            panel.barh(index, measured.mean, color=color, xerr=error, capsize=3, height=0.7)
            panel.plot(
                measured.seeds,
                [index] * len(measured.seeds),
                "o",
                color="white",
                markersize=3,
                markeredgecolor="k",
            )
        if row.printed is not None:
            panel.plot(row.printed[at], index, marker="D", color=PRINTED, markersize=6, linestyle="none")
    panel.plot([], [], marker="D", color=PRINTED, linestyle="none", label="paper, aligned")
    panel.plot([], [], "o", color="white", markeredgecolor="k", markersize=3, label="one seed")
    panel.set_yticks(range(len(rows)), [row.measured.configuration.method for row in rows], fontsize=8)
    panel.set_ylim(len(rows) - 0.4, -0.6)
    panel.set_xlim(left=0)
    panel.grid(axis="x", alpha=0.3)


def _spread(measured: Measured) -> tuple[float, float]:
    """The interval of a figure; where there is none, its seeds' least and largest mean."""
    if measured.interval is None:
        return min(measured.seeds), max(measured.seeds)
    return measured.interval.low, measured.interval.high


def _frontier(grid: Grid, rows: Sequence[Row]) -> Drawing:  # noqa: ARG001
    """Edit distance against training seconds per sample, a line through what nothing of its method dominates."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(7, 4.6), layout="constrained")
    panel = drawing.subplots()
    for series, color, marker, own in _series(rows):
        points = [
            (row.measured.training["seconds_per_sample"], row.measured.figures["aligned_edit"].mean, row)
            for row in own
            if "seconds_per_sample" in row.measured.training and "aligned_edit" in row.measured.figures
        ]
        for x, y, row in points:
            panel.plot([x, x], _spread(row.measured.figures["aligned_edit"]), color=color, linewidth=1, alpha=0.6)
            panel.annotate(
                row.measured.configuration.method.removeprefix(series).strip(" ,"),
                (x, y),
                xytext=(4, 4),
                textcoords="offset points",
                fontsize=6,
            )
        panel.plot([x for x, *_ in points], [y for _, y, _ in points], marker, color=color, label=series)
        best = frontier([(x, y) for x, y, _ in points])
        panel.plot([x for x, _ in best], [y for _, y in best], color=color, linewidth=1)
    panel.set_xscale("log")
    panel.set_xlabel("training seconds per sample")
    panel.set_ylabel("aligned edit distance")
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8)
    return drawing


def frontier(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other equals or beats in both coordinates, by the first."""
    kept: list[tuple[float, float]] = []
    for point in sorted(points):
        if not kept or point[1] < kept[-1][1]:
            kept.append(point)
    return kept


def _curve(grid: Grid, rows: Sequence[Row]) -> Drawing:
    """Edit distance against N: every candidate faint, the selected ones joined."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(7, 4.6), layout="constrained")
    panel = drawing.subplots()
    for series, color, marker, own in _series(rows):
        known = [row for row in own if "aligned_edit" in row.measured.figures]
        for row in known:
            figure, x = row.measured.figures["aligned_edit"], row.measured.configuration.x
            panel.plot(x, figure.mean, marker, color=color, alpha=0.3, markersize=4)
        line = [row for row in known if row.selected]
        xs = [row.measured.configuration.x for row in line]
        figures = [row.measured.figures["aligned_edit"] for row in line]
        panel.plot(xs, [figure.mean for figure in figures], f"{marker}-", color=color, label=series)
        spreads = [_spread(figure) for figure in figures]
        panel.fill_between(
            xs, [low for low, _ in spreads], [high for _, high in spreads], color=color, alpha=0.15, linewidth=0
        )
    for method, cells in (grid.printed | grid.beside).items():
        order = {column.name: at for at, column in enumerate(grid.columns)}
        names = sorted(cells, key=lambda name: order[name])
        xs = [float(name.rpartition(" ")[2]) for name in names]
        panel.plot(xs, [cells[name][0] for name in names], "D", color=PRINTED, label=f"paper: {method}")
    panel.set_xlabel("largest graph, N")
    panel.set_ylabel("aligned edit distance")
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8)
    return drawing


def _progress(grid: Grid, rows: Sequence[Row]) -> Drawing:
    """Per task the validation samples that are exactly right against minutes of training, a line for every run."""
    from matplotlib.figure import Figure

    # A scale need not have every task.
    present = {row.measured.configuration.column for row in rows}
    columns = [column for column in grid.columns if column.name in present]
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
