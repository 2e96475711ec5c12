"""Edit distance of labelled graphs: the best found, and whether it is proved to be the least."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphwright.graphs import Graph, find_isomorphism
from graphwright.graphs.graph import IntArray
from graphwright.metrics.pairs import (
    CodeArray,
    FloatArray,
    GraphPairs,
    branch_bound,
    cheapest_alignment,
    multiset_difference,
)
from graphwright.metrics.search import branch_and_bound, improve

FRANK_WOLFE_STEPS = 15
TOGETHER = 64
"""Pairs worked on at once: enough to spread numpy's overhead, few enough for the memory of branch and bound."""


@dataclass(frozen=True, eq=False)
class EditDistance:
    """How many edits turn one graph into another.

    distance: edits of the best alignment found, never below the true distance.
    lower_bound: never above the true distance.
    alignment: (n,) node i of the first graph meets node alignment[i] of the second, n = max(size). An index past
        the end of a graph is padding: the node that meets it is deleted or inserted.
    """

    distance: int
    lower_bound: int
    alignment: IntArray

    @property
    def proved(self) -> bool:
        """Whether no alignment can be better."""
        return self.lower_bound == self.distance


def edit_distance(first: Graph, second: Graph) -> EditDistance:
    """The least number of edits from `first` to `second`; see `edit_distances`."""
    return edit_distances([first], [second])[0]


def edit_distances(
    first: Sequence[Graph], second: Sequence[Graph], starts: Sequence[IntArray | None] | None = None
) -> list[EditDistance]:
    """The least number of edits from first[i] to second[i], for every i.

    An edit inserts, deletes or relabels one node or one edge. The distance is 0 if and only if the graphs are
    isomorphic, which is tested exactly. For the others several alignments, among them `starts[i]` (n,) where
    given, are improved by pairwise exchanges; branch and bound then closes the gap to the bound, or gives up.
    """
    check_pairs(first, second, "first", "second")
    starts = [None] * len(first) if starts is None else starts
    _check_starts(first, second, starts)
    results: dict[int, EditDistance] = {}
    for at, (one, other) in enumerate(zip(first, second, strict=True)):
        isomorphism = find_isomorphism(one, other)
        if isomorphism is not None:
            results[at] = EditDistance(0, 0, isomorphism)
    rest = [at for at in range(len(first)) if at not in results]
    for chunk in _chunks(first, second, rest):
        found = _search([first[at] for at in chunk], [second[at] for at in chunk], [starts[at] for at in chunk])
        results.update(zip(chunk, found, strict=True))
    return [results[at] for at in range(len(first))]


def check_pairs(first: Sequence[Graph], second: Sequence[Graph], name: str, other: str) -> None:
    """Refuse sequences of different lengths or vocabularies, calling them by their names."""
    if len(first) != len(second):
        raise ValueError(f"{other} has {len(second)} graphs, {name} has {len(first)}")
    for at, (one, two) in enumerate(zip(first, second, strict=True)):
        if one.vocabulary != two.vocabulary:
            raise ValueError(f"{other}[{at}] has another vocabulary than {name}[{at}]")


def _check_starts(first: Sequence[Graph], second: Sequence[Graph], starts: Sequence[IntArray | None]) -> None:
    if len(starts) != len(first):
        raise ValueError(f"starts has {len(starts)} alignments for {len(first)} pairs")
    for at, start in enumerate(starts):
        n = max(first[at].size, second[at].size)
        if start is not None and not np.array_equal(np.sort(start), np.arange(n)):
            raise ValueError(f"starts[{at}] is not a permutation of 0..{n - 1}")


def _chunks(first: Sequence[Graph], second: Sequence[Graph], indices: Iterable[int]) -> Iterator[list[int]]:
    """Indices of pairs on equally many slots, all with the same side the larger."""
    alike: defaultdict[tuple[int, bool], list[int]] = defaultdict(list)
    for at in indices:
        sizes = first[at].size, second[at].size
        alike[max(sizes), sizes[0] > sizes[1]].append(at)
    for group in alike.values():
        for begin in range(0, len(group), TOGETHER):
            yield group[begin : begin + TOGETHER]


def _search(
    first: Sequence[Graph], second: Sequence[Graph], starts: Sequence[IntArray | None]
) -> list[EditDistance]:
    """Edit distances of one chunk of pairs, none of them isomorphic."""
    if first[0].size > second[0].size:
        # Branch and bound places the nodes of the left graph, so let it be the smaller one.
        turned = _search(second, first, [None if start is None else np.argsort(start) for start in starts])
        return [replace(result, alignment=np.argsort(result.alignment)) for result in turned]
    pairs = GraphPairs.pad(first, second)
    lower, relaxed = branch_bound(pairs)
    lower = np.maximum(lower, 1)  # They are not isomorphic, whatever the bound can see of it.
    candidates = [relaxed, *starting_alignments(pairs)]
    if any(start is not None for start in starts):
        natural = np.arange(pairs.slots)
        candidates.append(np.array([natural if start is None else start for start in starts]))
    best, costs = _best(pairs, candidates)
    unproved = np.flatnonzero(lower < costs)
    hard = pairs.take(unproved)
    searched, best[unproved] = branch_and_bound(hard, best[unproved])
    lower[unproved] = np.maximum(lower[unproved], searched)
    costs[unproved] = hard.costs(best[unproved])
    return [
        EditDistance(int(cost), int(bound), alignment)
        for cost, bound, alignment in zip(costs, lower, best, strict=True)
    ]


def _best(pairs: GraphPairs, candidates: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """(b, n) the cheapest alignments that exchanges reach from any of the candidates, and (b,) their costs."""
    improved = np.stack([improve(pairs, alignment) for alignment in candidates])
    costs = np.stack([pairs.costs(alignment) for alignment in improved])
    winner, batch = costs.argmin(0), np.arange(len(pairs))
    return improved[winner, batch], costs[winner, batch]


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
    return cheapest_alignment(2 * pairs.label_costs + multiset_difference(left, right))


def frank_wolfe(pairs: GraphPairs, plan: FloatArray) -> IntArray:
    """(b, n) alignments near stationary points of the relaxed edit cost, from plans (b, n, n).

    Over doubly stochastic T the cost is, up to a constant, `f(T) = <N, T> - 1/2 sum_c <L_c T R_c, T>`, with N the
    label costs and L, R the edge channels. Each step goes from T towards the vertex that the gradient
    `N - sum_c L_c T R_c` prefers, by the length that lowers f most (Vogelstein et al., Fast approximate quadratic
    programming for graph matching, 2015).
    """
    for _ in range(FRANK_WOLFE_STEPS):
        gradient = pairs.label_costs - _spread(pairs, plan)
        direction = _vertices(cheapest_alignment(gradient)) - plan
        slope = (gradient * direction).sum((1, 2))
        curvature = -(_spread(pairs, direction) * direction).sum((1, 2))
        # Where f is concave along the way, the far end is the best point.
        length = np.ones_like(slope)
        np.divide(-slope, curvature, out=length, where=curvature > 0)
        length = np.clip(length, 0, 1)
        plan = plan + length[:, None, None] * direction
        if (length * slope > -1e-4).all():
            break
    return cheapest_alignment(-plan)


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
