"""Formulas, adducts and their masses."""

import pytest

from graphwright.spectra import parse_adduct, parse_formula
from graphwright.spectra.formula import ELECTRON_MASS, MASS, VALENCE, usual_adduct_name


@pytest.fixture
def reference():
    from pyteomics import mass

    return mass


@pytest.mark.parametrize("element", sorted(set(MASS) - {"D"}))
def test_masses_are_those_of_the_most_abundant_isotope(element, reference):
    # Index 0 is the most abundant isotope; the evaluation before ours differs by less than 10 micro-Da.
    assert MASS[element] == pytest.approx(reference.nist_mass[element][0][0], abs=1e-5)


def test_every_element_has_a_valence():
    assert set(VALENCE) == set(MASS)


def test_light_elements_and_the_electron_are_exact(reference):
    # The proton is lighter than what is left of a hydrogen atom by its binding energy, 13.6 eV = 1.46e-8 Da.
    assert MASS["H"] - ELECTRON_MASS == pytest.approx(1.007276466 - 1.46e-8, abs=1e-9)
    assert reference.nist_mass["H"][2][0] == pytest.approx(MASS["D"], abs=1e-8)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("C8H10N4O2", "C8H10N4O2"),
        ("O2N4H10C8", "C8H10N4O2"),
        ("HOH", "H2O"),
        ("ClNa", "ClNa"),
        ("NaCl", "ClNa"),
        ("Ca(OH)2", "CaH2O2"),
        ("C6H7N.2ClH", "C6H9Cl2N"),
        ("Al2(S(O)4)3", "Al2O12S3"),
        ("[C5H12N]+", "C5H12N"),
        ("[C5H12N]2+", "C5H12N"),
        ("C5H12N2+", "C5H12N2"),
        ("C5H12N2-", "C5H12N2"),
        ("CD3OH", "CHD3O"),
        (" CH4 ", "CH4"),
    ],
)
def test_formulas_are_read_and_written_in_hill_order(text, written):
    assert str(parse_formula(text)) == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        "c6h6",
        "Xx2",
        "C6H6)",
        "(C6H6",
        "C--H",
        "C6 H6",
        "C99999999",
        "(((C99999)99999)99999)99999",
        "()",
        "2",
        "C.",
        "R",
    ],
)
def test_bad_formulas_are_refused_by_name(text):
    with pytest.raises(ValueError, match="formula"):
        parse_formula(text)


@pytest.mark.parametrize(
    "text", ["C8H10N4O2", "C12H22O11", "C10H15N2O8PS", "C6H3BrClFI", "C2H7AsO2", "C6H7BO2", "C8H20O4Si"]
)
def test_masses_of_molecules(text, reference):
    assert parse_formula(text).mass == pytest.approx(reference.calculate_mass(formula=text), abs=2e-6)


@pytest.mark.parametrize(
    ("text", "rings_and_double_bonds"),
    [
        ("C6H6", 4),
        ("C8H10N4O2", 6),
        ("H4N", -0.5),
        ("H3O", -0.5),
        ("C2H6OS", 0),
        ("H3O4P", 0),
        ("CCl4", 0),
        ("C7H7", 4.5),
    ],
)
def test_double_bond_equivalents(text, rings_and_double_bonds):
    assert parse_formula(text).double_bond_equivalents == rings_and_double_bonds


def test_formulas_add_and_subtract():
    glucose, water = parse_formula("C6H12O6"), parse_formula("H2O")
    assert str(glucose * 2 - water) == "C12H22O11"
    assert str(glucose + parse_formula("Na")) == "C6H12NaO6"
    with pytest.raises(ValueError, match="1 more O"):
        parse_formula("CH4") - water


# m/z of caffeine, C8H10N4O2, by the arithmetic written out: molecule, atoms, electron.
CAFFEINE = 8 * 12 + 10 * 1.007825031898 + 4 * 14.003074004251 + 2 * 15.994914619257


@pytest.mark.parametrize(
    ("text", "name", "mz"),
    [
        ("[M+H]+", "[M+H]+", 195.08765),
        ("M+H", "[M+H]+", 195.08765),
        ("[M+H]1+", "[M+H]+", 195.08765),
        ("(M+H)+", "[M+H]+", 195.08765),
        ("[M+H]+1", "[M+H]+", 195.08765),
        ("[M + H]+", "[M+H]+", 195.08765),
        ("[M+Na]+", "[M+Na]+", 217.06960),
        ("[M+K]+", "[M+K]+", 233.04353),
        ("[M+NH4]+", "[M+NH4]+", 212.11420),
        ("[M]+*", "[M]+", 194.07983),
        ("[M+2H]2+", "[M+2H]2+", 98.04746),
        ("[M+2H]++", "[M+2H]2+", 98.04746),
        ("[2M+H]+", "[2M+H]+", 389.16803),
        ("[M-H2O+H]+", "[M-H2O+H]+", 177.07709),
        ("[M+ACN+H]+", "[M+ACN+H]+", 236.11420),
        ("[M-H]-", "[M-H]-", 193.07310),
        ("M-H", "[M-H]-", 193.07310),
        ("[M−H]−", "[M-H]-", 193.07310),
        ("[M+FA-H]-", "[M+FA-H]-", 239.07858),
        ("[M+HCOO]-", "[M+HCOO]-", 239.07858),
        ("[M+Cl]-", "[M+Cl]-", 229.04978),
    ],
)
def test_adducts_of_caffeine(text, name, mz):
    adduct = parse_adduct(text)
    assert adduct.name == name
    assert adduct.mz(CAFFEINE) == pytest.approx(mz, abs=2e-5)
    assert adduct.mass(adduct.mz(CAFFEINE)) == pytest.approx(CAFFEINE, abs=1e-9)


def test_the_ion_of_an_adduct():
    caffeine = parse_formula("C8H10N4O2")
    assert str(parse_adduct("[2M+Na]+").ion(caffeine)) == "C16H20N8NaO4"
    assert str(parse_adduct("[M-H2O+H]+").ion(caffeine)) == "C8H9N4O"
    with pytest.raises(ValueError, match=r"C8H10N4O2 has not the S that \[M-S\]\+ removes"):
        parse_adduct("[M-S]+").ion(caffeine)


@pytest.mark.parametrize(
    "text", ["", "M", "[M]", "[M+H", "[M+?]+", "[0M+H]+", "[M+H]+-", "[M+Q]+", "H+", "[M+H]0+", "[Cat]+", "[M+]+"]
)
def test_bad_adducts_are_refused_by_name(text):
    with pytest.raises(ValueError, match=r"adduct|formula"):
        parse_adduct(text)
    assert usual_adduct_name(text) == text
