"""What is in a set of Coloring samples, and how fast they came."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from graphwright.graphs import Graph
from graphwright.tasks.coloring.picture import COLORS
from graphwright.tasks.coloring.sample import ColoringSample


@dataclass(frozen=True)
class ColoringStatistics:
    """Sizes and edges per graph, degrees and colours over all nodes, share of connected graphs, speed."""

    samples: int
    size_min: int
    size_mean: float
    size_max: int
    edges_mean: float
    degree_mean: float
    degree_max: int
    color_shares: dict[str, float]
    connected_share: float
    samples_per_second: float


def statistics(samples: Iterable[ColoringSample]) -> ColoringStatistics:
    """Statistics of the samples; the speed is that of the iterable, so give it a lazy one."""
    graphs: list[Graph] = []
    start = time.perf_counter()
    graphs.extend(sample.graph for sample in samples)
    seconds = time.perf_counter() - start
    if not graphs:
        raise ValueError("samples must not be empty")
    sizes = np.array([graph.size for graph in graphs])
    edges = np.array([len(graph.edges) for graph in graphs])
    degrees = np.concatenate([np.bincount(graph.edges.ravel(), minlength=graph.size) for graph in graphs])
    colors = np.bincount(np.concatenate([graph.node_labels for graph in graphs]), minlength=len(COLORS))
    return ColoringStatistics(
        samples=len(graphs),
        size_min=int(sizes.min()),
        size_mean=float(sizes.mean()),
        size_max=int(sizes.max()),
        edges_mean=float(edges.mean()),
        degree_mean=float(degrees.mean()),
        degree_max=int(degrees.max()),
        color_shares=dict(zip(COLORS, (colors / colors.sum()).tolist(), strict=True)),
        connected_share=sum(map(_is_connected, graphs)) / len(graphs),
        samples_per_second=len(graphs) / seconds,
    )


def _is_connected(graph: Graph) -> bool:
    pieces, _ = connected_components(graph.edge_matrix(), directed=False)
    return pieces == 1
