"""The training molecule whose fingerprint is most like the given one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from graphwright.graphs import Graph
from graphwright.metrics import evaluate_graphs
from graphwright.report.evaluation import Evaluated
from graphwright.tasks import Samples
from graphwright.tasks.molecules import BITS, Fingerprint2Molecule
from graphwright.tasks.molecules.fingerprint import BitArray

QUERIES_TOGETHER = 64


def _unseen(count: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class Neighbour:
    """The index of a reference fingerprint, and its Tanimoto similarity."""

    index: int
    similarity: float


@dataclass(frozen=True, eq=False)
class NearestFingerprint:
    """Reference fingerprints: a sparse matrix (m, 2048) of zeros and ones."""

    matrix: csr_array[np.float32]

    @classmethod
    def of(cls, fingerprints: Sequence[BitArray]) -> NearestFingerprint:
        """The index of some fingerprints, each given by its active bits."""
        if not fingerprints:
            raise ValueError("fingerprints must not be empty")
        return cls(_matrix(fingerprints))

    def find(self, fingerprints: Sequence[BitArray]) -> list[Neighbour]:
        """For each the reference of highest Tanimoto similarity, |a & b| / |a | b|; of equals the first."""
        sizes: NDArray[np.float32] = self.matrix.sum(1)
        found: list[Neighbour] = []
        for start in range(0, len(fingerprints), QUERIES_TOGETHER):
            queries = _matrix(fingerprints[start : start + QUERIES_TOGETHER]).toarray()
            common: NDArray[np.float32] = self.matrix @ queries.T
            union = sizes[:, None] + queries.sum(1) - common
            # Two fingerprints without any bit are the same.
            similarity = np.where(union > 0, common / np.maximum(union, 1), 1.0)
            best = similarity.argmax(0)
            found += [Neighbour(int(at), float(similarity[at, query])) for query, at in enumerate(best.tolist())]
        return found


def nearest_molecules(
    reference: Samples, fingerprints: Sequence[BitArray], advance: Callable[[int], None] = _unseen
) -> list[Graph]:
    """The graphs of the reference molecules nearest to some fingerprints; `advance` hears of every one indexed."""
    bits = []
    for index in range(len(reference)):
        bits.append(reference[index].bits)
        advance(1)
    return [reference[each.index].graph for each in NearestFingerprint.of(bits).find(fingerprints)]


def nearest_figures(result: Evaluated, advance: Callable[[int], None] = _unseen) -> dict[str, Any]:
    """The nearest training molecules in place of a model's predictions, on the same samples; all figures."""
    task, samples = result.model.task, result.data
    if not isinstance(task, Fingerprint2Molecule):
        raise ValueError(f"the nearest-fingerprint baseline is for molecules, not for {task.name}")
    reference = task.data("train", limit=len(task.data("train")))
    evaluation = result.evaluation
    queries = [samples[index].bits for index in evaluation.indices]
    predicted = nearest_molecules(reference, queries, advance)
    report = evaluate_graphs(predicted, evaluation.targets)
    extras = task.extras(predicted, evaluation.targets)
    return replace(result, evaluation=replace(evaluation, report=report), extras=extras).figures()


def _matrix(fingerprints: Sequence[BitArray]) -> csr_array[np.float32]:
    lengths = [len(bits) for bits in fingerprints]
    columns = np.concatenate(fingerprints).astype(np.int32)
    ones = np.ones(len(columns), np.float32)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return csr_array((ones, columns, starts), shape=(len(lengths), BITS))
