"""Partial alignments, many at a time: what they cost at least, and how they go on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphwright.graphs.graph import IntArray
from graphwright.metrics.bounds import edge_counts, half_up, multiset_difference, total
from graphwright.metrics.pairs import FloatArray, GraphPairs, assign


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
    """The bound of `bounds.branch_bound`, given that some slots are placed.

    Edges to slots placed are known and count in full; half of the multiset difference stands for the others.
    The bound is exact once all slots to come are padding, whose edges are known to be none.
    """
    t = frontier.placed.shape[1]
    left = edge_counts(pairs.left_edges[:, t:, t:], pairs.edge_classes)[frontier.pair]
    costs = frontier.costs + multiset_difference(left, frontier.counts)
    partner = assign(costs)
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
