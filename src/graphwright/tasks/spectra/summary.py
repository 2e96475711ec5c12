"""What is in a set of spectra."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from graphwright.graphs import Vocabulary, refinement_hash
from graphwright.tasks.spectra.dataset import SpectrumSample


def spectrum_statistics(
    samples: Iterable[SpectrumSample], vocabulary: Vocabulary, adducts: Sequence[str]
) -> list[tuple[str, str]]:
    """Peaks, energies, molecules, formulas, and the scaffolds; for a table. adducts: those that have a token."""
    found = list(samples)
    if not found:
        raise ValueError("samples must not be empty")
    peaks = np.array([len(sample.spectrum.peaks) for sample in found])
    explained = sum(int(sample.spectrum.explained.sum()) for sample in found)
    energies = np.array([sample.spectrum.energy for sample in found])
    sizes = np.array([len(sample.atoms) for sample in found])
    atoms = np.bincount(np.concatenate([sample.atoms for sample in found]), minlength=len(vocabulary.nodes))
    shares = ", ".join(
        f"{name} {100 * share:.2f} %" for name, share in zip(vocabulary.nodes, atoms / atoms.sum(), strict=True)
    )
    return [
        ("looked at", f"{len(found):,} spectra"),
        ("molecules, formulas", f"{_distinct(s.molecule for s in found)}, {_distinct(s.group for s in found)}"),
        ("scaffolds", f"{_distinct(refinement_hash(sample.graph) for sample in found)}"),
        ("scaffold atoms", f"{sizes.min()} to {sizes.max()}, mean {sizes.mean():.2f}"),
        ("elements", shares),
        ("peaks", f"{peaks.min()} to {peaks.max()}, median {np.median(peaks):g}"),
        ("peaks explained", f"{100 * explained / peaks.sum():.1f} %"),
        ("formula known", f"{100 * np.mean([s.spectrum.formula is not None for s in found]):.1f} %"),
        ("collision energy", _energies(energies)),
        ("adducts", _adducts(found, adducts)),
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
