"""Exact edit distances: every alignment, slot by slot, except where a bound rules it out."""

from __future__ import annotations

import numpy as np

from graphwright.graphs.graph import IntArray
from graphwright.metrics.frontier import Frontier, Prices, price
from graphwright.metrics.local_search import improve
from graphwright.metrics.pairs import PADDING, GraphPairs

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
