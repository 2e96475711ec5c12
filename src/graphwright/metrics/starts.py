"""First alignments for the edit distance: natural order, local structure, and the relaxed problem."""

from __future__ import annotations

import numpy as np

from graphwright.graphs.graph import IntArray
from graphwright.metrics.bounds import multiset_difference
from graphwright.metrics.pairs import CodeArray, FloatArray, GraphPairs, assign

FRANK_WOLFE_STEPS = 15


def starting_alignments(pairs: GraphPairs) -> list[IntArray]:
    """Alignments (b, n) of every pair, found in different ways."""
    b, n = len(pairs), pairs.slots
    natural = np.tile(np.arange(n), (b, 1))
    neighbours = align_neighbourhoods(pairs)
    centre = np.full((b, n, n), 1 / n, np.float32)
    # Halfway to the centre: from the vertex itself the first steps would not leave its neighbourhood.
    halfway = np.float32(0.5) * (centre + _vertices(neighbours))
    return [natural, neighbours, frank_wolfe(pairs, centre), frank_wolfe(pairs, halfway)]


def align_neighbourhoods(pairs: GraphPairs) -> IntArray:
    """(b, n) the linear assignment that pairs slots of like labels and like neighbours.

    The cost of i and k is `2 [l_i != r_k]` and the multiset difference of their (edge label, neighbour's label).
    """
    node_classes = int(max(pairs.left_labels.max(), pairs.right_labels.max())) + 1
    left = _neighbours(pairs.left_labels, pairs.left_edges, node_classes, pairs.edge_classes)
    right = _neighbours(pairs.right_labels, pairs.right_edges, node_classes, pairs.edge_classes)
    return assign(2 * pairs.label_costs + multiset_difference(left, right))


def frank_wolfe(pairs: GraphPairs, plan: FloatArray) -> IntArray:
    """(b, n) alignments near stationary points of the relaxed edit cost, from plans (b, n, n).

    Over doubly stochastic T the cost is, up to a constant, `f(T) = <N, T> - 1/2 sum_c <L_c T R_c, T>`, with N the
    label costs and L, R the edge channels. Each step goes from T towards the vertex that the gradient
    `N - sum_c L_c T R_c` prefers, by the length that lowers f most (Vogelstein et al., Fast approximate quadratic
    programming for graph matching, 2015).
    """
    for _ in range(FRANK_WOLFE_STEPS):
        gradient = pairs.label_costs - _spread(pairs, plan)
        direction = _vertices(assign(gradient)) - plan
        slope = (gradient * direction).sum((1, 2))
        curvature = -(_spread(pairs, direction) * direction).sum((1, 2))
        # Where f is concave along the way, the far end is the best point.
        length = np.ones_like(slope)
        np.divide(-slope, curvature, out=length, where=curvature > 0)
        length = np.clip(length, 0, 1)
        plan = plan + length[:, None, None] * direction
        if (length * slope > -1e-4).all():
            break
    return assign(-plan)


def _neighbours(labels: CodeArray, edges: CodeArray, node_classes: int, edge_classes: int) -> FloatArray:
    """(b, n, k) how many neighbours of each label each slot has, over edges of each label."""
    one_hot = (labels[:, :, None] == np.arange(node_classes)).astype(np.float32)
    counts = [(edges == label).astype(np.float32) @ one_hot for label in range(1, edge_classes)]
    return np.concatenate(counts, axis=2)


def _spread(pairs: GraphPairs, plan: FloatArray) -> FloatArray:
    """(b, n, n) `sum_c L_c T R_c`."""
    spread: FloatArray = (pairs.left_channels @ plan[:, None] @ pairs.right_channels).sum(1)
    return spread


def _vertices(alignment: IntArray) -> FloatArray:
    """(b, n, n) permutation matrices of alignments (b, n)."""
    matrices: FloatArray = (alignment[:, :, None] == np.arange(alignment.shape[1])).astype(np.float32)
    return matrices
