"""Edit distance of labelled graphs: the best alignment of a search, and whether it is proved to be the least."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphwright.graphs import Graph, find_isomorphism
from graphwright.graphs.graph import IntArray
from graphwright.metrics.pairs import (
    PADDING,
    CodeArray,
    FloatArray,
    GraphPairs,
    branch_bound,
    cheapest_alignment,
    edge_channels,
    edge_counts,
    half_up,
    multiset_difference,
    total,
)


def improve(pairs: GraphPairs, alignment: IntArray) -> IntArray:
    """(b, n) alignments that no exchange of two slots makes cheaper, from alignments (b, n).

    Every round prices all n (n - 1) / 2 exchanges of every pair at once and makes the best one.
    """
    alignment = alignment.copy()
    active = np.arange(len(pairs) if pairs.slots > 1 else 0)
    while len(active):
        changes = swap_changes(pairs, alignment[active]).reshape(len(active), -1)
        best = changes.argmin(1)
        better = np.flatnonzero(changes[np.arange(len(active)), best] < 0)
        i, j = np.divmod(best[better], pairs.slots)
        active, pairs = active[better], pairs.take(better)
        alignment[active, i], alignment[active, j] = alignment[active, j], alignment[active, i]
    return alignment


def swap_changes(pairs: GraphPairs, alignment: IntArray) -> FloatArray:
    """(b, n, n) change of the cost of alignments (b, n) when left slots i and j exchange their partners.

    With the right graph in the order of the left slots and `D_ij = [l_i != r_j] + sum_k [L_ik != R_jk]`, the
    change is `D_ij + D_ji - D_ii - D_jj`, but for what these say of the edge ij itself, which is not affected:
    `D_ij` and `D_ji` each count [L_ij > 0] + [R_ij > 0] for it, `D_ii` and `D_jj` each count [L_ij != R_ij].
    """
    b, n = alignment.shape
    right = pairs.aligned_right_edges(alignment)
    wide_left = pairs.left_channels.transpose(0, 2, 1, 3).reshape(b, n, -1)
    wide_right = edge_channels(right, pairs.edge_classes).transpose(0, 2, 1, 3).reshape(b, n, -1)
    left_present, right_present = pairs.left_edges > 0, right > 0
    D = np.take_along_axis(pairs.label_costs, alignment[:, None, :], axis=2)
    D -= wide_left @ wide_right.transpose(0, 2, 1)
    D += left_present.sum(2, dtype=np.float32)[:, :, None]
    D += right_present.sum(2, dtype=np.float32)[:, None, :]
    before = np.einsum("bii->bi", D)
    itself = left_present.astype(np.float32) + right_present - (pairs.left_edges != right)
    changes: FloatArray = D + D.transpose(0, 2, 1) - before[:, :, None] - before[:, None, :] - 2 * itself
    return changes


@dataclass(frozen=True, eq=False)
class Frontier:
    """s partial alignments: left slots 0..t-1 are placed, r = n - t are to come. Costs are doubled.

    pair: (s,) the pair that each belongs to, ascending.
    placed: (s, t) partners of the left slots placed.
    free: (s, r) right slots not taken.
    settled: (s,) cost among the slots placed.
    costs: (s, r, r) cost of giving a left slot to come a free right slot: labels, and edges to slots placed.
    counts: (s, r, labels) edges from each free right slot to the other free ones.
    """

    pair: IntArray
    placed: IntArray
    free: IntArray
    settled: FloatArray
    costs: FloatArray
    counts: FloatArray

    @classmethod
    def root(cls, pairs: GraphPairs) -> Frontier:
        """For each pair the alignment in which nothing is placed."""
        b, n = len(pairs), pairs.slots
        return cls(
            pair=np.arange(b),
            placed=np.zeros((b, 0), np.int64),
            free=np.tile(np.arange(n), (b, 1)),
            settled=np.zeros(b, np.float32),
            costs=2 * pairs.label_costs,
            counts=edge_counts(pairs.right_edges, pairs.edge_classes),
        )

    def __len__(self) -> int:
        return len(self.pair)

    def extend(self, pairs: GraphPairs, state: IntArray, column: IntArray) -> Frontier:
        """The alignments in which the next left slot of `state` takes its free slot `column`, both (k,)."""
        t, r = self.placed.shape[1], self.free.shape[1]
        pair, taken = self.pair[state], self.free[state, column]
        others = np.arange(r - 1) + (np.arange(r - 1) >= column[:, None])
        free = self.free[state[:, None], others]
        # The slot placed now settles the edge between it and each slot to come.
        left = pairs.left_edges[pair, t + 1 :, t]
        right = pairs.right_edges[pair[:, None], free, taken[:, None]]
        costs = self.costs[state[:, None, None], np.arange(1, r)[:, None], others[:, None, :]]
        costs += 2 * (left[:, :, None] != right[:, None, :])
        counts = self.counts[state[:, None], others]
        counts -= right[:, :, None] == np.arange(1, pairs.edge_classes)
        return Frontier(
            pair=pair,
            placed=np.concatenate([self.placed[state], taken[:, None]], axis=1),
            free=free,
            settled=self.settled[state] + self.costs[state, 0, column],
            costs=costs,
            counts=counts,
        )


@dataclass(frozen=True, eq=False)
class Prices:
    """What the completions of s partial alignments cost at least.

    bounds: (s,) lower bounds.
    completions: (s, n) the complete alignments of the bounds.
    children: (s, r) lower bounds when the next left slot takes each free right slot.
    """

    bounds: IntArray
    completions: IntArray
    children: IntArray


def price(pairs: GraphPairs, frontier: Frontier) -> Prices:
    """The bound of `branch_bound`, given that some slots are placed.

    Edges to slots placed are known and count in full; half of the multiset difference stands for the others.
    The bound is exact once all slots to come are padding, whose edges are known to be none.
    """
    t = frontier.placed.shape[1]
    left = edge_counts(pairs.left_edges[:, t:, t:], pairs.edge_classes)[frontier.pair]
    costs = frontier.costs + multiset_difference(left, frontier.counts)
    partner = cheapest_alignment(costs)
    doubled = frontier.settled + total(costs, partner)
    chosen = np.take_along_axis(frontier.free, partner, axis=1)
    return Prices(
        bounds=half_up(doubled),
        completions=np.concatenate([frontier.placed, chosen], axis=1),
        children=half_up(doubled[:, None] + detours(costs, partner)),
    )


def detours(costs: FloatArray, partner: IntArray) -> FloatArray:
    """(s, r) how much dearer the best assignment gets when row 0 must take column k.

    costs: (s, r, r). partner: (s, r) their best assignments. The row that had column k must take another, and so
    on until one takes what row 0 had: a shortest path, which Bellman and Ford's method finds for all k at once.
    """
    own = np.take_along_axis(costs, partner[:, None, :], axis=2)
    steps: FloatArray = own - np.einsum("sii->si", own)[:, :, None]
    away = steps[:, :, 0].copy()
    while True:
        nearer = (steps + away[:, None, :]).min(2)
        if (nearer == away).all():
            break
        away = nearer
    dearer: FloatArray = np.empty_like(away)
    np.put_along_axis(dearer, partner, steps[:, 0] + away, axis=1)
    return dearer


WORK = 400_000
"""Matrix entries to look at for one pair before giving up: 1,000 partial alignments of 20 slots."""


def branch_and_bound(pairs: GraphPairs, alignment: IntArray) -> tuple[IntArray, IntArray]:
    """(b,) lower bounds on the edit distance, and (b, n) alignments at least as good as those given, (b, n).

    Bound and cost are equal unless the search took more than `WORK`. All partial alignments of a length are kept
    and priced together. Going by breadth loses nothing: the alignments given are nearly always the best, and
    then any order has to visit the same partial ones.
    """
    order = _placing_order(pairs)
    pairs = pairs.reorder_left(order)
    best = np.take_along_axis(alignment, order, axis=1)
    cost = pairs.costs(best)
    lower = np.full(len(pairs), np.iinfo(np.int64).max)
    spent = np.zeros(len(pairs), np.int64)
    frontier = Frontier.root(pairs)
    while len(frontier):
        prices = price(pairs, frontier)
        _adopt(pairs, frontier, prices, best, cost)
        viable = prices.children < cost[frontier.pair][:, None]
        np.add.at(spent, frontier.pair, viable.sum(1))
        given_up = spent[frontier.pair] * pairs.slots**2 > WORK
        np.minimum.at(lower, frontier.pair[given_up], prices.children[given_up].min(1))
        frontier = frontier.extend(pairs, *np.nonzero(viable & ~given_up[:, None]))
    return np.minimum(lower, cost), np.take_along_axis(best, np.argsort(order, axis=1), axis=1)


def _placing_order(pairs: GraphPairs) -> IntArray:
    """(b, n) left slots, those with many edges first, above all to slots before them; padding last.

    Edges to slots placed are what makes the bounds tight.
    """
    adjacency = (pairs.left_edges > 0).astype(np.float32)
    score = adjacency.sum(2)
    score[pairs.left_labels == PADDING] = -1
    order = np.empty(score.shape, np.int64)
    batch = np.arange(len(pairs))
    for position in range(pairs.slots):
        order[:, position] = score.argmax(1)
        score += adjacency[batch, order[:, position]]
        score[batch, order[:, position]] = -np.inf
    return order


def _adopt(pairs: GraphPairs, frontier: Frontier, prices: Prices, best: IntArray, cost: IntArray) -> None:
    """Try the most promising completion of each pair, and keep it in `best` and `cost` where it is better."""
    rank = np.lexsort((prices.bounds, frontier.pair))
    present, first = np.unique(frontier.pair[rank], return_index=True)
    these = pairs.take(present)
    tried = improve(these, prices.completions[rank[first]])
    costs = these.costs(tried)
    better = costs < cost[present]
    best[present[better]] = tried[better]
    cost[present[better]] = costs[better]


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
        distances = _search(
            [first[at] for at in chunk], [second[at] for at in chunk], [starts[at] for at in chunk]
        )
        results.update(zip(chunk, distances, strict=True))
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
