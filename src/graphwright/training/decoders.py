"""How logits become graphs: by thresholds, or the likeliest valid molecules."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from graphwright.decoding.candidates import Candidates, plain_candidates, valid_candidates
from graphwright.graphs import Graph, Prediction, Vocabulary
from graphwright.graphs.molecules import BONDS

SECONDS = 2.0
"""For one prediction; then the best found so far."""

Ranking = Callable[[Prediction, Vocabulary], list[list[Graph]]]
"""From logits to graphs, for every sample at least one, the likeliest first."""


class Decoder(StrEnum):
    """Ways to decode."""

    PLAIN = "plain"
    """Every decision by itself, at its most probable value."""
    VALID = "valid"
    """The most probable molecule that obeys valence and is in one piece."""


RANKING_SECONDS = {Decoder.PLAIN: 0.05, Decoder.VALID: 0.5}
"""For one prediction of an evaluation."""


def candidates(
    prediction: Prediction, vocabulary: Vocabulary, decoder: Decoder, count: int, *, seconds: float = SECONDS
) -> list[Candidates]:
    """For every sample its most probable distinct graphs, up to `count`."""
    if decoder is Decoder.PLAIN:
        return plain_candidates(prediction, vocabulary, count, seconds=seconds)
    if vocabulary.edges != BONDS:
        raise ValueError("decoding to valid graphs is for molecules; these graphs have no valences")
    return valid_candidates(prediction, vocabulary, count, seconds=seconds)


def ranking(decoder: Decoder, count: int) -> Ranking:
    """The graphs of `candidates` for many predictions, without their probabilities.

    Each gets less time: a poor model's candidates are countless placements of the same few graphs.
    """

    def rank(prediction: Prediction, vocabulary: Vocabulary) -> list[list[Graph]]:
        found = candidates(prediction, vocabulary, decoder, count, seconds=RANKING_SECONDS[decoder])
        return [[candidate.graph for candidate in each.candidates] for each in found]

    return rank
