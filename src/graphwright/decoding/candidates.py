"""The k most probable distinct graphs of a prediction."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

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
    that the model knows and a formula allows, and log_score its logarithm; of one on which several views agree,
    the geometric mean of theirs.
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


def order_in_words(candidates: Sequence[Candidate]) -> str | None:
    """By what candidates are ranked, where one has a higher probability than another before it; else None."""
    if all(first.probability >= second.probability for first, second in pairwise(candidates)):
        return None
    if any(each.checked for each in candidates):
        return "those that have the given fingerprint come first, whatever their probability"
    if any(each.checked is not None for each in candidates):
        return "where none has the given fingerprint, those nearest to it come first, whatever their probability"
    return (
        "ranked by the best way to fill the slots with each graph; a probability adds up all ways, "
        "so that a later one may be higher"
    )


def plain_candidates(
    prediction: Prediction, vocabulary: Vocabulary, count: int, *, looked_at: int = LOOKED_AT
) -> list[Candidates]:
    """For every sample its `count` graphs of highest score, the plain decoder's first.

    There are fewer where the `looked_at` assignments of highest score are of fewer graphs.
    """
    if looked_at < 1:
        raise ValueError(f"at least 1 assignment must be looked at, got {looked_at}")
    return [most_probable(scores, vocabulary, count, looked_at) for scores in slot_scores(prediction, vocabulary)]


NAMED = 10
"""Graphs that every view names: with one each the truth is lost where no view has it first."""
LOOKED_AT_IN_VIEWS = 200
"""Assignments of each view, so that an answer depends neither on how many are asked for nor on who asks."""
LEFT = 1e-12
"""What a view that is certain leaves for graphs that it does not name; less is the rounding of its sum."""


def agreed_candidates(predictions: Sequence[Prediction], vocabulary: Vocabulary, count: int) -> list[Candidates]:
    """For every sample the `count` graphs that several predictions of it, from views of one input, agree on best.

    Every view names its likeliest graphs; the mean of their log-probabilities over the views is the score, and its
    exponential the probability. To a graph that it does not name a view gives as much as to the least likely of
    those that it names, or what these leave, whichever is less.
    """
    every = [slot_scores(prediction, vocabulary) for prediction in predictions]
    return [_agreed(scores, vocabulary, count) for scores in zip(*every, strict=True)]


def _agreed(views: Sequence[SlotScores], vocabulary: Vocabulary, count: int) -> Candidates:
    start = time.perf_counter()
    named = [_Named.of(scores, vocabulary, _likeliest(scores, LOOKED_AT_IN_VIEWS), NAMED) for scores in views]
    distinct = DistinctGraphs()
    indices = [[distinct.add(graph) for graph in view.graphs] for view in named]
    log_probabilities = np.empty((len(views), len(distinct.graphs)))
    for row, view, chosen in zip(log_probabilities, named, indices, strict=True):
        left = -np.expm1(min(np.logaddexp.reduce(view.masses), 0.0))
        row[:] = min(np.log(max(left, LEFT)), min(view.masses))
        row[chosen] = view.masses
    scores = log_probabilities.mean(0)
    order = np.argsort(-scores, kind="stable")[:count]
    shares = np.exp(scores[order] - np.logaddexp.reduce(scores[order]))
    return Candidates(
        tuple(
            Candidate(
                distinct.graphs[at], float(scores[at]), float(np.exp(scores[at])), float(share), proved=False
            )
            for at, share in zip(order, shares, strict=True)
        ),
        time.perf_counter() - start,
    )


def most_probable(
    scores: SlotScores, vocabulary: Vocabulary, count: int, looked_at: int = LOOKED_AT
) -> Candidates:
    """The `plain_candidates` of one sample."""
    start = time.perf_counter()
    return _distinct(scores, vocabulary, _likeliest(scores, looked_at), count, start)


def _likeliest(scores: SlotScores, looked_at: int) -> Iterator[ValidAssignment]:
    """So many assignments of highest score."""
    return (ValidAssignment(each, proved=True) for each in islice(assignments(scores), looked_at))


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


@dataclass(frozen=True)
class _Named:
    """The first distinct graphs of some assignments, with the best log-score, the log-probability of all their
    assignments that were met before the last graph was, and whether the best is proved."""

    graphs: Sequence[Graph]
    log_scores: list[float]
    masses: list[float]
    proved: list[bool]

    @classmethod
    def of(
        cls, scores: SlotScores, vocabulary: Vocabulary, stream: Iterable[ValidAssignment], count: int
    ) -> _Named:
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
        return cls(distinct.graphs, log_scores, masses, proved)


def _distinct(
    scores: SlotScores, vocabulary: Vocabulary, stream: Iterable[ValidAssignment], count: int, start: float
) -> Candidates:
    named = _Named.of(scores, vocabulary, stream, count)
    masses = named.masses
    shares = np.exp(np.array(masses) - np.logaddexp.reduce(masses)) if masses else np.zeros(0)
    return Candidates(
        tuple(
            Candidate(graph, score, float(np.exp(mass)), float(share), sure)
            for graph, score, mass, share, sure in zip(
                named.graphs, named.log_scores, masses, shares, named.proved, strict=True
            )
        ),
        time.perf_counter() - start,
    )
