"""How alike two inputs of a task are: what the nearest neighbour and the kernel of the barycentre go by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import nn

from graphwright.models import Tokens, inputs_to
from graphwright.spectra import bin_peaks
from graphwright.tasks import Samples, Task
from graphwright.tasks.coloring import Coloring
from graphwright.tasks.molecules import BITS, Fingerprint2Molecule
from graphwright.tasks.molecules.fingerprint import BitArray
from graphwright.tasks.spectra import MS2Scaffold, SpectrumDataset
from graphwright.tasks.table import InputKind, Table

Floats = NDArray[np.float32]

LARGEST_SIDE = 64
"""Pictures with more pixels a side are averaged over blocks first: their noise is no part of what they show."""
BIN_WIDTH, POWER = 0.01, 0.5
"""Bins in Da and the power of intensities with which the nearest spectrum has the right scaffold most often."""
ENCODED_TOGETHER = 64


class Likeness(Protocol):
    """A way to compare inputs. Features are whatever `features` makes, one row for each input."""

    @property
    def name(self) -> str:
        """For tables and records."""

    def features(self, samples: Samples, indices: Sequence[int]) -> Any:
        """What is compared of some samples' inputs."""

    def similarity(self, queries: Any, references: Any) -> Floats:
        """(q, m) of features; the larger, the more alike."""

    def scale(self, similarity: Floats) -> float:
        """What differences are measured by, from the similarities (m, m) of references to each other."""

    def kernel(self, similarity: Floats, scale: float) -> Floats:
        """A positive definite kernel, 1 for equal inputs, of the same shape as the similarities."""


class _Euclidean:
    """Feature vectors (m, d) by their squared distance, and the Gaussian kernel of it."""

    def similarity(self, queries: Floats, references: Floats) -> Floats:
        """(q, m) minus the squared distances."""
        squares = (queries**2).sum(1)[:, None] + (references**2).sum(1)
        distances: Floats = np.maximum(squares - 2 * queries @ references.T, 0)
        return -distances

    def scale(self, similarity: Floats) -> float:
        """The median squared distance of two different references; 1 where there is no such pair."""
        pairs = -similarity[np.triu_indices(len(similarity), 1)]
        apart = pairs[pairs > 0]
        return float(np.median(apart)) if len(apart) else 1.0

    def kernel(self, similarity: Floats, scale: float) -> Floats:
        """exp(-|x - y|^2 / scale)."""
        values: Floats = np.exp(similarity / np.float32(scale))
        return values


class _Angular:
    """Similarities that are kernels themselves."""

    def scale(self, similarity: Floats) -> float:  # noqa: ARG002
        """Nothing to measure by."""
        return 1.0

    def kernel(self, similarity: Floats, scale: float) -> Floats:  # noqa: ARG002
        """The similarity."""
        return similarity


@dataclass(frozen=True)
class PixelLikeness(_Euclidean):
    """Pictures by their pixels."""

    name: str = "pixels"

    def features(self, samples: Samples, indices: Sequence[int]) -> Floats:
        """(m, 3 side^2), of pictures averaged over blocks where they are large."""
        return np.stack([shrunk(samples[index].image).ravel() for index in indices])


@dataclass(frozen=True, eq=False)
class EncoderLikeness(_Euclidean):
    """Inputs of any kind by the mean token of an encoder, trained or not."""

    encoder: nn.Module
    name: str = "encoder features"

    @torch.no_grad()
    def features(self, samples: Samples, indices: Sequence[int]) -> Floats:
        """(m, width)."""
        device = next(self.encoder.parameters()).device
        was_training = self.encoder.training
        self.encoder.eval()
        try:
            means = []
            for start in range(0, len(indices), ENCODED_TOGETHER):
                inputs, _ = samples.batch(indices[start : start + ENCODED_TOGETHER])
                encoded = self.encoder(inputs_to(inputs, device))
                tokens = encoded if isinstance(encoded, Tokens) else Tokens(encoded)
                means.append(tokens.mean())
        finally:
            self.encoder.train(was_training)
        found: Floats = torch.cat(means).float().cpu().numpy()
        return found


@dataclass(frozen=True)
class FingerprintLikeness(_Angular):
    """Fingerprints by the Tanimoto similarity of their active bits."""

    name: str = "Tanimoto"

    def features(self, samples: Samples, indices: Sequence[int]) -> csr_array[np.float32]:
        """(m, 2048) sparse zeros and ones."""
        return bit_matrix([samples[index].bits for index in indices])

    def similarity(self, queries: csr_array[np.float32], references: csr_array[np.float32]) -> Floats:
        """(q, m) |a & b| / |a | b|; two fingerprints without any bit are the same."""
        common: Floats = (queries @ references.T).toarray()
        union = queries.sum(1)[:, None] + references.sum(1) - common
        similarity: Floats = np.where(union > 0, common / np.maximum(union, 1), 1).astype(np.float32)
        return similarity


@dataclass(frozen=True)
class SpectrumLikeness(_Angular):
    """Spectra by the cosine of their binned peaks."""

    name: str = f"root cosine {BIN_WIDTH} Da"

    def features(self, samples: Samples, indices: Sequence[int]) -> Any:
        """(m, bins) sparse rows of length 1."""
        if not isinstance(samples, SpectrumDataset):
            raise ValueError(f"spectra are compared by their peaks, which {type(samples).__name__} does not hold")
        peaks = samples.table.peaks
        rows = [int(samples.units[index][0]) for index in indices]
        parts = [slice(peaks.offsets[row], peaks.offsets[row + 1]) for row in rows]
        offsets = np.cumsum([0, *(part.stop - part.start for part in parts)])
        mzs, intensities = (
            np.concatenate([values[part] for part in parts]) for values in (peaks.mzs, peaks.intensities)
        )
        return bin_peaks(offsets, mzs, intensities, BIN_WIDTH, POWER)

    def similarity(self, queries: Any, references: Any) -> Floats:
        """(q, m) cosines."""
        # Bins that only one side fills add nothing, and a single wrong peak can make millions of them.
        shared = np.intersect1d(queries.indices, references.indices)
        cosines = (_columns(queries, shared) @ _columns(references, shared).T).toarray()
        return np.minimum(cosines.astype(np.float32), 1)


class VectorLikeness(_Euclidean):
    """A table's vectors, standardised, by their squared distance."""

    name = "squared distance of the standardised numbers"

    def features(self, samples: Samples, indices: Sequence[int]) -> Floats:
        """(m, d)."""
        return np.stack([samples[index].value for index in indices])


class SetLikeness(_Euclidean):
    """A table's sets of vectors: from every element of either to the nearest of the other, squared, on average."""

    name = "mean squared distance to the nearest element"

    def features(self, samples: Samples, indices: Sequence[int]) -> list[Floats]:
        """m arrays (k, d)."""
        return [samples[index].value for index in indices]

    def similarity(self, queries: Any, references: Any) -> Floats:
        """(q, m) minus the distances."""
        most = max(1, *map(len, references))
        padded = np.full((len(references), most, references[0].shape[1]), 0, np.float32)
        real = np.zeros((len(references), most), bool)
        for at, each in enumerate(references):
            padded[at, : len(each)], real[at, : len(each)] = each, True
        return -np.stack([_to_nearest(query, padded, real) for query in queries])


class TokenLikeness(_Angular):
    """A table's lists of tokens by the cosine of how often each token occurs."""

    name = "cosine of the tokens' counts"

    def __init__(self, words: int) -> None:
        self.words = words

    def features(self, samples: Samples, indices: Sequence[int]) -> Floats:
        """(m, words) of length one, or nothing where a list is empty."""
        counts = np.stack([np.bincount(samples[index].value, minlength=self.words) for index in indices])
        lengths = np.sqrt((counts.astype(np.float32) ** 2).sum(1, keepdims=True))
        shares: Floats = (counts / np.maximum(lengths, 1)).astype(np.float32)
        return shares

    def similarity(self, queries: Floats, references: Floats) -> Floats:
        """(q, m) cosines."""
        cosines: Floats = queries @ references.T
        return cosines


def _table_likeness(table: Table) -> Likeness:
    match table.form.kind:
        case InputKind.VECTOR:
            return VectorLikeness()
        case InputKind.SET:
            return SetLikeness()
        case InputKind.TOKENS:
            return TokenLikeness(len(table.form.words))


def _to_nearest(query: Floats, references: Floats, real: NDArray[np.bool_]) -> Floats:
    """(m,) distances of a set (k, d) to padded sets (m, n, d), real (m, n) true at elements."""
    apart = ((query[None, :, None] - references[:, None]) ** 2).sum(3)
    apart[~np.broadcast_to(real[:, None], apart.shape)] = np.inf
    if not len(query):
        return np.where(real.any(1), np.inf, 0).astype(np.float32)
    there = apart.min(2).mean(1)
    back = np.where(real, apart.min(1), 0).sum(1) / np.maximum(real.sum(1), 1)
    distances: Floats = (there + back).astype(np.float32)
    return distances


def likeness_of(task: Task, encoder: nn.Module | None = None) -> Likeness:
    """How a task's inputs are compared: by an encoder's features if one is given, else as they are."""
    if encoder is not None:
        return EncoderLikeness(encoder)
    match task:
        case Coloring():
            return PixelLikeness()
        case Fingerprint2Molecule():
            return FingerprintLikeness()
        case MS2Scaffold():
            return SpectrumLikeness()
        case Table():
            return _table_likeness(task)
    raise ValueError(f"no way is known to compare the inputs of {task.name}: give an encoder of them")


def shrunk(image: Floats) -> Floats:
    """A picture (3, side, side), averaged over blocks to at most `LARGEST_SIDE` a side; a rest is cut off."""
    channels, side, _ = image.shape
    block = -(-side // LARGEST_SIDE)
    kept = side // block
    blocks = image[:, : kept * block, : kept * block].reshape(channels, kept, block, kept, block)
    means: Floats = blocks.mean((2, 4), dtype=np.float32)
    return means


def bit_matrix(fingerprints: Sequence[BitArray]) -> csr_array[np.float32]:
    """(m, 2048) sparse zeros and ones of fingerprints, each given by its active bits."""
    starts = np.cumsum([0, *map(len, fingerprints)]).astype(np.int32)
    columns = np.concatenate([np.zeros(0, np.int32), *fingerprints]).astype(np.int32)
    return csr_array((np.ones(len(columns), np.float32), columns, starts), shape=(len(fingerprints), BITS))


def _columns(matrix: Any, kept: NDArray[np.int32]) -> csr_array[np.float64]:
    """(m, len(kept)): some columns of a sparse matrix, `kept` ascending."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    inside = np.isin(matrix.indices, kept)
    places = np.searchsorted(kept, matrix.indices[inside])
    return csr_array((matrix.data[inside], (rows[inside], places)), shape=(matrix.shape[0], len(kept)))
