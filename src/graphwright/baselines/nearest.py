"""The graph of the training input that is most like the given one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphwright.graphs import Graph
from graphwright.inference.evaluate import unseen
from graphwright.tasks import Likeness, Samples, Task


@dataclass(frozen=True, eq=False)
class References:
    """Some samples of a training split, by their indices there, ascending."""

    samples: Samples
    indices: list[int]

    def __len__(self) -> int:
        return len(self.indices)

    def graph(self, at: int) -> Graph:
        """The graph of the sample at this index into `indices`."""
        graph: Graph = self.samples[self.indices[at]].graph
        return graph


def references_of(task: Task, count: int | None, seed: int = 0) -> References:
    """`count` training samples drawn without replacement, or all of them; spectra count one by one.

    The draw is a pure function of the seed and of how many samples there are.
    """
    if count is not None and count < 1:
        raise ValueError(f"references must be at least 1, got {count}")
    samples = task.references()
    if count is None or count >= len(samples):
        return References(samples, list(range(len(samples))))
    drawn = np.random.default_rng(seed).choice(len(samples), count, replace=False)
    return References(samples, np.sort(drawn).tolist())


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


def nearest(
    queries: Any, references: References, likeness: Likeness, advance: Callable[[int], None] = unseen
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
