"""Sub-formulas of peaks by plain loops, as one would first write it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import product

from graphwright.spectra import parse_adduct, parse_formula
from graphwright.spectra.elements import ELECTRON_MASS, MASS, VALENCE

NAME = "plain loop over sub-formulas"


def plain_errors(mzs: Sequence[float], formula: str, adduct: str, tolerance_ppm: float) -> list[float | None]:
    """ppm of the best sub-formula of every peak, None where nothing explains it; for ions of charge 1."""
    masses = _masses(formula, adduct)
    found: list[float | None] = []
    for mz in mzs:
        best = None
        at = bisect_left(masses, mz * (1 - 2e-6 * tolerance_ppm))
        while at < len(masses) and masses[at] <= mz * (1 + 2e-6 * tolerance_ppm):
            ppm = (mz - masses[at]) / masses[at] * 1e6
            if abs(ppm) <= tolerance_ppm and (best is None or abs(ppm) < abs(best)):
                best = ppm
            at += 1
        found.append(best)
    return found


def _masses(formula: str, adduct: str) -> list[float]:
    """m/z of every choice of the ion's atoms with at least -1/2 rings and double bonds, ascending."""
    ion = parse_adduct(adduct).ion(parse_formula(formula)).counts
    masses = []
    for counts in product(*(range(count + 1) for _, count in ion)):
        atoms = [(element, count) for (element, _), count in zip(ion, counts, strict=True) if count]
        bonds = sum(count * (VALENCE[element] - 2) for element, count in atoms)
        if atoms and bonds >= -3:
            masses.append(sum(count * MASS[element] for element, count in atoms) - ELECTRON_MASS)
    return sorted(masses)
