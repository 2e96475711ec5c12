"""One spectrum as numbers: what the encoder takes, and what drawings and decoding need to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from graphwright.decoding import Formula as Bound
from graphwright.decoding import FormulaRule
from graphwright.graphs import Vocabulary
from graphwright.models import SpectrumInputs
from graphwright.spectra import (
    ELEMENTS,
    Formula,
    Spectrum,
    annotate,
    annotated_tokens,
    most_intense,
    parse_adduct,
    parse_formula,
)
from graphwright.spectra.tokens import ELEMENT_SCALES, MZ_SCALE, TOKEN_WIDTH

UNKNOWN_ADDUCT = 0

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class EncodedSpectrum:
    """peaks: (n, 16) tokens, m/z ascending. precursor: (16,), m/z 0 if unknown. adduct: code, 0 if unknown.

    energy: eV, NaN if unknown. formula: of the molecule, None if unknown; with an adduct that is understood, it
    also explains peaks.
    """

    peaks: Floats
    precursor: Floats
    adduct: int
    energy: float
    formula: str | None

    @property
    def mzs(self) -> NDArray[np.float64]:
        """(n,)"""
        return self.peaks[:, 0].astype(np.float64) * MZ_SCALE

    @property
    def intensities(self) -> Floats:
        """(n,), the largest 1."""
        return self.peaks[:, 1]

    @property
    def explained(self) -> NDArray[np.bool_]:
        """(n,) whether a sub-formula is known of a peak."""
        return np.asarray(self.peaks[:, 2:].any(1))

    def subformulas(self) -> list[Formula | None]:
        """The sub-formula of every peak, as far as `ELEMENTS` go."""
        counts = np.rint(self.peaks[:, 2:] * np.array(ELEMENT_SCALES)).astype(int).tolist()
        return [Formula.of(dict(zip(ELEMENTS, row, strict=True))) if any(row) else None for row in counts]

    def raw(self) -> EncodedSpectrum:
        """The same without element counts."""
        peaks, precursor = self.peaks.copy(), self.precursor.copy()
        peaks[:, 2:] = 0
        precursor[2:] = 0
        return replace(self, peaks=peaks, precursor=precursor)

    def without_formula(self) -> EncodedSpectrum:
        """The same, as if the formula were not known."""
        return replace(self.raw(), formula=None)


def describe(spectrum: EncodedSpectrum) -> str:
    """What is known of a spectrum, in a few words."""
    peaks = len(spectrum.peaks)
    plural = "peak" if peaks == 1 else "peaks"
    if spectrum.formula is None:
        return f"{peaks} {plural}, no formula"
    explained = int(spectrum.explained.sum())
    hint = ", adduct unknown" if not explained and spectrum.adduct == UNKNOWN_ADDUCT else ""
    return f"{explained} of {peaks} {plural} explained, {spectrum.formula}{hint}"


def readable(formula: str | None) -> str | None:
    """A formula that is one."""
    try:
        return None if formula is None else str(parse_formula(formula))
    except ValueError:
        return None


def precursor_token(mz: float | None, formula: str | None, adduct: str | None) -> Floats:
    """(16,): m/z, intensity 1, and the ion's atoms where formula and adduct are known and understood."""
    token = np.zeros(TOKEN_WIDTH, np.float32)
    # The ion's atoms without its m/z would say more than a spectrum of unknown precursor can.
    if mz is not None and np.isfinite(mz):
        token[:2] = mz / MZ_SCALE, 1.0
        token[2:] = _ion_counts(formula, adduct)
    return token


@lru_cache(maxsize=65_536)
def _ion_counts(formula: str | None, adduct: str | None) -> Floats:
    if formula is None or adduct is None:
        return np.zeros(len(ELEMENTS), np.float32)
    try:
        ion = parse_adduct(adduct).ion(parse_formula(formula))
    except ValueError:
        return np.zeros(len(ELEMENTS), np.float32)
    return np.array(
        [ion.count(element) / scale for element, scale in zip(ELEMENTS, ELEMENT_SCALES, strict=True)], np.float32
    )


def encode(spectrum: Spectrum, adducts: Sequence[str], most_peaks: int, tolerance: float) -> EncodedSpectrum:
    """A spectrum from a file, clean already; annotated where formula and adduct are known and understood."""
    counts = np.zeros((len(spectrum), len(ELEMENTS)), np.int64)
    explaining = spectrum.formula
    try:
        counts = annotate(spectrum, tolerance).counts_of(ELEMENTS).astype(np.int64)
    except ValueError:  # no formula, no adduct, or one that cannot be used
        explaining = None
    kept = most_intense(spectrum.intensities, most_peaks)
    return EncodedSpectrum(
        annotated_tokens(spectrum.mzs[kept], spectrum.intensities[kept], counts[kept]),
        precursor_token(spectrum.precursor_mz, explaining, spectrum.adduct),
        adduct_code(spectrum.adduct, adducts),
        np.nan if spectrum.collision_energy is None else spectrum.collision_energy,
        readable(spectrum.formula),
    )


def bound(formula: str | None, vocabulary: Vocabulary) -> Bound | None:
    """At most which atoms a part of a molecule can have; None where that is unknown or leaves nothing."""
    if formula is None:
        return None
    counts = dict(parse_formula(formula).counts)
    hydrogens = counts.pop("H", 0) + counts.pop("D", 0)
    most = Bound(counts, hydrogens, rule=FormulaRule.AT_MOST)
    return most if any(most.most(vocabulary)) else None


def adduct_code(adduct: str | None, adducts: Sequence[str]) -> int:
    """1 + its place among the adducts that have a token."""
    return 1 + list(adducts).index(adduct) if adduct is not None and adduct in adducts else UNKNOWN_ADDUCT


def stack(spectra: Sequence[EncodedSpectrum]) -> SpectrumInputs:
    """A batch, padded to the most peaks."""
    longest = max((len(each.peaks) for each in spectra), default=0)
    peaks = np.zeros((len(spectra), longest, TOKEN_WIDTH), np.float32)
    mask = np.zeros((len(spectra), longest), bool)
    for at, each in enumerate(spectra):
        peaks[at, : len(each.peaks)] = each.peaks
        mask[at, : len(each.peaks)] = True
    return SpectrumInputs(
        torch.from_numpy(peaks),
        torch.from_numpy(mask),
        torch.from_numpy(np.stack([each.precursor for each in spectra])),
        torch.tensor([each.adduct for each in spectra]),
        torch.tensor([each.energy for each in spectra], dtype=torch.float32),
    )
