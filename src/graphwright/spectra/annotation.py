"""Sub-formula annotation of spectra of known formula and adduct."""

from __future__ import annotations

from graphwright.spectra.adducts import parse_adduct
from graphwright.spectra.formula import parse_formula
from graphwright.spectra.spectrum import Spectrum
from graphwright.spectra.subformulas import Explanation, SubformulaTable, explain, subformula_table

DEFAULT_PPM = 10.0


def table_of(formula: str, adduct: str) -> SubformulaTable:
    """Sub-formulas of the ion that a molecule makes with an adduct."""
    ionised = parse_adduct(adduct)
    return subformula_table(ionised.ion(parse_formula(formula)), ionised.charge)


def annotate(spectrum: Spectrum, tolerance_ppm: float = DEFAULT_PPM) -> Explanation:
    """The best sub-formula of every peak; the spectrum must have a formula and an adduct.

    For many spectra of one molecule, build `table_of` once and call `explain` on the peaks of all.
    """
    if spectrum.formula is None or spectrum.adduct is None:
        missing = "formula" if spectrum.formula is None else "adduct"
        raise ValueError(f"{spectrum.origin}: annotation needs the {missing}")
    try:
        return explain(spectrum.mzs, table_of(spectrum.formula, spectrum.adduct), tolerance_ppm)
    except ValueError as problem:
        raise ValueError(f"{spectrum.origin}: {problem}") from None
