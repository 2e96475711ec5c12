"""Training spectra to remember: as bags of the words that their peaks and losses are, named by m/z."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from graphwright.known import Library
from graphwright.known.memory import Bag, Memory, bag
from graphwright.models import SpectrumInputs
from graphwright.models.encoders.spectrum import peak_codes
from graphwright.tasks.spectra.dataset import SpectrumDataset
from graphwright.tasks.spectra.encoded import stack

WORDS = 2**16
"""Columns that words are hashed to: a spectrum has tens of them, so few meet by chance."""
PEAKS = 24
"""The most intense ones count."""
SPECTRA, MOST = 6, 20_000
"""Of a molecule, and in all, that are remembered; those of a molecule spread over its collision energies."""
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
    found = (rows.numpy(), words[rows, columns].numpy(), weights[rows, columns].numpy())
    return bag(*found, shape=(len(words), WORDS))


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
    found = library.distinct.find(training.scaffold(row))
    return -1 if found is None else found
