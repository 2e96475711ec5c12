"""Pictures of graphs, with matplotlib (extra `image`)."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphwright.files import replacing
from graphwright.graphs.convert import to_networkx
from graphwright.graphs.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#4C78A8", "#F58518", "#54A24B", "#E45756", "#72B7B2", "#B279A2", "#EECA3B", "#9D755D")


POSITIONS = (("x", "y", "z"), *(tuple(f"{name}[{at}]" for at in range(3)) for name in ("position", "pos")))
"""Attributes that say where a node is; with the third of them it is in no plane."""


def positions_of(graph: Graph) -> NDArray[np.float64] | None:
    """(n, 2) where the nodes are by their own attributes, in [-1, 1]; None where they do not say."""
    names = graph.vocabulary.attribute_names
    plane = next(([x, y] for x, y, z in POSITIONS if x in names and y in names and z not in names), None)
    if plane is None or graph.attributes is None:
        return None
    points = graph.attributes[:, [names.index(name) for name in plane]]
    if not len(points):
        return points
    low, high = points.min(0), points.max(0)
    span = float((high - low).max()) / 2
    return np.asarray((points - (low + high) / 2) / (span if span > 0 else 1), np.float64)


def layout(graph: Graph) -> NDArray[np.float64]:
    """(n, 2) positions in [-1, 1]: the nodes' own, or neighbours close, the rest apart (Kamada and Kawai)."""
    import networkx as nx

    if graph.size == 0:
        return np.zeros((0, 2))
    own = positions_of(graph)
    if own is not None:
        return own
    pieces = to_networkx(graph)
    # A far but finite distance between components keeps the stress finite.
    distances = {node: dict.fromkeys(pieces, graph.size**0.5 + 1) for node in pieces}
    for node, reached in nx.all_pairs_shortest_path_length(pieces):
        distances[node].update(reached)
    return np.array(list(nx.kamada_kawai_layout(pieces, dist=distances).values()))


def turned_towards(
    positions: NDArray[np.float64], goal: NDArray[np.float64], alignment: Sequence[int]
) -> NDArray[np.float64]:
    """(n, 2) positions turned or flipped so that node i comes near goal[alignment[i]], where that exists."""
    met = [(at, node) for at, node in enumerate(alignment) if node < len(goal)]
    if len(met) < 2:
        return positions
    mine, theirs = (np.array(indices) for indices in zip(*met, strict=True))
    centred, aim = positions - positions[mine].mean(0), goal - goal[theirs].mean(0)
    left, _, right = np.linalg.svd(centred[mine].T @ aim[theirs])
    return np.asarray(centred @ (left @ right), np.float64)


def draw(
    graph: Graph,
    ax: Axes | None = None,
    positions: ArrayLike | None = None,
    colors: Mapping[str, Any] | None = None,
) -> Axes:
    """Draw a graph: fill by node label, line style by edge label, the node's index inside.

    positions: (n, 2), default `layout(graph)`. colors: by label name, a palette for names left out.
    """
    points = np.asarray(layout(graph) if positions is None else positions, np.float64)
    if points.shape != (graph.size, 2):
        raise ValueError(f"positions must have shape {(graph.size, 2)}, got {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError(f"positions[{np.argwhere(~np.isfinite(points))[0, 0]}] is not finite")
    if ax is None:
        ax = _new_axes()
    palette = {name: PALETTE[code % len(PALETTE)] for code, name in enumerate(graph.vocabulary.nodes)}
    fills = {**palette, **(colors or {})}
    styles = ("-", "--", ":", "-.")
    # Unclipped: equal aspect leaves a graph in one line a box without height, which would cut it away.
    for (i, j), code in zip(graph.edges.tolist(), graph.edge_labels.tolist(), strict=True):
        x, y = points[[i, j]].T
        style = styles[(code - 1) % len(styles)]
        ax.plot(x, y, color="#555555", linewidth=1.5, linestyle=style, zorder=1, clip_on=False)
    if graph.size:
        shades = [fills[name] for name in graph.node_names]
        x, y = points.T
        ax.scatter(x, y, s=220, c=shades, edgecolors="#222222", linewidths=1, zorder=2, clip_on=False)
    for node, point in enumerate(points):
        ax.annotate(str(node), point, ha="center", va="center", fontsize=8, zorder=3)
    ax.set_aspect("equal")
    ax.margins(0.2)
    ax.set_axis_off()
    return ax


def save_figure(figure: Figure, path: Path, **options: Any) -> None:
    """Write a figure at once or not at all, in the format of the path's ending, with options of matplotlib's."""
    with replacing(path) as draft:
        figure.savefig(draft, format=path.suffix.removeprefix(".") or "png", **options)


def _new_axes() -> Axes:
    with needing_matplotlib():
        import matplotlib.pyplot as plt
    return plt.figure(figsize=(3, 3)).add_subplot()


@contextmanager
def needing_matplotlib() -> Iterator[None]:
    """Around its import: where it is missing, the error says what to install."""
    try:
        yield
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'graphwright[image]'") from error


def empty_sheet(
    samples: int, columns: int, cell: tuple[float, float], widths: Sequence[float]
) -> tuple[Figure, list[list[Axes]]]:
    """An empty figure of samples, `columns` in a row of cells (width, height), and the panels of each cell.

    widths: of the panels of a cell, relative to each other. There may be more cells than samples.
    """
    with needing_matplotlib():
        from matplotlib.figure import Figure
    if not samples:
        raise ValueError("samples must not be empty")
    rows = -(-samples // columns)
    figure = Figure(figsize=(cell[0] * columns, cell[1] * rows), layout="constrained")
    panels = figure.subplots(rows, len(widths) * columns, squeeze=False, width_ratios=list(widths) * columns)
    for panel in panels.flat:
        panel.set_axis_off()
    return figure, panels.reshape(-1, len(widths)).tolist()
