"""The graph of the training input that is most like the given one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphwright.baselines.references import References
from graphwright.tasks import Likeness

REFERENCES_TOGETHER = 512
"""Training samples in memory at a time: there may be any number of them."""


@dataclass(frozen=True)
class NearestSettings:
    """references: how many training samples are searched, drawn with `seed`; None: all of them."""

    references: int | None = 10_000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class NearestReferences:
    """Of every query the most similar reference: index (q,) into the references, the first of equals, similarity.

    reading, searching: seconds for the features of the references, and for comparing them.
    """

    index: NDArray[np.int64]
    similarity: NDArray[np.float32]
    reading: float
    searching: float


def _unseen(count: int) -> None:
    """Progress that nobody watches."""


def nearest(
    queries: Any, references: References, likeness: Likeness, advance: Callable[[int], None] = _unseen
) -> NearestReferences:
    """The nearest references of features (q, ...); `advance` hears how many references were looked at."""
    index = similarity = None
    reading = searching = 0.0
    for start in range(0, len(references), REFERENCES_TOGETHER):
        chosen = references.indices[start : start + REFERENCES_TOGETHER]
        begun = perf_counter()
        features = likeness.features(references.samples, chosen)
        read = perf_counter()
        alike = likeness.similarity(queries, features)
        best = alike.argmax(1)
        value = alike[np.arange(len(best)), best]
        if index is None or similarity is None:
            index, similarity = best.astype(np.int64), value
        else:
            closer = value > similarity
            index, similarity = np.where(closer, start + best, index), np.where(closer, value, similarity)
        searching += perf_counter() - read
        reading += read - begun
        advance(len(chosen))
    if index is None or similarity is None:
        raise ValueError("there is no training sample to be nearest")
    return NearestReferences(index, similarity, reading, searching)
