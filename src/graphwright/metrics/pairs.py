"""Pairs of graphs on common slots: what an alignment of them costs, and what any must cost at least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from graphwright.graphs import Graph
from graphwright.graphs.graph import IntArray

CodeArray = NDArray[np.int32]
FloatArray = NDArray[np.float32]

PADDING = -1
"""Node label of an empty slot."""


@dataclass(frozen=True, eq=False)
class GraphPairs:
    """b pairs of graphs, both padded to the same n slots.

    left_labels, right_labels: (b, n) node codes, -1 at padding.
    left_edges, right_edges: (b, n, n) symmetric edge codes, 0 where there is none, and at padding.
    edge_classes: number of edge codes, "none" included.

    An alignment is a permutation a of the slots: left slot i meets right slot a[i]. It costs one for every slot
    whose labels differ (a node against padding is a deletion or an insertion) and for every edge that differs,
    `cost(a) = sum_i [l_i != r_a(i)] + sum_{i<j} [L_ij != R_a(i)a(j)]`, and the least cost is the edit distance.

    n = max(size) slots are enough. Take an edit path that deletes a left node u and inserts a right node v.
    Aligning u with v instead costs at most 1 where it cost 2, and for every other aligned x -> y the edges ux and
    vy cost [ux != vy], no more than the [ux > 0] + [vy > 0] of deleting the one and inserting the other. So some
    optimal path does not both delete and insert, that is, it aligns the whole of the smaller graph.
    """

    left_labels: CodeArray
    left_edges: CodeArray
    right_labels: CodeArray
    right_edges: CodeArray
    edge_classes: int

    @classmethod
    def pad(cls, left: Sequence[Graph], right: Sequence[Graph]) -> GraphPairs:
        """The pairs (left[i], right[i]) on as many slots as the largest graph has nodes."""
        graphs = (*left, *right)
        n = max(graph.size for graph in graphs)
        classes = max(len(graph.vocabulary.edges) for graph in graphs)
        return cls(*_padded(left, n), *_padded(right, n), classes)

    def __len__(self) -> int:
        return len(self.left_labels)

    @property
    def slots(self) -> int:
        """Number of slots, n."""
        return int(self.left_labels.shape[1])

    @cached_property
    def label_costs(self) -> FloatArray:
        """(b, n, n) 1 where left slot i and right slot k have different labels."""
        differ: NDArray[np.bool_] = self.left_labels[:, :, None] != self.right_labels[:, None, :]
        return differ.astype(np.float32)

    @cached_property
    def left_channels(self) -> FloatArray:
        """(b, c, n, n) the left graphs' `edge_channels`, times their weights."""
        return edge_channels(self.left_edges, self.edge_classes) * channel_weight(self.edge_classes)

    @cached_property
    def right_channels(self) -> FloatArray:
        """(b, c, n, n) the right graphs' `edge_channels`."""
        return edge_channels(self.right_edges, self.edge_classes)

    def take(self, index: IntArray) -> GraphPairs:
        """The pairs at `index`, (k,)."""
        return GraphPairs(
            self.left_labels[index],
            self.left_edges[index],
            self.right_labels[index],
            self.right_edges[index],
            self.edge_classes,
        )

    def reorder_left(self, order: IntArray) -> GraphPairs:
        """The pairs with left slot `order[g, i]` of pair g moved to position i; order: (b, n)."""
        return replace(
            self,
            left_labels=np.take_along_axis(self.left_labels, order, axis=1),
            left_edges=_permuted(self.left_edges, order),
        )

    def aligned_right_edges(self, alignment: IntArray) -> CodeArray:
        """(b, n, n) right edges in the order of the left slots, for alignments (b, n)."""
        return _permuted(self.right_edges, alignment)

    def costs(self, alignment: IntArray) -> IntArray:
        """(b,) edit costs of alignments (b, n)."""
        labels = self.left_labels != np.take_along_axis(self.right_labels, alignment, axis=1)
        edges = self.left_edges != self.aligned_right_edges(alignment)
        costs: IntArray = labels.sum(1) + edges.sum((1, 2)) // 2
        return costs


def edge_channels(edges: CodeArray, classes: int) -> FloatArray:
    """(b, c, n, n) indicators X of edge codes (b, n, n), see below.

    They turn comparison into products: `[e != f] = [e > 0] + [f > 0] - w sum_c X_c(e) X_c(f)`.
    One channel says "an edge", one more stands for each label: two edges overlap once, twice if their labels
    agree. With a single label the two channels are the same, so one of weight w = 2 does.
    """
    present = (edges > 0)[:, None]
    if classes == 2:
        return present.astype(np.float32)
    labels = edges[:, None] == np.arange(1, classes)[:, None, None]
    return np.concatenate([present, labels], axis=1).astype(np.float32)


def channel_weight(classes: int) -> np.float32:
    """The weight w of every channel in `edge_channels`."""
    return np.float32(2 if classes == 2 else 1)


def cheapest_alignment(costs: FloatArray) -> IntArray:
    """(b, n) the alignment of least total cost, for each matrix of costs (b, n, n)."""
    alignment = np.empty(costs.shape[:2], np.int64)
    for at, cost in enumerate(costs):
        alignment[at] = linear_sum_assignment(cost)[1]
    return alignment


def _permuted(edges: CodeArray, order: IntArray) -> CodeArray:
    """(b, n, n) matrices whose entry ij is that at order[i], order[j]."""
    batch = np.arange(len(edges))[:, None, None]
    permuted: CodeArray = edges[batch, order[:, :, None], order[:, None, :]]
    return permuted


def _padded(graphs: Sequence[Graph], n: int) -> tuple[CodeArray, CodeArray]:
    labels = np.full((len(graphs), n), PADDING, np.int32)
    edges = np.zeros((len(graphs), n, n), np.int32)
    for at, graph in enumerate(graphs):
        labels[at, : graph.size] = graph.node_labels
        edges[at, : graph.size, : graph.size] = graph.edge_matrix()
    return labels, edges


def branch_bound(pairs: GraphPairs) -> tuple[IntArray, IntArray]:
    """(b,) lower bounds on the edit distance, and (b, n) the alignments at which the bounds are attained.

    Every edge error has two ends; charge half of it to each. An alignment a then costs
    `cost(a) = sum_i ( [l_i != r_a(i)] + 1/2 #{j : L_ij != R_a(i)a(j)} )`. Wherever the other slots go, the edges
    around i and those around its partner differ at least as often as their multisets of labels do. So the best
    linear assignment under `[l_i != r_k] + 1/2 (multiset difference)` costs no more than any alignment. Errors
    are whole, hence the rounding up. Counts of node and edge labels over whole graphs can never give more.
    """
    costs = branch_costs(pairs)
    alignment = cheapest_alignment(costs)
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
