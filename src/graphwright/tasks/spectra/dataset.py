"""Spectra with the scaffolds of their molecules, as a torch dataset, and what is in some of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphwright.decoding import Formula
from graphwright.graphs import Graph, GraphBatch, Vocabulary, refinement_hash
from graphwright.models import SpectrumInputs
from graphwright.spectra import annotated_tokens, most_intense
from graphwright.tasks.molecules.dataset import padded_graphs
from graphwright.tasks.spectra.encoded import (
    EncodedSpectrum,
    PeakTokens,
    SpectrumTask,
    adduct_code,
    bound,
    precursor_token,
    readable,
    stack,
    vary,
)
from graphwright.tasks.spectra.prepared import SpectrumTable, element_codes
from graphwright.tasks.split import Membership
from graphwright.tasks.task import RejectedRow, Samples


class NoSpectrumError(ValueError):
    """A file without a single usable row."""


@dataclass(frozen=True, eq=False)
class SpectrumSample:
    """A spectrum and the scaffold behind it. atoms: (n,) codes. bonds: (e, 3) first atom, second atom, code.

    molecule: which of the measured ones. group: its molecular formula, by which data are split and resampled.
    """

    spectrum: EncodedSpectrum
    identifier: str
    molecule: str
    group: str
    atoms: NDArray[np.int64]
    bonds: NDArray[np.int64]
    vocabulary: Vocabulary

    @property
    def graph(self) -> Graph:
        return Graph(self.atoms, self.bonds[:, :2], self.bonds[:, 2], self.vocabulary)


class SpectrumDataset(Samples):
    """Some rows of a table, one by one or as the molecules that they belong to.

    Index i is unit i: a spectrum, or a molecule. `data[i]` is the unit's first spectrum as it is. `data[i, epoch]`
    is a random one of its spectra, varied: a pure function of the settings' seed, i and epoch.
    """

    def __init__(
        self,
        table: SpectrumTable,
        units: Sequence[NDArray[np.int64]],
        vocabulary: Vocabulary,
        settings: SpectrumTask,
        rejected: Sequence[RejectedRow],
    ) -> None:
        self.table, self.units, self.vocabulary, self.settings = table, units, vocabulary, settings
        self._rejected = list(rejected)
        self.adducts = settings.adducts.split()
        self._codes = element_codes(vocabulary.nodes)
        if not units:
            first = f"; {self.rejected[0].detail}" if self.rejected else ""
            raise NoSpectrumError(f"{table.path} has no usable spectrum here ({len(rejected):,} unusable{first})")

    def __len__(self) -> int:
        return len(self.units)

    def __getitem__(self, index: int | tuple[int, int]) -> SpectrumSample:
        at, epoch = index if isinstance(index, tuple) else (index, None)
        if not 0 <= at < len(self):
            raise IndexError(f"sample {at} of {len(self)}")
        if epoch is None:
            return self._sample(int(self.units[at][0]), None)
        rng = np.random.default_rng([self.settings.seed, at, epoch])
        return self._sample(int(rng.choice(self.units[at])), rng)

    def graph(self, index: int) -> Graph:
        """The scaffold of a unit's first spectrum, which is not encoded for it."""
        return self.scaffold(int(self.units[index][0]))

    @property
    def rejected(self) -> list[RejectedRow]:
        """The unusable rows of the table among those asked for."""
        return self._rejected

    def collate(self, samples: Sequence[SpectrumSample]) -> tuple[SpectrumInputs, GraphBatch]:
        """Inputs padded to the most peaks, scaffolds padded to the capacity."""
        target = padded_graphs(samples, self.vocabulary, self.settings.capacity)
        return stack([sample.spectrum for sample in samples]), target

    def membership(self, indices: Sequence[int]) -> Membership:
        """Molecules and formulas of some samples."""
        rows = [int(self.units[index][0]) for index in indices]
        molecules, groups = (
            [str(names[row]) for row in rows] for names in (self.table.molecules, self.table.groups)
        )
        return Membership(molecules, groups)

    def bounds(self, indices: Sequence[int]) -> list[Formula | None]:
        """At most which atoms the scaffolds of some samples can have: those of the formula, where it is known."""
        return [bound(self.encoded(int(self.units[index][0])).formula, self.vocabulary) for index in indices]

    def scaffold(self, row: int) -> Graph:
        """The scaffold of a row of the table."""
        atoms, bonds = self._structure(row)
        return Graph(atoms, bonds[:, :2], bonds[:, 2], self.vocabulary)

    def digest(self) -> str:
        """SHA-256 of the file."""
        return self.table.digest()

    def _sample(self, row: int, rng: np.random.Generator | None) -> SpectrumSample:
        table = self.table
        spectrum = self.encoded(row)
        if rng is not None:
            spectrum = vary(spectrum, self.settings, rng)
        return SpectrumSample(
            spectrum,
            str(table.identifiers[row]),
            str(table.molecules[row]),
            str(table.groups[row]),
            *self._structure(row),
            self.vocabulary,
        )

    def _structure(self, row: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Atoms and bonds of a row's scaffold, as of `SpectrumSample`."""
        return self._codes[self.table.atoms[row]], self.table.bonds[row].reshape(-1, 3).astype(np.int64)

    def encoded(self, row: int) -> EncodedSpectrum:
        """The spectrum of a row of the table."""
        table, peaks = self.table, self.table.peaks
        part = slice(peaks.offsets[row], peaks.offsets[row + 1])
        kept = part.start + most_intense(peaks.intensities[part], self.settings.peaks)
        adduct = table.adducts[row]
        explaining = table.formulas[row] if peaks.annotated[row] else None
        encoded = EncodedSpectrum(
            annotated_tokens(peaks.mzs[kept], peaks.intensities[kept], peaks.counts[kept]),
            precursor_token(float(table.precursors[row]), explaining, adduct),
            adduct_code(adduct, self.adducts),
            float(table.energies[row]),
            readable(table.formulas[row]),
        )
        return encoded.raw() if self.settings.tokens is PeakTokens.RAW else encoded


def spectrum_statistics(
    samples: Iterable[SpectrumSample], vocabulary: Vocabulary, adducts: Sequence[str]
) -> list[tuple[str, str]]:
    """Peaks, energies, molecules, formulas, and the scaffolds; for a table. adducts: those that have a token."""
    listed = list(samples)
    if not listed:
        raise ValueError("samples must not be empty")
    peaks = np.array([len(sample.spectrum.peaks) for sample in listed])
    explained = sum(int(sample.spectrum.explained.sum()) for sample in listed)
    energies = np.array([sample.spectrum.energy for sample in listed])
    sizes = np.array([len(sample.atoms) for sample in listed])
    atoms = np.bincount(np.concatenate([sample.atoms for sample in listed]), minlength=len(vocabulary.nodes))
    shares = ", ".join(
        f"{name} {100 * share:.2f} %" for name, share in zip(vocabulary.nodes, atoms / atoms.sum(), strict=True)
    )
    return [
        ("looked at", f"{len(listed):,} spectra"),
        ("molecules, formulas", f"{_distinct(s.molecule for s in listed)}, {_distinct(s.group for s in listed)}"),
        ("scaffolds", f"{_distinct(refinement_hash(sample.graph) for sample in listed)}"),
        ("scaffold atoms", f"{sizes.min()} to {sizes.max()}, mean {sizes.mean():.2f}"),
        ("elements", shares),
        ("peaks", f"{peaks.min()} to {peaks.max()}, median {np.median(peaks):g}"),
        ("peaks explained", f"{100 * explained / peaks.sum():.1f} %"),
        ("formula known", f"{100 * np.mean([s.spectrum.formula is not None for s in listed]):.1f} %"),
        ("collision energy", _energies(energies)),
        ("adducts", _adducts(listed, adducts)),
    ]


def _distinct(names: Iterable[str]) -> str:
    return f"{len(set(names)):,}"


def _energies(energies: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    known = energies[~np.isnan(energies)]
    if not len(known):
        return "unknown"
    return f"{known.min():.0f} to {known.max():.0f} eV, {100 * len(known) / len(energies):.1f} % known"


def _adducts(samples: list[SpectrumSample], adducts: Sequence[str]) -> str:
    counts = Counter(sample.spectrum.adduct for sample in samples)
    names = ("others", *adducts)
    return ", ".join(f"{names[code]} {count:,}" for code, count in counts.most_common())
