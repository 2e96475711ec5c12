"""How logits become graphs: by thresholds, by several views, as valid molecules, known or checked graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from graphwright.decoding.candidates import (
    LOOKED_AT,
    Candidates,
    agreed_candidates,
    plain_candidates,
    valid_candidates,
)
from graphwright.decoding.valence import Formula
from graphwright.graphs import Prediction, Vocabulary
from graphwright.graphs.molecules import BONDS
from graphwright.known import Known, known_candidates
from graphwright.models import Inputs
from graphwright.registry import Registry
from graphwright.tasks import Extra, Task

Bounds = Sequence[Formula | None]
"""For every sample a formula that its graph obeys, or None."""


class Ranking(Protocol):
    """From logits to graphs, for every sample at least one, the best first."""

    def __call__(self, prediction: Prediction, formulas: Bounds | None, inputs: Inputs, /) -> list[Candidates]:
        """With formulas if there are any, and the inputs that were predicted from."""


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


@dataclass(frozen=True, eq=False)
class Question:
    """What is to be decoded into up to `count` graphs a sample, and what a decoder may look at besides.

    formulas: for every sample one that its graph obeys, or None. known: graphs to choose from, if it does.
    inputs: what was given, which `task` may check a graph against. views: predictions from other views of it.
    """

    prediction: Prediction
    task: Task
    count: int
    effort: Effort = PREDICTING
    formulas: Bounds | None = None
    known: Known | None = None
    inputs: Inputs | None = None
    views: Sequence[Prediction] = ()

    @property
    def vocabulary(self) -> Vocabulary:
        """The labels of the graphs."""
        return self.task.vocabulary


class Decoder(ABC):
    """A way to decode; `DECODERS.register` gives it its name. The docstring's first line is its help."""

    obeys_formulas: ClassVar[bool] = False
    """Whether it looks at `Question.formulas`."""
    from_known: ClassVar[bool] = False
    """Whether it chooses from `Question.known`, and a model is asked for what it recalls as well."""
    from_views: ClassVar[bool] = False
    """Whether it compares `Question.views`, and a model is asked for those as well."""
    takes_the_time_given: ClassVar[bool] = False
    """Whether more seconds may give a better graph."""
    at_once: ClassVar[int] = 128
    """Samples to decode before a person who waits is told how far it is."""
    why_fewer: ClassVar[str] = "there are no others"
    """Why there may be fewer candidates than were asked for."""
    for_more: ClassVar[str] = ""
    """What to say on the command line to have more of them."""

    def check(self, task: Task) -> None:  # noqa: B027
        """Refuse a task whose graphs or inputs it cannot do with."""

    @abstractmethod
    def candidates(self, asked: Question) -> list[Candidates]:
        """For every sample its best distinct graphs, at least one, the best first."""

    def extras(self, own: list[Extra], ranked: Sequence[Candidates]) -> list[Extra]:  # noqa: ARG002
        """The metrics `own` of a task, and what this decoder can say of its answers besides."""
        return own

    def facts(self, ranked: Sequence[Candidates]) -> dict[str, float]:  # noqa: ARG002
        """Further figures of its answers, by name."""
        return {}


DECODERS: Registry[type[Decoder]] = Registry("decoder")
"""Ways to decode, by name."""
PLAIN, VIEWS, VALID, KNOWN, CHECKED = "plain", "views", "valid", "known", "fingerprint"
FINGERPRINT_METRICS = ("same_fingerprint", "tanimoto")
"""Metrics that are 1 where an answer has the fingerprint that was given."""


@DECODERS.register(PLAIN)
class PlainDecoder(Decoder):
    """slot by slot"""

    why_fewer = "the model gives no other graph a chance worth looking at"

    def candidates(self, asked: Question) -> list[Candidates]:
        return plain_candidates(asked.prediction, asked.vocabulary, asked.count, looked_at=asked.effort.looked_at)


@DECODERS.register(VIEWS)
class ViewsDecoder(Decoder):
    """the graph on which several views of the input agree best"""

    from_views = True
    why_fewer = "every view names its ten likeliest graphs, and no others"

    def check(self, task: Task) -> None:
        if not task.several_views:
            raise ValueError(f"{task.name} has one view of its inputs alone: decode it plain")

    def candidates(self, asked: Question) -> list[Candidates]:
        if not asked.views:
            raise ValueError("there are no other views to compare with")
        return agreed_candidates([asked.prediction, *asked.views], asked.vocabulary, asked.count)


@DECODERS.register(VALID)
class ValidDecoder(Decoder):
    """the likeliest molecule that obeys valence"""

    obeys_formulas = True
    takes_the_time_given = True
    at_once = 4
    why_fewer, for_more = "no other molecule was found in time", "--seconds gives more"

    def check(self, task: Task) -> None:
        if task.vocabulary.edges != BONDS:
            raise ValueError("decoding to valid graphs is for molecules; these graphs have no valences")

    def candidates(self, asked: Question) -> list[Candidates]:
        return valid_candidates(
            asked.prediction,
            asked.vocabulary,
            asked.count,
            formulas=asked.formulas,
            seconds=asked.effort.seconds,
            programs=asked.effort.programs,
        )

    def extras(self, own: list[Extra], ranked: Sequence[Candidates]) -> list[Extra]:
        proved = np.array([each.candidates[0].proved for each in ranked], np.float64)
        return [*own, Extra("decode_proved", "proved to be the likeliest molecule, %", proved)]


@DECODERS.register(KNOWN)
class KnownDecoder(Decoder):
    """the likeliest graph of the training data"""

    obeys_formulas = True
    from_known = True
    why_fewer = "no other graph of the training data fits"

    def candidates(self, asked: Question) -> list[Candidates]:
        known, prediction = asked.known, asked.prediction
        if known is None:
            raise ValueError("there are no known graphs to choose from")
        if prediction.known is not None:
            prediction = replace(prediction, known=prediction.known / known.temperature)
        return known_candidates(
            prediction,
            asked.vocabulary,
            known.library,
            asked.count,
            placement=known.placement,
            formulas=asked.formulas,
        )


@DECODERS.register(CHECKED)
class FingerprintDecoder(Decoder):
    """the likeliest molecule that has the fingerprint that was given"""

    at_once = 4
    why_fewer, for_more = "no other molecule that has the fingerprint was found", "--decode valid ranks others"

    def check(self, task: Task) -> None:
        if not task.checks_answers:
            raise ValueError("decoding by fingerprint is for models whose input is a fingerprint")

    def candidates(self, asked: Question) -> list[Candidates]:
        if asked.inputs is None:
            raise ValueError("there are no inputs to check graphs against")
        if asked.formulas is not None:
            raise ValueError("a fingerprint says what a molecule is made of; decoding by it obeys no formula")
        effort = asked.effort
        return asked.task.checked(
            asked.prediction, asked.inputs, asked.count, programs=effort.programs, seconds=effort.checked_seconds
        )

    def extras(self, own: list[Extra], ranked: Sequence[Candidates]) -> list[Extra]:
        """Also whether the answer has exactly the fingerprint that was given, and how many candidates have.

        The decoder knows its answer's hydrogens. A graph alone may be another tautomer's, of another fingerprint.
        """
        answers = [each.candidates for each in ranked]
        having = [sum(bool(candidate.checked) for candidate in each) for each in answers]
        reproduced = np.array([each[0].checked for each in answers], np.float64)
        return [
            *(
                replace(extra, values=np.maximum(extra.values, reproduced))
                if extra.name in FINGERPRINT_METRICS
                else extra
                for extra in own
            ),
            Extra("reproduced", "answers that have exactly the given fingerprint, %", reproduced),
            Extra(
                "alternatives",
                "candidates that have exactly the given fingerprint",
                np.array(having, np.float64),
                share=False,
            ),
        ]

    def facts(self, ranked: Sequence[Candidates]) -> dict[str, float]:
        seconds = [each.seconds for each in ranked]
        return {
            "decode_seconds_median": float(np.median(seconds)),
            "decode_seconds_p99": float(np.percentile(seconds, 99)),
        }


def decoder_named(name: str) -> Decoder:
    """The decoder of this name, or an error that names all."""
    if not isinstance(name, str):
        raise TypeError(f"decode must be a decoder's name, one of {', '.join(DECODERS)}, got {name!r}")
    return DECODERS[name]()


def default_decoder(task: Task, recognises: bool) -> str:
    """The one that answers best where nobody asks for another.

    A checked answer where a task can check, a known graph where the model recognises graphs as wholes, what
    several views agree on where there are several; of other molecules a valid one.
    """
    if task.checks_answers:
        return CHECKED
    if recognises:
        return KNOWN
    if task.several_views:
        return VIEWS
    return VALID if task.vocabulary.edges == BONDS else PLAIN


def ranking(
    decoder: Decoder,
    count: int,
    task: Task,
    known: Known | None = None,
    views_of: Callable[[Inputs], Sequence[Prediction]] | None = None,
) -> Ranking:
    """The candidates of the many predictions of an evaluation; `views_of` predicts from other views of inputs."""
    decoder.check(task)

    def rank(prediction: Prediction, formulas: Bounds | None, inputs: Inputs, /) -> list[Candidates]:
        views = () if views_of is None else views_of(inputs)
        return decoder.candidates(Question(prediction, task, count, RANKING, formulas, known, inputs, views))

    return rank
