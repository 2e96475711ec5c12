"""Training spectra to compare with: remembered as bags of words, and the baselines that a model must beat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array, vstack

from graphwright.decoding import Formula
from graphwright.graphs import Graph
from graphwright.graphs.isomorphism import DistinctGraphs
from graphwright.known import Library
from graphwright.known.library import Bag, Memory, bag
from graphwright.models import SpectrumInputs
from graphwright.models.encoders.spectrum import peak_codes
from graphwright.spectra import bin_peaks, nearest_precursor, nearest_spectra
from graphwright.tasks.likeness import Floats, KernelLikeness
from graphwright.tasks.spectra.dataset import SpectrumDataset
from graphwright.tasks.spectra.encoded import stack
from graphwright.tasks.task import Baseline, Samples

WORDS = 2**16
"""Columns that words are hashed to: a spectrum has tens of them, so few meet by chance."""
PEAKS = 24
"""The most intense ones count."""
SPECTRA, MOST = 6, 20_000
"""Spectra remembered of each molecule, spread over its collision energies, and in all."""
AT_ONCE = 512


def bags_of_words(inputs: SpectrumInputs) -> Bag:
    """(b, WORDS): m/z of fragments and losses by the root of their intensity.

    Not their sub-formulas: these recall no better where the formula is known, and nothing where it is not.
    """
    peaks, precursor = inputs.peaks.cpu().clone(), inputs.precursor.cpu().clone()
    peaks[:, :, 2:] = 0
    precursor[:, 2:] = 0
    heights = torch.where(inputs.mask.cpu(), peaks[:, :, 1].clamp_min(0).sqrt(), 0.0)
    kept = heights.argsort(dim=1, descending=True, stable=True)[:, :PEAKS]
    peaks, heights = peaks.gather(1, kept[:, :, None].expand(-1, -1, peaks.shape[2])), heights.gather(1, kept)
    fragments, losses = peak_codes(peaks, precursor)
    # Without a precursor nothing is known to be lost.
    lost = heights * (precursor[:, :1] > 0)
    words = torch.cat([fragments[..., 0], losses[..., 0]], 1) % WORDS
    weights = torch.cat([heights, lost], 1)
    rows, columns = weights.nonzero().unbind(1)
    entries = (rows.numpy(), words[rows, columns].numpy(), weights[rows, columns].numpy())
    return bag(*entries, shape=(len(words), WORDS))


def spectrum_memory(training: SpectrumDataset, library: Library) -> Memory:
    """Some spectra of every training molecule whose scaffold the library has."""
    chosen = _chosen(training)
    indices = np.array([_index(training, row, library) for row in chosen.tolist()])
    order = np.argsort(indices, kind="stable")[np.count_nonzero(indices < 0) :]
    chosen, indices = chosen[order], indices[order]
    parts = [
        bags_of_words(stack([training.encoded(row) for row in chosen[start : start + AT_ONCE].tolist()]))
        for start in range(0, len(chosen), AT_ONCE)
    ]
    none = bag(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32), (0, WORDS))
    return Memory(csr_array(vstack([none, *parts])), indices, len(library))


def _chosen(training: SpectrumDataset) -> NDArray[np.int64]:
    """Rows of the table: of each molecule a few, spread over its collision energies."""
    table, molecules = training.table, dict[str, list[int]]()
    for row in np.sort(np.concatenate(training.units)).tolist():
        molecules.setdefault(str(table.molecules[row]), []).append(row)
    most = max(1, min(SPECTRA, MOST // len(molecules)))
    chosen = []
    for rows in molecules.values():
        by_energy = sorted(rows, key=lambda row: (np.nan_to_num(table.energies[row]), row))
        spread = np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int)
        chosen += [by_energy[at] for at in spread]
    return np.array(chosen[:MOST], np.int64)


def _index(training: SpectrumDataset, row: int, library: Library) -> int:
    index = library.distinct.find(training.scaffold(row))
    return -1 if index is None else index


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
    answers = [Baseline("commonest scaffold", [scaffolds[common]] * len(asked))]
    nearest = _nearest_precursor(training, queries, known, asked, common)
    answers.append(Baseline("nearest precursor", [scaffolds[int(row)] for row in nearest]))
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
        answers.append(Baseline(name, [graphs[row] for row in rows]))
    return answers


def _nearest_within_formula(
    graphs: Sequence[Graph],
    library: Library,
    bounds: Sequence[Formula | None],
    binned: tuple[sparse.csr_array, sparse.csr_array],
    otherwise: Rows,
) -> Rows:
    """The nearest training spectra whose scaffolds a query's formula has room for; else as without it.

    graphs: of the training spectra. binned: queries and training spectra. otherwise: rows of the latter.
    """
    classes = [library.distinct.find(graph) for graph in graphs]
    indices = np.array([-1 if index is None else index for index in classes])
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
