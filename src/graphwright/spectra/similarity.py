"""Cosine similarity of binned spectra, and the nearest of many: the baseline of every spectrum method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from graphwright.spectra.spectrum import Floats, Spectrum

ROWS_AT_ONCE = 128
MOST_BINS = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Nearest:
    """The reference most similar to each query: index (q,), the first of equals, and cosine (q,), 0..1."""

    index: NDArray[np.int64]
    cosine: Floats


def bin_peaks(
    offsets: ArrayLike, mzs: ArrayLike, intensities: ArrayLike, bin_width: float, power: float = 1.0
) -> sparse.csr_array:
    """(spectra, bins): sums of intensity ** power by floor(m/z / bin_width), every row of length 1.

    Spectrum i has the peaks offsets[i] .. offsets[i + 1] - 1. Usual settings are 0.1 Da with power 1 and
    0.01 Da with power 0.5. Rows without peaks are 0.
    """
    if not (bin_width > 0 and power > 0):
        raise ValueError(f"bin_width and power must be positive, got {bin_width} and {power}")
    starts = np.asarray(offsets, dtype=np.int64)
    numbers = np.floor(np.asarray(mzs, dtype=np.float64) / bin_width)
    if not ((numbers >= 0) & (numbers < MOST_BINS)).all():
        raise ValueError(f"m/z must lie between 0 and {MOST_BINS * bin_width:g}, {MOST_BINS:,} bins")
    bins = numbers.astype(np.int64)
    values = np.asarray(intensities, dtype=np.float64) ** power
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    shape = (len(starts) - 1, int(bins.max(initial=0)) + 1)
    matrix = sparse.coo_array((values, (rows, bins)), shape=shape).tocsr()
    matrix.sum_duplicates()
    # By hand, since a product with a diagonal matrix takes time by the number of columns, filled or not.
    row_of_value = np.repeat(np.arange(shape[0]), np.diff(matrix.indptr))
    norms = np.sqrt(np.bincount(row_of_value, matrix.data**2, minlength=shape[0]))
    matrix.data /= norms[row_of_value]
    return matrix


def bin_spectra(spectra: Sequence[Spectrum], bin_width: float, power: float = 1.0) -> sparse.csr_array:
    """`bin_peaks` of spectra as they are read."""
    offsets = np.cumsum([0, *map(len, spectra)])
    mzs = np.concatenate([spectrum.mzs for spectrum in spectra] or [np.empty(0)])
    intensities = np.concatenate([spectrum.intensities for spectrum in spectra] or [np.empty(0)])
    return bin_peaks(offsets, mzs, intensities, bin_width, power)


def nearest_spectra(queries: sparse.csr_array, references: sparse.csr_array) -> Nearest:
    """The most similar row of `references` for every row of `queries`, both from `bin_peaks` with one setting."""
    if not references.shape[0]:
        raise ValueError("there is no reference spectrum to be nearest")
    # Bins that only one side fills add nothing, and there may be thousands of millions of them.
    shared = np.intersect1d(queries.indices, references.indices).astype(np.int64)
    wide, across = _columns(queries, shared), sparse.csr_array(_columns(references, shared).T)
    index = np.empty(queries.shape[0], dtype=np.int64)
    cosine = np.empty(queries.shape[0])
    for at in range(0, len(index), ROWS_AT_ONCE):
        block = (wide[at : at + ROWS_AT_ONCE] @ across).toarray()
        best = block.argmax(axis=1)
        index[at : at + ROWS_AT_ONCE] = best
        cosine[at : at + ROWS_AT_ONCE] = block[np.arange(len(best)), best]
    return Nearest(index, np.minimum(cosine, 1.0))


def nearest_precursor(queries: ArrayLike, references: ArrayLike) -> NDArray[np.int64]:
    """(q,): index of the reference of nearest m/z for every query; of equally near ones the first."""
    wanted, known = np.asarray(queries, dtype=np.float64), np.asarray(references, dtype=np.float64)
    if not known.size:
        raise ValueError("there is no reference precursor to be nearest")
    order = np.argsort(known, kind="stable")
    ascending = known[order]
    after = np.clip(np.searchsorted(ascending, wanted), 0, len(known) - 1)
    before = np.clip(after - 1, 0, None)
    closer = np.where(np.abs(ascending[before] - wanted) <= np.abs(ascending[after] - wanted), before, after)
    # Among equal m/z the sorted order keeps the first in front.
    first = np.searchsorted(ascending, ascending[closer], side="left")
    return order[first].astype(np.int64)


def _columns(matrix: sparse.csr_array, kept: NDArray[np.int64]) -> sparse.csr_array:
    """(rows, len(kept)): some columns of a matrix, `kept` ascending."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    inside = np.isin(matrix.indices, kept)
    columns = np.searchsorted(kept, matrix.indices[inside])
    return sparse.csr_array((matrix.data[inside], (rows[inside], columns)), shape=(matrix.shape[0], len(kept)))
