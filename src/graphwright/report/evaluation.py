"""A saved model on its task's samples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphwright.graphs import Graph, is_isomorphic
from graphwright.tasks import Extra, Grouped, Samples, Split
from graphwright.tasks.membership import Membership
from graphwright.tasks.spectra.molecule_means import molecule_means
from graphwright.training.assembly import loss_settings
from graphwright.training.decoders import Decoder, ranking
from graphwright.training.evaluation import Evaluation, evaluate_predictor
from graphwright.training.saved_model import SavedModel

SAMPLES = 1000
"""How many samples of a model's own data to look at if nobody says."""
TOPS = (5, 10)
OF_FINGERPRINTS = ("same_fingerprint", "tanimoto")
"""Metrics that are 1 where an answer has the fingerprint that was given."""


@dataclass(frozen=True, eq=False)
class Evaluated:
    """An evaluation, the data set that it was made on, and the metrics that only this task has.

    membership: of the samples, where several may be of one molecule. decoder: what made the graphs.
    """

    model: SavedModel
    data: Samples
    evaluation: Evaluation
    extras: list[Extra] = field(default_factory=list)
    membership: Membership | None = None
    decoder: Decoder = Decoder.PLAIN

    def figures(self) -> dict[str, Any]:
        """The contract of `graphwright evaluate --json`: the report's figures, then the task's own."""
        facts = {"task": self.model.task.name} | self.evaluation.report.to_json()
        for extra in self.extras:
            interval = self.evaluation.report.interval(extra.values)
            scale = 100 if extra.share else 1
            facts[extra.name] = scale * float(extra.values.mean())
            facts[f"{extra.name}_interval"] = [scale * interval.low, scale * interval.high]
        if self.decoder is Decoder.FINGERPRINT:
            seconds = [each.seconds for each in self.evaluation.ranked]
            facts["decode_seconds_median"] = float(np.median(seconds))
            facts["decode_seconds_p99"] = float(np.percentile(seconds, 99))
        if self.membership is not None:
            facts["per_molecule"] = molecule_means(self.evaluation.report, self.extras, self.membership)
        return facts


def unseen(count: int) -> None:
    """Progress that nobody watches."""


def evaluate_saved(
    model: SavedModel,
    split: Split = "test",
    seed: int | None = None,
    samples: int | None = None,
    *,
    at_most: int = SAMPLES,
    file: Path | None = None,
    advance: Callable[[int], None] = unseen,
    decoder: Decoder | None = None,
) -> Evaluated:
    """The first `samples` of a split of the model's own data (fresh ones under another seed), or of a file.

    Without a number: `at_most` so many of a split, all of a file. Without a decoder: the model's own.
    """
    decoder = decoder or model.decoder
    if file is None:
        limit = at_most if samples is None else samples
        data, where = model.task.data(split, seed=seed, limit=limit), f"the {split} split"
    else:
        data, where = model.task.data_from(file, limit=sys.maxsize if samples is None else samples), str(file)
        limit = len(data) if samples is None else samples
    if samples is not None and samples > len(data):
        raise ValueError(f"{where} has {len(data)} samples, not {samples}")
    # Lists of candidates are the custom with molecules; elsewhere they would cost more than they tell.
    ranks = model.task.ranked or decoder is not Decoder.PLAIN
    known = model.known if decoder is Decoder.KNOWN else None
    rank = ranking(decoder, max(TOPS), known, model.checking) if ranks else None
    evaluation = evaluate_predictor(
        model.answering(decoder),
        data,
        range(min(limit, len(data))),
        model.vocabulary,
        loss_settings(model.run.loss),
        advance=advance,
        rank=rank,
    )
    extras = [*model.task.extras(evaluation.predicted, evaluation.targets), *_tops(evaluation)]
    if decoder is Decoder.VALID:
        extras.append(Extra("decode_proved", _proved(evaluation)))
    if decoder is Decoder.FINGERPRINT:
        extras = _checked(extras, evaluation)
    if not isinstance(data, Grouped):
        return Evaluated(model, data, evaluation, extras, decoder=decoder)
    # Spectra of a formula are not independent: intervals are by resampling formulas.
    membership = data.membership(evaluation.indices)
    grouped = replace(evaluation, report=replace(evaluation.report, groups=membership.groups))
    return Evaluated(model, data, grouped, extras, membership, decoder)


def _tops(evaluation: Evaluation) -> list[Extra]:
    """Whether the truth is among the first few graphs; nothing without a ranking."""
    if not evaluation.ranked:
        return []
    places = np.array(
        [
            _place([each.graph for each in found.candidates], truth)
            for found, truth in zip(evaluation.ranked, evaluation.targets, strict=True)
        ]
    )
    return [Extra(f"top{count}", (places < count).astype(np.float64)) for count in TOPS]


def _proved(evaluation: Evaluation) -> NDArray[np.float64]:
    """(m,) whether the graph taken is proved to be the likeliest that the decoder could have taken."""
    return np.array([found.candidates[0].proved for found in evaluation.ranked], np.float64)


def _checked(extras: list[Extra], evaluation: Evaluation) -> list[Extra]:
    """Also whether the answer has exactly the fingerprint that was given, and how many candidates have.

    The decoder knows its answer's hydrogens. A graph alone may be another tautomer's, of another fingerprint.
    """
    found = [each.candidates for each in evaluation.ranked]
    having = [sum(bool(candidate.checked) for candidate in each) for each in found]
    reproduced = np.array([each[0].checked for each in found], np.float64)
    return [
        *(
            replace(extra, values=np.maximum(extra.values, reproduced)) if extra.name in OF_FINGERPRINTS else extra
            for extra in extras
        ),
        Extra("reproduced", reproduced),
        Extra("alternatives", np.array(having, np.float64), share=False),
    ]


def _place(graphs: Sequence[Graph], truth: Graph) -> int:
    return next((at for at, graph in enumerate(graphs) if is_isomorphic(graph, truth)), len(graphs) + max(TOPS))
