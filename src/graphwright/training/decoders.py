"""How logits become graphs: by thresholds, the likeliest valid molecules, or the likeliest known graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from graphwright.decoding.candidates import LOOKED_AT, Candidates, plain_candidates, valid_candidates
from graphwright.decoding.formula import Formula
from graphwright.decoding.known import Library, Placement, known_candidates
from graphwright.graphs import Prediction, Vocabulary
from graphwright.graphs.molecules import BONDS

Bounds = Sequence[Formula | None]
"""For every sample a formula that its graph obeys, or None."""
Ranking = Callable[[Prediction, Vocabulary, Bounds | None], list[Candidates]]
"""From logits, and formulas if there are any, to graphs, for every sample at least one, the likeliest first."""


class Decoder(StrEnum):
    """Ways to decode."""

    PLAIN = "plain"
    """Every decision by itself, at its most probable value."""
    VALID = "valid"
    """The most probable molecule that obeys valence and is in one piece."""
    KNOWN = "known"
    """The most probable of the graphs that the model was trained on."""


@dataclass(frozen=True, eq=False)
class Known:
    """The graphs to choose from, which slots their nodes are put on, and how sure a model is that names them.

    temperature: logits of graphs recognised as wholes are divided by it; see `report.calibration`.
    """

    library: Library
    placement: Placement
    temperature: float = 1.0


@dataclass(frozen=True)
class Effort:
    """What one prediction may cost.

    looked_at: assignments among which plain candidates are sought. programs: mixed-integer programs for valid
    ones; None: any number. seconds: for valid ones, after which the best so far must do.
    """

    looked_at: int
    programs: int | None
    seconds: float


PREDICTING = Effort(looked_at=LOOKED_AT, programs=None, seconds=2.0)
RANKING = Effort(looked_at=200, programs=8, seconds=5.0)
"""For one of the many predictions of an evaluation, whose figures must not depend on how busy the machine is: the
seconds are for programs that do not end. A poor model's candidates are countless places of the same few graphs."""


def check_decoder(decoder: Decoder, vocabulary: Vocabulary) -> None:
    """Refuse a decoder that graphs of this vocabulary do not have."""
    if decoder is Decoder.VALID and vocabulary.edges != BONDS:
        raise ValueError("decoding to valid graphs is for molecules; these graphs have no valences")


def candidates(
    prediction: Prediction,
    vocabulary: Vocabulary,
    decoder: Decoder,
    count: int,
    *,
    effort: Effort = PREDICTING,
    formulas: Bounds | None = None,
    known: Known | None = None,
) -> list[Candidates]:
    """For every sample its most probable distinct graphs, up to `count`; all but plain ones obey the formulas."""
    if decoder is Decoder.PLAIN:
        return plain_candidates(prediction, vocabulary, count, looked_at=effort.looked_at)
    if decoder is Decoder.KNOWN:
        if known is None:
            raise ValueError("there are no known graphs to choose from")
        if prediction.known is not None:
            prediction = replace(prediction, known=prediction.known / known.temperature)
        return known_candidates(
            prediction, vocabulary, known.library, count, placement=known.placement, formulas=formulas
        )
    check_decoder(decoder, vocabulary)
    return valid_candidates(
        prediction, vocabulary, count, formulas=formulas, seconds=effort.seconds, programs=effort.programs
    )


def ranking(decoder: Decoder, count: int, known: Known | None = None) -> Ranking:
    """The `candidates` of the many predictions of an evaluation."""
    return lambda prediction, vocabulary, formulas: candidates(
        prediction, vocabulary, decoder, count, effort=RANKING, formulas=formulas, known=known
    )
