"""Which parts of a formula explain the peaks of a spectrum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphwright.spectra.formula import ELECTRON_MASS, MASS, VALENCE, Composition, parse_adduct, parse_formula
from graphwright.spectra.spectrum import Floats, Spectrum

TABLE_LIMIT = 4_000_000
# Peaks times hydrogens that are looked up together: bounds the memory of one call.
LOOKUPS_AT_ONCE = 2_000_000
# Errors closer than this, in ppm, are equal: far below what any instrument tells apart.
EQUAL_PPM = 1e-3


@dataclass(frozen=True, eq=False)
class SubformulaTable:
    """What an ion can break into: every choice of its atoms other than hydrogen, by mass.

    Hydrogen is left out since it is a ladder on top of every row: a table of all sub-formulas would be some forty
    times as large, and looking a peak up once per number of hydrogens costs less than building that.

    elements: of the columns of `counts`, without hydrogen. counts: (rows, elements).
    masses: (rows,) ascending, Da. most_hydrogens: (rows,) by valence, at most those of the ion; -1 for none.
    heteroatoms: (rows,) atoms other than carbon. hydrogens: of the ion. charge: of the ion, signed.
    """

    elements: tuple[str, ...]
    counts: NDArray[np.int16]
    masses: Floats
    most_hydrogens: NDArray[np.int64]
    heteroatoms: NDArray[np.int64]
    hydrogens: int
    charge: int


@dataclass(frozen=True, eq=False)
class Explanation:
    """The best sub-formula of every peak.

    elements: of the columns of `counts`, hydrogen last. counts: (n, elements), all 0 where nothing explains.
    ppm: (n,), (measured - computed) / computed * 1e6, NaN where nothing explains.
    charge: (n,) signed, 0 where nothing explains.
    """

    elements: tuple[str, ...]
    counts: NDArray[np.int16]
    ppm: Floats
    charge: NDArray[np.int8]

    @property
    def explained(self) -> NDArray[np.bool_]:
        """(n,)"""
        return np.not_equal(self.charge, 0)

    def counts_of(self, elements: tuple[str, ...]) -> NDArray[np.int16]:
        """(n, len(elements)): counts in another order, 0 for elements that the ion has not."""
        result = np.zeros((len(self.ppm), len(elements)), dtype=np.int16)
        for column, element in enumerate(elements):
            if element in self.elements:
                result[:, column] = self.counts[:, self.elements.index(element)]
        return result

    def formulas(self) -> list[Composition | None]:
        """The sub-formulas; the ion's charge is that of `charge`."""
        return [
            Composition.of(dict(zip(self.elements, row, strict=True))) if known else None
            for row, known in zip(self.counts.tolist(), self.explained.tolist(), strict=True)
        ]


def subformula_table(ion: Composition, charge: int = 1) -> SubformulaTable:
    """The table of an ion, of `ion` atoms (adduct included) and `charge`."""
    if charge == 0:
        raise ValueError("an ion has a charge")
    heavy = [(element, count) for element, count in ion.counts if element != "H"]
    rows = int(np.prod([count + 1.0 for _, count in heavy]))
    if rows > TABLE_LIMIT:
        raise ValueError(f"{ion} has {rows:,} sub-formulas without counting hydrogen, over {TABLE_LIMIT:,}")
    counts = np.indices([count + 1 for _, count in heavy], dtype=np.int16).reshape(len(heavy), -1).T
    if not heavy:
        counts = np.zeros((1, 0), dtype=np.int16)
    masses: Floats = counts.astype(np.float64) @ np.array(
        [MASS[element] for element, _ in heavy], dtype=np.float64
    )
    order = np.argsort(masses, kind="stable")
    counts, masses = np.ascontiguousarray(counts[order]), masses[order]
    # Rings and double bonds, 1 + sum count * (valence - 2) / 2, are at least -1/2 in an ion such as NH4+.
    bonds = counts @ np.array([VALENCE[element] - 2 for element, _ in heavy], dtype=np.int64)
    not_carbon = np.array([element != "C" for element, _ in heavy], dtype=np.int64)
    return SubformulaTable(
        elements=tuple(element for element, _ in heavy),
        counts=counts,
        masses=masses,
        most_hydrogens=np.clip(bonds + 3, -1, ion.count("H")),
        heteroatoms=counts @ not_carbon,
        hydrogens=ion.count("H"),
        charge=charge,
    )


def explain(mzs: Floats, table: SubformulaTable, tolerance_ppm: float) -> Explanation:
    """The best sub-formula within the tolerance for every m/z, (n,).

    Best is the smallest |ppm|. Of errors that are equal to 0.001 ppm: the lowest charge, then the fewest atoms
    other than carbon and hydrogen, then the most hydrogens, then the first in the table's order.
    """
    if not 0 < tolerance_ppm < 1e6:
        raise ValueError(f"tolerance_ppm must be positive, got {tolerance_ppm}")
    mzs = np.asarray(mzs, dtype=np.float64)
    if mzs.ndim != 1 or not (np.isfinite(mzs) & (mzs > 0)).all():
        raise ValueError("mzs must be a row of positive numbers")
    step = max(1, LOOKUPS_AT_ONCE // (table.hydrogens + 1))
    parts = [_explain(mzs[at : at + step], table, tolerance_ppm) for at in range(0, max(1, len(mzs)), step)]
    return Explanation(
        (*table.elements, "H"),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.ppm for part in parts]),
        np.concatenate([part.charge for part in parts]),
    )


def _explain(mzs: Floats, table: SubformulaTable, tolerance_ppm: float) -> Explanation:
    found = [_candidates(mzs, table, size, tolerance_ppm) for size in range(1, abs(table.charge) + 1)]
    peak, row, hydrogens, ppm, size = (np.concatenate(column) for column in zip(*found, strict=True))
    rounded = np.round(np.abs(ppm) / EQUAL_PPM)
    order = np.lexsort((row, -hydrogens, table.heteroatoms[row], size, rounded, peak))
    best = order[np.diff(peak[order], prepend=-1) > 0]
    counts = np.zeros((len(mzs), len(table.elements) + 1), dtype=np.int16)
    errors = np.full(len(mzs), np.nan)
    charge = np.zeros(len(mzs), dtype=np.int8)
    counts[peak[best], :-1] = table.counts[row[best]]
    counts[peak[best], -1] = hydrogens[best]
    errors[peak[best]] = ppm[best]
    charge[peak[best]] = np.sign(table.charge) * size[best]
    return Explanation((*table.elements, "H"), counts, errors, charge)


def _candidates(
    mzs: Floats, table: SubformulaTable, size: int, tolerance_ppm: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Floats, NDArray[np.int64]]:
    """Peak, table row, hydrogens, ppm and charge size of all within the tolerance, for one charge size."""
    electrons = np.sign(table.charge) * size * ELECTRON_MASS
    ladder = np.arange(table.hydrogens + 1)
    # |measured - computed| <= computed * tolerance, solved for the computed mass.
    low = (mzs * size / (1 + tolerance_ppm * 1e-6) + electrons)[:, None] - ladder * MASS["H"]
    high = (mzs * size / (1 - tolerance_ppm * 1e-6) + electrons)[:, None] - ladder * MASS["H"]
    first = np.searchsorted(table.masses, low.ravel(), side="left")
    number = np.searchsorted(table.masses, high.ravel(), side="right") - first
    hit = np.flatnonzero(number)
    number = number[hit]
    starts = np.cumsum(number) - number
    row = np.repeat(first[hit] - starts, number) + np.arange(number.sum())
    peak, hydrogens = np.divmod(np.repeat(hit, number), len(ladder))
    allowed = (hydrogens <= table.most_hydrogens[row]) & ((row > 0) | (hydrogens > 0))
    peak, row, hydrogens = peak[allowed], row[allowed], hydrogens[allowed]
    computed = (table.masses[row] + hydrogens * MASS["H"] - electrons) / size
    ppm = (mzs[peak] - computed) / computed * 1e6
    return peak, row, hydrogens, ppm, np.full(len(peak), size)


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
