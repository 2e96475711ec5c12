"""Sub-formulas of peaks against brute force."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphwright.spectra import (
    Composition,
    Origin,
    Spectrum,
    annotate,
    explain,
    parse_formula,
    subformula_table,
    table_of,
)
from graphwright.spectra import subformulas as module
from graphwright.spectra.formula import ELECTRON_MASS


def brute_force(
    mz: float, ion: Composition, charge: int, tolerance_ppm: float
) -> tuple[Composition, int, float] | None:
    """The best sub-formula by going through all of them, one by one."""
    elements = [element for element, _ in ion.counts]
    best = None
    for size in range(1, abs(charge) + 1):
        for numbers in itertools.product(*(range(count + 1) for _, count in ion.counts)):
            part = Composition.of(dict(zip(elements, numbers, strict=True)))
            if not any(numbers) or part.double_bond_equivalents < -0.5:
                continue
            computed = (part.mass - math.copysign(size, charge) * ELECTRON_MASS) / size
            ppm = (mz - computed) / computed * 1e6
            if abs(ppm) > tolerance_ppm:
                continue
            others = sum(count for element, count in part.counts if element not in "CH")
            key = (round(abs(ppm) / 1e-3), size, others, -part.count("H"), part.mass - part.count("H"))
            if best is None or key < best[0]:
                best = (key, part, int(math.copysign(size, charge)), ppm)
    return best and best[1:]


FORMULAS = [
    "C6H7NO",
    "C4H9O3PS",
    "C3H4ClF3",
    "CH4",
    "H2O",
    "C2H5NaO2",
    "C5H6N2O2",
    "BrCH3",
    "C4H12Si",
    "NH4",
    "Na",
]


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("charge", [1, -1, 2])
def test_agrees_with_brute_force(text, charge):
    ion = parse_formula(text)
    random = np.random.default_rng(7)
    # Peaks near true sub-formulas, and peaks anywhere; a wide tolerance, so that there is a choice.
    table = subformula_table(ion, charge)
    near = (
        table.masses[random.integers(len(table.masses), size=12)]
        + random.integers(0, table.hydrogens + 1, 12) * 1.00783
    )
    mzs = np.concatenate([near / random.integers(1, abs(charge) + 1, 12), random.uniform(1, ion.mass + 2, 12)])
    mzs = (mzs[mzs > 0.1]) * (1 + random.normal(size=(mzs > 0.1).sum()) * 1e-4)
    found = explain(mzs, table, 2000.0)
    for mz, formula, size, ppm in zip(mzs, found.formulas(), found.charge, found.ppm, strict=True):
        expected = brute_force(mz, ion, charge, 2000.0)
        if expected is None:
            assert formula is None
            assert size == 0
            assert np.isnan(ppm)
        else:
            assert (formula, size) == expected[:2]
            assert ppm == pytest.approx(expected[2], abs=1e-6)


@settings(deadline=None, max_examples=60)
@given(
    counts=st.fixed_dictionaries(
        {"C": st.integers(1, 4), "H": st.integers(0, 8), "N": st.integers(0, 2), "O": st.integers(0, 3)}
    ),
    part=st.integers(0, 2**30),
    shift=st.floats(-40, 40),
)
def test_agrees_with_brute_force_near_a_fragment(counts, part, shift):
    ion = Composition.of(counts)
    table = subformula_table(ion)
    row = part % len(table.masses)
    mz = (table.masses[row] + (part % (table.hydrogens + 1)) * 1.007825 - ELECTRON_MASS) * (1 + shift * 1e-6)
    if mz <= 0:
        return
    expected = brute_force(mz, ion, 1, 30.0)
    found = explain(np.array([mz]), table, 30.0)
    assert found.formulas()[0] == (expected[0] if expected else None)


def test_the_peaks_of_caffeine():
    mzs = np.array([83.0604, 110.0713, 138.0662, 150.0, 195.0877])
    spectrum = Spectrum(mzs, np.ones(5), Origin("here"), formula="C8H10N4O2", adduct="[M+H]+")
    found = annotate(spectrum)
    assert [formula and str(formula) for formula in found.formulas()] == [
        "C4H7N2",
        "C5H8N3",
        "C6H8N3O",
        None,
        "C8H11N4O2",
    ]
    assert found.explained.tolist() == [True, True, True, False, True]
    assert np.nanmax(np.abs(found.ppm)) < 3
    assert found.counts_of(("O", "Na", "C")).tolist() == [[0, 0, 4], [0, 0, 5], [1, 0, 6], [0, 0, 0], [2, 0, 8]]


def test_sodium_stays_or_goes():
    found = explain(np.array([22.98922, 203.05261, 85.02841]), table_of("C6H12O6", "[M+Na]+"), 5.0)
    assert [str(formula) for formula in found.formulas()] == ["Na", "C6H12NaO6", "C4H5O2"]


def test_too_many_hydrogens_are_no_fragment():
    # CH6 has the right mass, and the ion the atoms, but no valence for them.
    assert not explain(
        np.array([18.046950 - ELECTRON_MASS]), subformula_table(parse_formula("C3H9")), 5.0
    ).explained[0]
    assert explain(np.array([18.033826]), subformula_table(parse_formula("C3H9N")), 5.0).explained[0]  # NH4+


def test_a_doubly_charged_peak_may_be_either_and_the_lower_charge_wins_a_tie():
    table = subformula_table(parse_formula("C8H8"), 2)
    found = explain(
        np.array([(4 * 12 + 4 * 1.007825031898) - ELECTRON_MASS, 12 * 3.5 + 3 * 1.007825031898 - ELECTRON_MASS]),
        table,
        5.0,
    )
    assert [str(formula) for formula in found.formulas()] == ["C4H4", "C7H6"]
    assert found.charge.tolist() == [1, 2]


def test_negative_ions_carry_an_electron_more():
    found = explain(
        np.array([34.968853 + ELECTRON_MASS, 34.968853 - ELECTRON_MASS]),
        subformula_table(parse_formula("CHCl"), -1),
        2.0,
    )
    assert found.charge.tolist() == [-1, 0]


def test_no_peaks_have_no_explanations():
    found = explain(np.empty(0), table_of("CH4", "[M+H]+"), 5.0)
    assert found.counts.shape == (0, 2)
    assert found.formulas() == []


def test_work_in_parts_is_the_same_work(monkeypatch):
    table, mzs = table_of("C20H25N3O4S", "[M+H]+"), np.random.default_rng(1).uniform(30, 400, 300)
    whole = explain(mzs, table, 200.0)
    monkeypatch.setattr(module, "LOOKUPS_AT_ONCE", 200)
    parts = explain(mzs, table, 200.0)
    np.testing.assert_array_equal(whole.counts, parts.counts)
    np.testing.assert_array_equal(whole.ppm, parts.ppm)


@pytest.mark.parametrize("mzs", [[-1.0], [np.nan], [0.0], [[1.0]]])
def test_impossible_peaks_are_refused(mzs):
    with pytest.raises(ValueError, match="positive numbers"):
        explain(np.array(mzs), table_of("CH4", "[M+H]+"), 5.0)


def test_what_cannot_be_annotated_is_refused_by_name():
    bare = Spectrum(np.array([50.0]), np.ones(1), Origin("x.mgf", "line", 3), formula="CH4")
    with pytest.raises(ValueError, match=r"x.mgf, line 3: annotation needs the adduct"):
        annotate(bare)
    with pytest.raises(ValueError, match="sub-formulas"):
        subformula_table(parse_formula("C500H900N300O300S50"))
    with pytest.raises(ValueError, match="tolerance"):
        explain(np.array([1.0]), table_of("CH4", "[M+H]+"), 0.0)
    with pytest.raises(ValueError, match="charge"):
        subformula_table(parse_formula("CH4"), 0)
