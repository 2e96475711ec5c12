"""The most probable of graphs that are known beforehand, and how sure a model may be of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial

import numpy as np
import torch
from numpy.typing import NDArray

from graphwright.decoding.candidates import Candidate, Candidates, most_probable
from graphwright.decoding.slots import BoolArray, SlotScores, harden, slot_scores
from graphwright.decoding.valence import Formula
from graphwright.graphs import GraphBatch, Prediction, Vocabulary
from graphwright.graphs.batch import without_self_loops
from graphwright.graphs.graph import FloatArray
from graphwright.known.library import Codes, Contents, Library, check_recognised
from graphwright.transport import (
    Divergence,
    EdgeTerm,
    MatchingProblem,
    aligning_plan,
    assign,
)

PLACED_AT_ONCE = 64
"""Graphs that are placed on the slots between two looks at whether a better one can still come."""
PLACED = 512
"""Graphs that are placed for one prediction at most: a second or so at 32 slots."""
STARTS = 8
"""For a few graphs that are to be compared with each other: from one start chains of carbon are misplaced."""
FREQUENCY = 0.5
"""Weight of the logarithm of how often a graph was met. The model's log-probability has the frequencies in it but,
a sum over decisions as if they were independent, is too sure of itself. Chosen on MassBank's validation fold."""


class Placement(StrEnum):
    """Which slots a known graph's nodes are put on."""

    BEST = "best"
    """Those that make it most probable, as far as conditional gradient finds them."""
    IN_ORDER = "in order"
    """The first ones, in the graph's own order: for a model that was trained so."""


@dataclass(frozen=True, eq=False)
class Known:
    """The graphs to choose from, which slots their nodes are put on, and how sure a model is that names them.

    temperature: logits of graphs recognised as wholes are divided by it; see `calibration`.
    """

    library: Library
    placement: Placement
    temperature: float = 1.0


def known_candidates(
    prediction: Prediction,
    vocabulary: Vocabulary,
    library: Library,
    count: int,
    *,
    placement: Placement = Placement.BEST,
    formulas: Sequence[Formula | None] | None = None,
) -> list[Candidates]:
    """For every sample the `count` graphs of the library that the model holds most probable.

    A model that recognises graphs as wholes says so itself, and `log_score` is the logarithm of that probability,
    among the graphs that the formula allows: on MassBank's validation fold the slots' opinion, at any weight, made
    it worse. Of any other model `log_score` is the log-probability on the best slots that the search meets plus
    `FREQUENCY` times the log of the graph's count. Where a formula leaves no graph of the library, the plain
    decoder answers. Atoms alone are compared with a formula: a library's graphs are real, so their hydrogens
    follow. Nothing is proved: a graph may be more probable on other slots.
    """
    if count < 1:
        raise ValueError(f"the number of candidates must be at least 1, got {count}")
    if library.batch.vocabulary != vocabulary or library.batch.capacity != prediction.capacity:
        raise ValueError("the library's graphs have another vocabulary, or other slots, than the prediction")
    if formulas is not None and len(formulas) != len(prediction):
        raise ValueError(f"{len(formulas)} formulas for {len(prediction)} predictions")
    if prediction.known is not None:
        check_recognised(prediction.known, len(library))
    harden(prediction, vocabulary)  # refuses NaN and wrong shapes, naming the sample
    # A model that recognises graphs needs them only where a formula leaves none.
    every_score = cache(partial(slot_scores, prediction, vocabulary))
    wholes = None if prediction.known is None else prediction.known.double().cpu().numpy()
    contents = library.contents
    if wholes is None:
        every_score()
    results = []
    for sample in range(len(prediction)):
        start = time.perf_counter()
        formula = None if formulas is None else formulas[sample]
        allowed = contents.within(formula, vocabulary)
        if not len(allowed):
            results.append(most_probable(every_score()[sample], vocabulary, count))
            continue
        if wholes is not None:
            logs = wholes[sample, allowed] - np.logaddexp.reduce(wholes[sample, allowed])
            results.append(_ranked(library, allowed, logs, np.zeros(len(allowed)), count, start))
            continue
        scores, prior = every_score()[sample], FREQUENCY * np.log(library.counts[allowed])
        log_probabilities = in_order(scores, library.batch, allowed)
        if placement is Placement.BEST:
            bounds = _bounds(contents, scores)[allowed]
            log_probabilities = _best_placed(
                scores, library.batch, allowed, bounds, prior, log_probabilities, count
            )
        results.append(_ranked(library, allowed, log_probabilities, prior, count, start))
    return results


def in_order(scores: SlotScores, graphs: GraphBatch, which: Codes) -> FloatArray:
    """(k,) log-probabilities of some of the graphs, their nodes on the first slots in their order."""
    chosen = graphs.select(torch.from_numpy(which))
    return _log_probabilities(scores, chosen.mask.numpy(), chosen.node_labels.numpy(), chosen.edge_labels.numpy())


def log_probabilities(scores: SlotScores, graphs: GraphBatch) -> FloatArray:
    """(k,) log-probabilities of a few graphs, their nodes in any order, on the best slots that a search meets."""
    return _placed(scores, graphs, np.arange(len(graphs)), STARTS)


def _log_probabilities(scores: SlotScores, presence: BoolArray, labels: Codes, edges: Codes) -> FloatArray:
    """(k,) of decisions (k, n), (k, n), (k, n, n) on the slots, those of absent ones not counted."""
    slots = np.arange(scores.slots)
    first, second = np.triu_indices(scores.slots, 1)
    pairs = scores.edges[first, second, edges[:, first, second]]
    result: FloatArray = (
        scores.presence[slots, presence.astype(np.int64)].sum(1)
        + (scores.labels[slots, labels] * presence).sum(1)
        + (pairs * (presence[:, first] & presence[:, second])).sum(1)
    )
    return result


def _bounds(contents: Contents, scores: SlotScores) -> FloatArray:
    """(k,) what no placement of a graph exceeds: its nodes on their best slots, its edges for nothing."""
    n, sizes = scores.slots, contents.kinds.sum(1)
    columns = np.full((len(contents.kinds), n), -1)
    for row, kind in enumerate(contents.kinds):
        columns[row, : sizes[row]] = np.repeat(np.arange(len(kind)), kind)
    present = scores.presence[:, 1:] + scores.labels
    gains = np.where(columns[:, None, :] < 0, scores.presence[:, :1], present[:, columns.clip(0)].swapaxes(0, 1))
    taken = assign(torch.from_numpy(-gains)).numpy()
    best: FloatArray = np.take_along_axis(gains, taken[:, :, None], 2)[:, :, 0].sum(1)
    return best[contents.kind]


def _best_placed(
    scores: SlotScores,
    graphs: GraphBatch,
    allowed: Codes,
    bounds: FloatArray,
    prior: FloatArray,
    in_order: FloatArray,
    count: int,
) -> FloatArray:
    """(k,) log-probabilities on the best slots met; graphs that cannot be among the first are left out."""
    best, highest = in_order.copy(), bounds + prior
    for chosen in _parts(np.argsort(-highest, kind="stable")[:PLACED], PLACED_AT_ONCE):
        least = np.sort(best + prior)[-min(count, len(best))]
        if highest[chosen[0]] <= least:
            break
        best[chosen] = np.maximum(best[chosen], _placed(scores, graphs, allowed[chosen]))
    return best


def _placed(scores: SlotScores, graphs: GraphBatch, which: Codes, starts: int = 1) -> FloatArray:
    """(k,) log-probabilities of some of the graphs where conditional gradient, from some starts, puts them."""
    batch = graphs.select(torch.from_numpy(which))
    k, n = batch.mask.shape
    sizes = batch.sizes.clamp_min(1)[:, None, None]
    labels = torch.from_numpy(scores.presence[:, 1:] + scores.labels)[:, batch.node_labels].movedim(0, 1)
    absent = torch.from_numpy(scores.presence[:, :1])
    # The objective counts every pair twice and divides by the square of the size.
    linear = torch.where(batch.mask[:, None, :], -labels, -absent) * 2 / sizes**2
    logits = without_self_loops(torch.from_numpy(scores.edges).movedim(-1, 0)[None]).expand(k, -1, -1, -1)
    edges = EdgeTerm(logits.contiguous(), batch.edge_one_hot(torch.float64), Divergence.CROSS_ENTROPY, 1.0)
    problem = MatchingProblem(linear, (edges,), batch.node_mask(torch.float64))
    node = assign(-aligning_plan(problem, starts).matrix)  # of each slot
    presence = batch.mask.gather(1, node)
    on_slots = batch.edge_labels.gather(1, node[:, :, None].expand(k, n, n)).gather(
        2, node[:, None, :].expand(k, n, n)
    )
    return _log_probabilities(
        scores, presence.numpy(), batch.node_labels.gather(1, node).numpy(), on_slots.numpy()
    )


def _ranked(
    library: Library, allowed: Codes, log_probabilities: FloatArray, prior: FloatArray, count: int, start: float
) -> Candidates:
    log_scores = log_probabilities + prior
    best = np.argsort(-log_scores, kind="stable")[:count]
    shares = np.exp(log_scores[best] - np.logaddexp.reduce(log_scores[best]))
    return Candidates(
        tuple(
            Candidate(
                library.graphs[allowed[at]],
                float(log_scores[at]),
                float(np.exp(log_probabilities[at])),
                float(share),
                proved=False,
            )
            for at, share in zip(best, shares, strict=True)
        ),
        time.perf_counter() - start,
    )


def _parts(order: Codes, size: int) -> Iterator[Codes]:
    return (order[start : start + size] for start in range(0, len(order), size))


LEAST, MOST, HALVINGS = 0.1, 20.0, 40


def temperature(logits: Sequence[NDArray[np.float64]], accuracy: float) -> float:
    """At which the mean largest probability, of logits (k,) each sample, is the accuracy, between the ends."""
    low, high = LEAST, MOST
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        surest = np.mean([1 / np.exp((each - each.max()) / middle).sum() for each in logits])
        low, high = (middle, high) if surest > accuracy else (low, middle)
    return float((low * high) ** 0.5)
