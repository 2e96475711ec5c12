"""Molecular formulas."""

import pytest

from graphwright.decoding import Formula, FormulaRule
from graphwright.graphs.molecules import molecule_vocabulary

VOCABULARY = molecule_vocabulary(["C", "N", "O", "Cl"])


def test_it_reads_formulas() -> None:
    formula = Formula.parse("C6H12ClNO2")
    assert (dict(formula.atoms), formula.hydrogens) == ({"C": 6, "Cl": 1, "N": 1, "O": 2}, 12)
    assert Formula.parse("CO2").hydrogens == 0
    assert dict(Formula.parse("CH3CH2OH").atoms) == {"C": 2, "O": 1}
    assert Formula.parse("CH3CH2OH").hydrogens == 6


@pytest.mark.parametrize("text", ["", "6C", "C6 H6", "c6h6", "C6H6+", "C(CH3)4"])
def test_it_refuses_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is not a molecular formula"):
        Formula.parse(text)


def test_exact_and_at_most() -> None:
    exact, most = Formula.parse("C2H6O"), Formula.parse("C2H6O", FormulaRule.AT_MOST)
    assert exact.admits({"C": 2, "O": 1}, 6)
    assert not exact.admits({"C": 2, "O": 1}, 4)
    assert not exact.admits({"C": 2}, 6)
    assert not exact.admits({"C": 2, "O": 1, "N": 1}, 6)
    assert Formula({"C": 2, "O": 1}).admits({"C": 2, "O": 1}, 4)
    assert most.admits({"C": 1}, 9)
    assert not most.admits({"C": 3}, 0)
    assert not most.admits({"N": 1}, 0)


def test_what_a_model_cannot_have_is_refused() -> None:
    with pytest.raises(ValueError, match="has S, which is none of C N O Cl"):
        Formula.parse("CH4S").check(VOCABULARY, 5)
    with pytest.raises(ValueError, match="has 6 heavy atoms, the model has room for 1 to 5"):
        Formula.parse("C6H6").check(VOCABULARY, 5)
    with pytest.raises(ValueError, match="has 0 heavy atoms"):
        Formula.parse("H2").check(VOCABULARY, 5)
    with pytest.raises(ValueError, match="allows none of the model's elements"):
        Formula.parse("H2S", FormulaRule.AT_MOST).check(VOCABULARY, 5)
    Formula.parse("C60H20S", FormulaRule.AT_MOST).check(VOCABULARY, 5)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 atoms of C"):
        Formula({"C": -1})
    with pytest.raises(ValueError, match="hydrogen"):
        Formula({"H": 1})
