"""The k most probable distinct graphs of a prediction."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from graphwright.decoding.constrained import Found, check_vocabulary, formula_of, valid_assignments
from graphwright.decoding.enumeration import assignments
from graphwright.decoding.formula import Formula
from graphwright.decoding.score import SlotScores, slot_scores
from graphwright.graphs import Graph, Prediction, Vocabulary, is_isomorphic, refinement_hash


@dataclass(frozen=True)
class Candidate:
    """A graph that a prediction may mean.

    log_score: the model score of its best place on the slots; candidates are in this order.
    probability: that the model's independent decisions, drawn at random, give this graph, summed over the places
    on the slots that were met; a lower bound, since there may be others. It is small for large graphs, where many
    decisions are taken, even when each is nearly certain.
    share: its part of the candidates' probability; these sum to one, and say how sure the choice among them is.
    """

    graph: Graph
    log_score: float
    probability: float
    share: float


@dataclass(frozen=True)
class Candidates:
    """Non-isomorphic graphs by decreasing score; `proved` if no graph that is missing scores higher."""

    candidates: tuple[Candidate, ...]
    proved: bool
    seconds: float


def plain_candidates(
    prediction: Prediction, vocabulary: Vocabulary, count: int, *, seconds: float = 10.0
) -> list[Candidates]:
    """For every sample its `count` graphs of highest score, the plain decoder's first; fewer if there are not."""
    results = []
    for scores in slot_scores(prediction, vocabulary):
        start = time.perf_counter()
        results.append(_distinct(scores, vocabulary, _until(scores, start + seconds), count, start))
    return results


def valid_candidates(
    prediction: Prediction,
    vocabulary: Vocabulary,
    count: int,
    *,
    formulas: Sequence[Formula | None] | None = None,
    seconds: float = 10.0,
) -> list[Candidates]:
    """For every sample its `count` molecules of highest score, that of `decode_valid` first.

    There may be fewer, and none only where a formula is given that no molecule was found for.
    """
    check_vocabulary(vocabulary)
    results = []
    for sample, scores in enumerate(slot_scores(prediction, vocabulary)):
        start = time.perf_counter()
        formula = formula_of(formulas, sample, len(prediction), vocabulary, scores)
        found = valid_assignments(scores, vocabulary, formula, start + seconds)
        results.append(_distinct(scores, vocabulary, found, count, start))
    return results


def _until(scores: SlotScores, deadline: float) -> Iterator[Found]:
    """All assignments; past the deadline one more, marked as not proved."""
    for assignment in assignments(scores):
        late = time.perf_counter() > deadline
        yield Found(assignment, proved=not late)
        if late:
            return


def _distinct(
    scores: SlotScores, vocabulary: Vocabulary, stream: Iterable[Found], count: int, start: float
) -> Candidates:
    if count < 1:
        raise ValueError(f"the number of candidates must be at least 1, got {count}")
    graphs: list[Graph] = []
    log_scores: list[float] = []
    masses: list[float] = []
    places: dict[str, list[int]] = {}
    proved = True
    for found in stream:
        graph = found.assignment.graph(vocabulary)
        mass = scores.log_probability(found.assignment)
        same = places.setdefault(refinement_hash(graph), [])
        known = next((at for at in same if is_isomorphic(graphs[at], graph)), None)
        proved &= found.proved
        if known is not None:
            masses[known] = float(np.logaddexp(masses[known], mass))
            continue
        same.append(len(graphs))
        graphs.append(graph)
        log_scores.append(scores.score(found.assignment))
        masses.append(mass)
        if len(graphs) == count:
            break
    shares = np.exp(np.array(masses) - np.logaddexp.reduce(masses)) if masses else np.zeros(0)
    return Candidates(
        tuple(
            Candidate(graph, score, float(np.exp(mass)), float(share))
            for graph, score, mass, share in zip(graphs, log_scores, masses, shares, strict=True)
        ),
        proved,
        time.perf_counter() - start,
    )
