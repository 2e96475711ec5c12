"""How the cost of a plan grows with n and with the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.measurement import Row, interleaved_milliseconds
from benchmarks.plans import LOOP_NAMES, load_pot, make_case, pot_loop
from benchmarks.sinkhorn import EAGER, NAME
from benchmarks.sinkhorn_case import eager_sinkhorn, make_sinkhorn_case, our_plans
from graphwright.training.processes import threads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCH = 128
"""The batch at which n grows."""
SIZE = 32
"""The n at which the batch grows."""
STEPS = 20


def measure_scaling(
    sizes: tuple[int, ...] = (5, 10, 20, 32, 60, 100),
    batches: tuple[int, ...] = (1, 8, 32, 128, 512, 1536),
    repeats: int = 3,
    threads_used: int = 1,
) -> Iterator[Row]:
    """Sinkhorn forward and backward beside the eager version and Any2Graph's solver, n and batch in turn."""
    points = [(n, BATCH) for n in sizes] + [(SIZE, batch) for batch in batches]
    ot = load_pot()
    with threads(threads_used):
        for n, batch in dict.fromkeys(points):
            sinkhorn, matching = make_sinkhorn_case(batch, n), make_case(batch, n, fused=True)
            ours, eager, loop = interleaved_milliseconds(
                [
                    partial(sinkhorn.pass_through, our_plans),
                    partial(sinkhorn.pass_through, eager_sinkhorn),
                    partial(pot_loop, ot, matching, STEPS),
                ],
                repeats,
            )
            for peer, time in ((EAGER, eager), (LOOP_NAMES[True], loop)):
                yield Row(NAME, n, batch, threads_used, ours / batch, peer, time / batch)


@dataclass(frozen=True)
class Curve:
    """Milliseconds per batch over n, or over the batch."""

    name: str
    at: list[int]
    milliseconds: list[float]


def curves(rows: Sequence[Row]) -> list[Curve]:
    """Ours, then every peer, over whatever differs between the rows (n or batch)."""
    by_n = len({row.n for row in rows}) > 1
    points: dict[str, dict[int, float]] = {"ours": {}}
    for row in sorted(rows, key=lambda row: (row.n, row.batch)):
        at = row.n if by_n else row.batch
        points["ours"][at] = row.ours_ms * row.batch
        points.setdefault(row.peer, {})[at] = row.peer_ms * row.batch
    return [Curve(name, list(values), list(values.values())) for name, values in points.items()]


def scaling_figure(rows: Sequence[Row]) -> Figure:
    """Log-log: milliseconds per batch over n, and over the batch."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("the plot needs matplotlib: pip install 'graphwright[image]'") from error

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    panels = (
        (left, "n", f"batch {BATCH}", [row for row in rows if row.batch == BATCH]),
        (right, "batch", f"n = {SIZE}", [row for row in rows if row.n == SIZE]),
    )
    for panel, axis, title, shown in panels:
        for curve in curves(shown):
            label = "graphwright" if curve.name == "ours" else curve.name
            panel.plot(curve.at, curve.milliseconds, marker="o", markersize=3, label=label)
        panel.set_xscale("log")
        panel.set_yscale("log")
        measured = sorted({at for curve in curves(shown) for at in curve.at})
        panel.set_xticks(measured, [str(at) for at in measured])
        panel.set_xticks([], minor=True)
        panel.set_xlabel(axis)
        panel.set_title(title)
        panel.grid(alpha=0.3, which="both")
    left.set_ylabel("ms per batch")
    left.legend(fontsize=8)
    figure.suptitle(f"{NAME}, one thread; the loop is a conditional gradient without gradient")
    return figure
