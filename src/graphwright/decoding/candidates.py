"""The k most probable distinct graphs of a prediction."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from graphwright.decoding.slots import SlotScores, assignments, slot_scores
from graphwright.decoding.valence import Formula
from graphwright.decoding.valid import ValidAssignment, check_vocabulary, formula_of, valid_assignments
from graphwright.graphs import Graph, Prediction, Vocabulary
from graphwright.graphs.isomorphism import DistinctGraphs

LOOKED_AT = 2000
"""Assignments: a trained model's ten best graphs are among the first few dozen."""


@dataclass(frozen=True)
class Candidate:
    """A graph that a prediction may mean.

    log_score: the model score of its best assignment to the slots; candidates are in this order.
    probability: that the model's independent decisions, drawn at random, give this graph, over all assignments
    to the slots that were met; a lower bound, since there may be others. It is small for large graphs, where many
    decisions are taken, even when each is nearly certain. Of a graph recognised as a whole it is that among all
    that the model knows and a formula allows, and log_score its logarithm.
    share: its part of the candidates' probability; these sum to one, and say how sure the choice among them is.
    proved: no graph that does not come before it has a higher score.
    checked: whether its input, computed from the graph, is the one that was given; None where nobody looked.
    text: the graph as its task writes it, where that says more than the graph does, such as hydrogens.
    note: why it cannot be what was asked for, where that is known.
    """

    graph: Graph
    log_score: float
    probability: float
    share: float
    proved: bool
    checked: bool | None = None
    text: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class Candidates:
    """Non-isomorphic graphs by decreasing score, and the time that it took to find them."""

    candidates: tuple[Candidate, ...]
    seconds: float

    @property
    def proved(self) -> bool:
        """Whether no graph that is missing scores higher than one that is there."""
        return all(candidate.proved for candidate in self.candidates)


def plain_candidates(
    prediction: Prediction, vocabulary: Vocabulary, count: int, *, looked_at: int = LOOKED_AT
) -> list[Candidates]:
    """For every sample its `count` graphs of highest score, the plain decoder's first.

    There are fewer where the `looked_at` assignments of highest score are of fewer graphs.
    """
    if looked_at < 1:
        raise ValueError(f"at least 1 assignment must be looked at, got {looked_at}")
    return [most_probable(scores, vocabulary, count, looked_at) for scores in slot_scores(prediction, vocabulary)]


def most_probable(
    scores: SlotScores, vocabulary: Vocabulary, count: int, looked_at: int = LOOKED_AT
) -> Candidates:
    """The `plain_candidates` of one sample."""
    start = time.perf_counter()
    stream = (ValidAssignment(each, proved=True) for each in islice(assignments(scores), looked_at))
    return _distinct(scores, vocabulary, stream, count, start)


def valid_candidates(
    prediction: Prediction,
    vocabulary: Vocabulary,
    count: int,
    *,
    formulas: Sequence[Formula | None] | None = None,
    seconds: float = 10.0,
    programs: int | None = None,
) -> list[Candidates]:
    """For every sample its `count` molecules of highest score, that of `decode_valid` first.

    There are fewer when `seconds` or, if given, so many mixed-integer programs (per sample) were not enough for
    more, and none only where a formula is given that no molecule was found for.
    """
    check_vocabulary(vocabulary)
    results = []
    for sample, scores in enumerate(slot_scores(prediction, vocabulary)):
        formula = formula_of(formulas, sample, len(prediction), vocabulary, scores)
        deadline = time.perf_counter() + seconds
        results.append(valid_of_scores(scores, vocabulary, formula, count, deadline, programs))
    return results


def valid_of_scores(
    scores: SlotScores,
    vocabulary: Vocabulary,
    formula: Formula | None,
    count: int,
    deadline: float,
    programs: int | None = None,
) -> Candidates:
    """The `valid_candidates` of one sample; the deadline is of `time.perf_counter`."""
    start = time.perf_counter()
    answers = valid_assignments(scores, vocabulary, formula, deadline, programs)
    return _distinct(scores, vocabulary, answers, count, start)


def _distinct(
    scores: SlotScores, vocabulary: Vocabulary, stream: Iterable[ValidAssignment], count: int, start: float
) -> Candidates:
    if count < 1:
        raise ValueError(f"the number of candidates must be at least 1, got {count}")
    distinct = DistinctGraphs()
    log_scores: list[float] = []
    masses: list[float] = []
    proved: list[bool] = []
    for answer in stream:
        graph = answer.assignment.graph(vocabulary)
        mass = scores.log_probability(answer.assignment)
        index = distinct.add(graph)
        if index < len(masses):
            masses[index] = float(np.logaddexp(masses[index], mass))
            continue
        log_scores.append(scores.score(answer.assignment))
        masses.append(mass)
        proved.append(answer.proved)
        if len(masses) == count:
            break
    shares = np.exp(np.array(masses) - np.logaddexp.reduce(masses)) if masses else np.zeros(0)
    return Candidates(
        tuple(
            Candidate(graph, score, float(np.exp(mass)), float(share), sure)
            for graph, score, mass, share, sure in zip(
                distinct.graphs, log_scores, masses, shares, proved, strict=True
            )
        ),
        time.perf_counter() - start,
    )
