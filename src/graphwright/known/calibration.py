"""How sure a model may be: a temperature at which its confidence is its accuracy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LEAST, MOST, HALVINGS = 0.1, 20.0, 40


def temperature(logits: Sequence[NDArray[np.float64]], accuracy: float) -> float:
    """At which the mean largest probability, of logits (k,) each sample, is the accuracy, between the ends."""
    low, high = LEAST, MOST
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        surest = np.mean([1 / np.exp((each - each.max()) / middle).sum() for each in logits])
        low, high = (middle, high) if surest > accuracy else (low, middle)
    return float((low * high) ** 0.5)
