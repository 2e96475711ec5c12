"""Whether a graph was predicted exactly, with or without its edge labels."""

from __future__ import annotations

import numpy as np

from graphwright.graphs import NO_EDGE, Graph, Vocabulary, is_isomorphic


def skeleton(graph: Graph) -> Graph:
    """The graph with its node labels and adjacency, all edges alike."""
    vocabulary = Vocabulary(graph.vocabulary.nodes, (NO_EDGE, "edge"))
    return Graph(graph.node_labels, graph.edges, np.ones_like(graph.edge_labels), vocabulary)


def is_isomorphic_skeleton(first: Graph, second: Graph) -> bool:
    """Whether the two are the same graph up to the order of nodes and the labels of edges."""
    return is_isomorphic(skeleton(first), skeleton(second))
