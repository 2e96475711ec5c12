"""All graphs on the slots of a prediction, from the highest model score down."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np

from graphwright.decoding.score import Assignment, BoolArray, FloatArray, SlotScores
from graphwright.graphs.graph import IntArray


def assignments(scores: SlotScores) -> Iterator[Assignment]:
    """Every assignment once, by increasing regret.

    Presences are enumerated in an outer stream, and for each set of present slots the labels and pairs that it
    uses in an inner one; a heap merges them, opening an outer set only when its own regret is next.
    """
    outer = _choices([row.tolist() for row in scores.presence_regrets])
    tie = count()
    heap: list[tuple[float, int, Assignment, Iterator[Assignment]]] = []
    ahead = next(outer, None)
    while ahead is not None or heap:
        if ahead is not None and (not heap or ahead[0] <= heap[0][0]):
            presence = np.array(ahead[1], bool)
            inner = _on_slots(scores, presence, ahead[0])
            first = next(inner)
            heapq.heappush(heap, (first.regret, next(tie), first, inner))
            ahead = next(outer, None)
            continue
        _, _, assignment, inner = heapq.heappop(heap)
        yield assignment
        following = next(inner, None)
        if following is not None:
            heapq.heappush(heap, (following.regret, next(tie), following, inner))


def _on_slots(scores: SlotScores, presence: BoolArray, regret: float) -> Iterator[Assignment]:
    """The assignments with these slots present, by increasing regret."""
    here = np.flatnonzero(presence)
    first, second = (here[side] for side in np.triu_indices(len(here), 1))
    decisions: list[FloatArray] = [*scores.label_regrets[here], *scores.edge_regrets[first, second]]
    for extra, picked in _choices([decision.tolist() for decision in decisions]):
        labels = np.zeros(scores.slots, np.int64)
        labels[here] = picked[: len(here)]
        edges: IntArray = np.zeros((scores.slots, scores.slots), np.int64)
        edges[first, second] = edges[second, first] = picked[len(here) :]
        yield Assignment(presence, labels, edges, regret + extra)


def _choices(costs: Sequence[Sequence[float]]) -> Iterator[tuple[float, list[int]]]:
    """Every way to pick one option per decision, by increasing total cost; the cheapest option of each is 0.

    Decisions are sorted by the cost of their second option. A state is a few changed decisions, the last of
    them at its option c; from it follow: the last one's option c + 1; the next decision changed as well; and, if
    c = 1, the next decision changed instead. Each state is reached once, and never before a cheaper one.
    """
    ranked = [sorted(range(len(own)), key=own.__getitem__) for own in costs]
    order = sorted(
        (at for at, own in enumerate(ranked) if len(own) > 1),
        key=lambda at: costs[at][ranked[at][1]] - costs[at][ranked[at][0]],
    )
    best = [own[0] for own in ranked]
    steps = [[costs[at][option] - costs[at][ranked[at][0]] for option in ranked[at]] for at in order]
    yield 0.0, best
    tie = count()
    heap: list[tuple[float, int, tuple[tuple[int, int], ...]]] = []
    if order:
        heap.append((steps[0][1], next(tie), ((0, 1),)))
    while heap:
        cost, _, changed = heapq.heappop(heap)
        picked = best.copy()
        for place, option in changed:
            picked[order[place]] = ranked[order[place]][option]
        yield cost, picked
        place, option = changed[-1]
        now = steps[place]
        if option + 1 < len(now):
            again = cost + (now[option + 1] - now[option])
            heapq.heappush(heap, (again, next(tie), (*changed[:-1], (place, option + 1))))
        if place + 1 < len(steps):
            extra = steps[place + 1][1]
            heapq.heappush(heap, (cost + extra, next(tie), (*changed, (place + 1, 1))))
            if option == 1:
                heapq.heappush(heap, (cost - now[1] + extra, next(tie), (*changed[:-1], (place + 1, 1))))
