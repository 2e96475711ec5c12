"""Random pairs of graphs, and their edit distance by plain definition."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
from scipy.spatial import Delaunay

from graphwright.graphs import Graph, Vocabulary, to_networkx

PLAIN = Vocabulary(("a", "b"))
LABELLED = Vocabulary(("a", "b", "c"), ("none", "single", "double", "triple"))
COLOURS = Vocabulary(("blue", "green", "red", "yellow"))


def random_graph(rng: np.random.Generator, size: int, vocabulary: Vocabulary = LABELLED) -> Graph:
    """Labels uniform, each pair joined with probability 1/2."""
    upper = np.triu(rng.integers(1, len(vocabulary.edges), (size, size)) * rng.integers(0, 2, (size, size)), 1)
    return Graph.from_matrix(rng.integers(0, len(vocabulary.nodes), size), upper + upper.T, vocabulary)


def region_graph(rng: np.random.Generator, size: int) -> Graph:
    """Neighbouring regions of random points, in four colours: like Coloring's targets."""
    matrix = np.zeros((size, size), np.int64)
    for corners in Delaunay(rng.random((size, 2))).simplices:
        for i, j in itertools.permutations(corners, 2):
            matrix[i, j] = 1
    return Graph.from_matrix(rng.integers(0, 4, size), matrix, COLOURS)


def edited(rng: np.random.Generator, graph: Graph, edits: int) -> Graph:
    """The graph after as many edits, each of one node without edges or of one edge, its nodes shuffled."""
    labels, matrix = graph.node_labels.copy(), graph.edge_matrix()
    nodes, edges = len(graph.vocabulary.nodes), len(graph.vocabulary.edges)
    for _ in range(edits):
        kind = rng.choice(["insert", "relabel", "edge"], p=[0.1, 0.3, 0.6])
        if kind == "insert" or len(labels) < 2:
            labels, matrix = np.append(labels, rng.integers(nodes)), np.pad(matrix, (0, 1))
        elif kind == "relabel":
            labels[rng.integers(len(labels))] = rng.integers(nodes)
        else:
            i, j = rng.choice(len(labels), 2, replace=False)
            matrix[i, j] = matrix[j, i] = rng.integers(edges)
    result = Graph.from_matrix(labels, matrix, graph.vocabulary)
    return result.permute(rng.permutation(result.size))


def path_cost(first: Graph, second: Graph, partners: dict[int, int]) -> int:
    """Edits that turn `first` into `second` when node i becomes partners[i] and all others go or come."""
    left, right = first.edge_matrix(), second.edge_matrix()
    cost = first.size + second.size - 2 * len(partners)
    cost += sum(first.node_labels[i] != second.node_labels[k] for i, k in partners.items())
    kept = 0
    for (i, i_met), (j, j_met) in itertools.combinations(partners.items(), 2):
        cost += left[i, j] != right[i_met, j_met]
        kept += int(left[i, j] > 0) + int(right[i_met, j_met] > 0)
    return int(cost + len(first.edges) + len(second.edges) - kept)


def alignment_cost(first: Graph, second: Graph, alignment: np.ndarray) -> int:
    """Edits under an alignment of max(size) slots."""
    partners = {i: int(k) for i, k in enumerate(alignment) if i < first.size and k < second.size}
    return path_cost(first, second, partners)


def least_path(first: Graph, second: Graph) -> int:
    """The edit distance: over every choice of nodes to keep and of their partners, up to 4 nodes or so."""
    return min(
        path_cost(first, second, dict(zip(kept, images, strict=True)))
        for count in range(min(first.size, second.size) + 1)
        for kept in itertools.combinations(range(first.size), count)
        for images in itertools.permutations(range(second.size), count)
    )


def least_alignment(first: Graph, second: Graph) -> int:
    """The edit distance, if no path need both delete and insert: over permutations of max(size), up to 7."""
    n = max(first.size, second.size)
    (left, left_edges), (right, right_edges) = (
        (
            np.append(graph.node_labels, np.full(n - graph.size, -1)),
            np.pad(graph.edge_matrix(), (0, n - graph.size)),
        )
        for graph in (first, second)
    )
    orders = np.array(list(itertools.permutations(range(n))), np.int64).reshape(math.factorial(n), n)
    edges = right_edges[orders[:, :, None], orders[:, None, :]] != left_edges
    return int(((right[orders] != left).sum(1) + edges.sum((1, 2)) // 2).min())


def networkx_distance(first: Graph, second: Graph) -> int:
    """The edit distance as networkx finds it, exactly."""

    def same(one: dict[str, str], other: dict[str, str]) -> bool:
        return one["label"] == other["label"]

    distance = nx.graph_edit_distance(to_networkx(first), to_networkx(second), node_match=same, edge_match=same)
    return int(distance)
