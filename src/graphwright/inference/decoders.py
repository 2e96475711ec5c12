"""How logits become graphs: by thresholds, the likeliest valid molecules, known graphs, or checked ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from graphwright.decoding.candidates import LOOKED_AT, Candidates, plain_candidates, valid_candidates
from graphwright.decoding.formula import Formula
from graphwright.graphs import Prediction, Vocabulary
from graphwright.graphs.molecules import BONDS
from graphwright.known import Known, known_candidates
from graphwright.models import Inputs
from graphwright.tasks import Task

Bounds = Sequence[Formula | None]
"""For every sample a formula that its graph obeys, or None."""


class Ranking(Protocol):
    """From logits to graphs, for every sample at least one, the best first."""

    def __call__(
        self,
        prediction: Prediction,
        vocabulary: Vocabulary,
        formulas: Bounds | None,
        inputs: Inputs | None = None,
        /,
    ) -> list[Candidates]:
        """With formulas if there are any, and the inputs if answers are to be checked against them."""


class Decoder(StrEnum):
    PLAIN = "plain"
    """Every decision by itself, at its most probable value."""
    VALID = "valid"
    """The most probable molecule that obeys valence and is in one piece."""
    KNOWN = "known"
    """The most probable of the graphs that the model was trained on."""
    FINGERPRINT = "fingerprint"
    """The most probable molecule that has exactly the fingerprint that was given; without one, the nearest."""


def decoder_named(name: str) -> Decoder:
    """The decoder of this name, or an error that names all."""
    try:
        return Decoder(name)
    except ValueError:
        raise ValueError(f"there is no decoder {name!r}: they are {', '.join(Decoder)}") from None


@dataclass(frozen=True)
class Effort:
    """What one prediction may cost.

    looked_at: assignments among which plain candidates are sought. programs: mixed-integer programs for valid
    ones; None: any number. seconds: for valid ones, after which the best so far must do. checked_seconds: the same
    for checked ones.
    """

    looked_at: int
    programs: int | None
    seconds: float
    checked_seconds: float

    def within(self, seconds: float) -> Effort:
        """The same for so many seconds."""
        if not seconds > 0:
            raise ValueError(f"the seconds for one prediction must be more than 0, got {seconds}")
        return replace(self, seconds=seconds, checked_seconds=seconds)


PREDICTING = Effort(looked_at=LOOKED_AT, programs=None, seconds=2.0, checked_seconds=8.0)
RANKING = Effort(looked_at=200, programs=8, seconds=5.0, checked_seconds=8.0)
"""For one of the many predictions of an evaluation, whose figures must not depend on how busy the machine is: the
seconds are for programs that do not end. A poor model's candidates are a few graphs on many choices of slots."""


def default_decoder(task: Task) -> Decoder:
    """The one that answers best where nobody asks for another: a checked answer, where a task can check."""
    return Decoder.FINGERPRINT if task.checks_answers else Decoder.PLAIN


def check_decoder(decoder: Decoder, vocabulary: Vocabulary, checking: Task | None = None) -> None:
    """Refuse a decoder that graphs of this vocabulary, or inputs that nobody can check, do not have."""
    if decoder is Decoder.VALID and vocabulary.edges != BONDS:
        raise ValueError("decoding to valid graphs is for molecules; these graphs have no valences")
    if decoder is Decoder.FINGERPRINT and checking is None:
        raise ValueError("decoding by fingerprint is for models whose input is a fingerprint")


def candidates(
    prediction: Prediction,
    vocabulary: Vocabulary,
    decoder: Decoder,
    count: int,
    *,
    effort: Effort = PREDICTING,
    formulas: Bounds | None = None,
    known: Known | None = None,
    checking: Task | None = None,
    inputs: Inputs | None = None,
) -> list[Candidates]:
    """For every sample its best distinct graphs, up to `count`; valid and known ones obey the formulas.

    known: where graphs are to be known ones. checking, inputs: where they are to be checked against the inputs.
    """
    decoder = decoder_named(decoder)
    check_decoder(decoder, vocabulary, checking)
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
    if decoder is Decoder.FINGERPRINT:
        assert checking is not None  # looked at above
        if inputs is None:
            raise ValueError("there are no inputs to check graphs against")
        if formulas is not None:
            raise ValueError("a fingerprint says what a molecule is made of; decoding by it obeys no formula")
        return checking.checked(
            prediction, inputs, count, programs=effort.programs, seconds=effort.checked_seconds
        )
    return valid_candidates(
        prediction, vocabulary, count, formulas=formulas, seconds=effort.seconds, programs=effort.programs
    )


def ranking(decoder: Decoder, count: int, known: Known | None = None, checking: Task | None = None) -> Ranking:
    """The `candidates` of the many predictions of an evaluation."""
    return lambda prediction, vocabulary, formulas, inputs=None, /: candidates(
        prediction,
        vocabulary,
        decoder,
        count,
        effort=RANKING,
        formulas=formulas,
        known=known,
        checking=checking,
        inputs=inputs,
    )
