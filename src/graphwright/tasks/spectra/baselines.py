"""What a model must beat: the commonest training scaffold, and that of the nearest training spectrum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array

from graphwright.decoding import Formula
from graphwright.graphs import Graph
from graphwright.graphs.isomorphism import DistinctGraphs
from graphwright.known import Library
from graphwright.spectra import bin_peaks, nearest_precursor, nearest_spectra
from graphwright.tasks.likeness import Floats, KernelLikeness
from graphwright.tasks.spectra.dataset import SpectrumDataset
from graphwright.tasks.task import Baseline, Samples

Rows = NDArray[np.int64]


def baselines(training: SpectrumDataset, queries: SpectrumDataset, indices: Sequence[int]) -> list[Baseline]:
    """The answers of all simple methods to the samples at these indices.

    Every training spectrum counts, whatever unit training goes by. A query without a precursor m/z is answered
    with the commonest scaffold where the nearest precursor is asked for.
    """
    known = np.sort(np.concatenate(training.units))
    asked = np.array([queries.units[index][0] for index in indices], np.int64)
    scaffolds = _Scaffolds(training)
    common = scaffolds.commonest(known)
    found = [Baseline("commonest scaffold", [scaffolds[common]] * len(asked))]
    nearest = _nearest_precursor(training, queries, known, asked, common)
    found.append(Baseline("nearest precursor", [scaffolds[int(row)] for row in nearest]))
    rough, fine = (
        (_binned(queries, asked, width, power), _binned(training, known, width, power))
        for width, power in ((0.1, 1.0), (0.01, 0.5))
    )
    alike = nearest_spectra(*fine).index
    graphs = [scaffolds[row] for row in known.tolist()]
    library = Library.of(graphs, training.settings.capacity)
    fitting = _nearest_within_formula(graphs, library, queries.bounds(indices), fine, alike)
    for name, rows in (
        ("cosine 0.1 Da", nearest_spectra(*rough).index),
        ("root cosine 0.01 Da", alike),
        ("root cosine 0.01 Da, formula", fitting),
    ):
        found.append(Baseline(name, [graphs[row] for row in rows]))
    return found


def _nearest_within_formula(
    graphs: Sequence[Graph],
    library: Library,
    bounds: Sequence[Formula | None],
    binned: tuple[sparse.csr_array, sparse.csr_array],
    otherwise: Rows,
) -> Rows:
    """Of the training spectra whose scaffold a query's formula has room for the nearest; else as without it.

    graphs: of the training spectra. binned: queries and training spectra. otherwise: rows of the latter.
    """
    found = [library.distinct.find(graph) for graph in graphs]
    indices = np.array([-1 if index is None else index for index in found])
    answers, groups = otherwise.copy(), dict[tuple[tuple[str, int], ...], list[int]]()
    for query, formula in enumerate(bounds):
        if formula is not None:
            groups.setdefault(tuple(sorted(formula.atoms.items())), []).append(query)
    for asking in groups.values():
        allowed = library.contents.within(bounds[asking[0]], library.batch.vocabulary)
        fitting = np.flatnonzero(np.isin(indices, allowed))
        if len(fitting):
            answers[asking] = fitting[nearest_spectra(binned[0][asking], binned[1][fitting]).index]
    return answers


def _nearest_precursor(
    training: SpectrumDataset, queries: SpectrumDataset, known: Rows, asked: Rows, common: int
) -> Rows:
    measured = known[np.isfinite(training.table.precursors[known])]
    wanted = queries.table.precursors[asked]
    answers = np.full(len(asked), common)
    if len(measured):
        here = np.isfinite(wanted)
        answers[here] = measured[nearest_precursor(wanted[here], training.table.precursors[measured])]
    return answers


def _binned(data: SpectrumDataset, rows: Rows, width: float, power: float) -> sparse.csr_array:
    peaks = data.table.peaks
    lengths = np.diff(peaks.offsets)[rows]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    picked = np.repeat(peaks.offsets[rows] - starts[:-1], lengths) + np.arange(starts[-1])
    return bin_peaks(starts, peaks.mzs[picked], peaks.intensities[picked], width, power)


class _Scaffolds:
    """The scaffolds of a data set's rows, each built once."""

    def __init__(self, data: SpectrumDataset) -> None:
        self._data, self._built = data, dict[bytes, Graph]()

    def __getitem__(self, row: int) -> Graph:
        key = self._key(row)
        if key not in self._built:
            self._built[key] = self._data.scaffold(row)
        return self._built[key]

    def commonest(self, rows: Rows) -> int:
        """A row with the scaffold that most rows have; of equally common ones the first."""
        counts = Counter(self._key(row) for row in rows.tolist())
        first = {self._key(row): row for row in reversed(rows.tolist())}
        # The same scaffold may be written with its atoms in another order.
        distinct, totals, rows_of = DistinctGraphs(), Counter[int](), dict[int, int]()
        for key, row in sorted(first.items(), key=lambda pair: pair[1]):
            index = distinct.add(self[row])
            totals[index] += counts[key]
            rows_of.setdefault(index, row)
        return rows_of[max(totals, key=lambda index: (totals[index], -rows_of[index]))]

    def _key(self, row: int) -> bytes:
        table = self._data.table
        return table.atoms[row].tobytes() + b"|" + table.bonds[row].tobytes()


BIN_WIDTH, POWER = 0.01, 0.5
"""Bins in Da and the power of intensities with which the nearest spectrum has the right scaffold most often."""


@dataclass(frozen=True)
class SpectrumLikeness(KernelLikeness):
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


def _columns(matrix: Any, kept: NDArray[np.int32]) -> csr_array[np.float64]:
    """(m, len(kept)): some columns of a sparse matrix, `kept` ascending."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    inside = np.isin(matrix.indices, kept)
    columns = np.searchsorted(kept, matrix.indices[inside])
    return csr_array((matrix.data[inside], (rows[inside], columns)), shape=(matrix.shape[0], len(kept)))
