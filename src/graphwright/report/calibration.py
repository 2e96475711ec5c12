"""How sure a model may be: a temperature at which its confidence is its accuracy on validation samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from graphwright.decoding.known import check_recognised
from graphwright.tasks import Bounded
from graphwright.training.decoders import Decoder
from graphwright.training.saved_model import SavedModel

SAMPLES, AT_ONCE = 4000, 128
"""Validation samples, where there are so many; and those predicted together."""
LEAST, MOST, HALVINGS = 0.1, 20.0, 40


@torch.no_grad()
def calibrated_temperature(model: SavedModel) -> float:
    """Of a model that recognises known graphs: where mean confidence is the share of validation samples right.

    One number for all. A model is too sure of what it knows, and knows nothing of graphs that it has not met; the
    order of candidates stays as it is.
    """
    data, library, predict = model.task.data("validation"), model.known.library, model.answering(Decoder.KNOWN)
    logits: list[NDArray[np.float64]] = []
    right = []
    for start in range(0, min(len(data), SAMPLES), AT_ONCE):
        chosen = range(start, min(len(data), SAMPLES, start + AT_ONCE))
        inputs, target = data.batch(chosen)
        known = predict(inputs).graphs.known
        if known is None:
            raise ValueError("a model that recognises no graphs has no confidence in them")
        check_recognised(known, len(library))
        bounds = data.bounds(chosen) if isinstance(data, Bounded) else [None] * len(chosen)
        for row, bound, graph in zip(known.double().numpy(), bounds, target.graphs(), strict=True):
            allowed = library.contents.within(bound, model.vocabulary)
            if len(allowed):
                logits.append(row[allowed])
                right.append(int(allowed[row[allowed].argmax()]) == library.distinct.find(graph))
    return temperature(logits, float(np.mean(right))) if right else 1.0


def temperature(logits: Sequence[NDArray[np.float64]], accuracy: float) -> float:
    """At which the mean largest probability, of logits (k,) each sample, is the accuracy, between the ends."""
    low, high = LEAST, MOST
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        surest = np.mean([1 / np.exp((each - each.max()) / middle).sum() for each in logits])
        low, high = (middle, high) if surest > accuracy else (low, middle)
    return float((low * high) ** 0.5)
