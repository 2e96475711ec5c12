"""A lower bound on the edit distance: what each slot and the edges around it cost at least."""

from __future__ import annotations

import numpy as np

from graphwright.graphs.graph import IntArray
from graphwright.metrics.pairs import CodeArray, FloatArray, GraphPairs, assign


def branch_bound(pairs: GraphPairs) -> tuple[IntArray, IntArray]:
    """(b,) lower bounds on the edit distance, and (b, n) the alignments at which the bounds are attained.

    Every edge error has two ends; charge half of it to each. An alignment a then costs
    `cost(a) = sum_i ( [l_i != r_a(i)] + 1/2 #{j : L_ij != R_a(i)a(j)} )`. Wherever the other slots go, the edges
    around i and those around its partner differ at least as often as their multisets of labels do. So the best
    linear assignment under `[l_i != r_k] + 1/2 (multiset difference)` costs no more than any alignment. Errors
    are whole, hence the rounding up. Counts of node and edge labels over whole graphs can never give more.
    """
    costs = branch_costs(pairs)
    alignment = assign(costs)
    return half_up(total(costs, alignment)), alignment


def branch_costs(pairs: GraphPairs) -> FloatArray:
    """(b, n, n) `2 [l_i != r_k] + (multiset difference)`: twice the costs above, to stay in whole numbers."""
    left = edge_counts(pairs.left_edges, pairs.edge_classes)
    right = edge_counts(pairs.right_edges, pairs.edge_classes)
    return 2 * pairs.label_costs + multiset_difference(left, right)


def edge_counts(edges: CodeArray, classes: int) -> FloatArray:
    """(..., n, classes - 1) how many edges of each label stand in each row of edge codes (..., n, m)."""
    counts = [(edges == label).sum(-1, dtype=np.float32) for label in range(1, classes)]
    return np.stack(counts, axis=-1)


def multiset_difference(left: FloatArray, right: FloatArray) -> FloatArray:
    """(..., n, m) `max(|A|, |B|) - |A and B|` for multisets as counts (..., n, labels) and (..., m, labels).

    That many insertions, deletions and substitutions turn A into B, and no fewer do.
    """
    difference: FloatArray = np.maximum(left.sum(-1)[..., :, None], right.sum(-1)[..., None, :])
    for label in range(left.shape[-1]):
        difference -= np.minimum(left[..., :, None, label], right[..., None, :, label])
    return difference


def total(costs: FloatArray, alignment: IntArray) -> FloatArray:
    """(b,) sums of costs (b, n, n) along alignments (b, n)."""
    summed: FloatArray = np.take_along_axis(costs, alignment[:, :, None], axis=2).sum((1, 2))
    return summed


def half_up(doubled: FloatArray) -> IntArray:
    """Half of whole numbers, rounded up."""
    halves: IntArray = (doubled.astype(np.int64) + 1) // 2
    return halves
