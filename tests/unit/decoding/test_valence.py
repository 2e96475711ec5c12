"""The program of a molecule: formulas as constraints, and a solver that keeps quiet."""

from __future__ import annotations

import ctypes
import os
import threading

import pytest

from graphwright.decoding import Formula, FormulaRule
from graphwright.decoding.valence import without_solver_noise
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


NOISE = b"HighsMipSolverData::transformNewIntegerFeasibleSolution tmpSolver.run();\n"


def test_only_the_solvers_lines_are_dropped(capfd):
    print("before")
    with without_solver_noise():
        os.write(1, NOISE)
        print("from another thread")
        ctypes.CDLL(None).printf(NOISE)  # stays in the buffer of C, which nobody else empties
    print("after")
    assert capfd.readouterr().out == "before\nfrom another thread\nafter\n"


def test_the_output_is_itself_again_after_an_error(capfd):
    def fail() -> None:
        with without_solver_noise():
            os.write(1, NOISE)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    print("after")
    assert capfd.readouterr().out == "after\n"


def test_threads_do_not_take_each_others_output_for_the_real_one(capfd):
    def solve() -> None:
        for _ in range(50):
            with without_solver_noise():
                os.write(1, NOISE)

    threads = [threading.Thread(target=solve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("after")
    assert capfd.readouterr().out == "after\n"


def test_where_nobody_listens_nothing_is_caught(monkeypatch):
    def refuse(_: int) -> int:
        raise OSError("bad file descriptor")

    monkeypatch.setattr(os, "dup", refuse)
    with without_solver_noise():
        solved = True
    assert solved
