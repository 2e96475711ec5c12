"""Molecules from their fingerprints alone, without any model."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest
from rdkit import Chem

from graphwright.graphs.molecules import parse_smiles
from graphwright.tasks.molecules import active_bits
from graphwright.tasks.molecules.assembly.alphabet import make_alphabet, shipped_alphabet
from graphwright.tasks.molecules.assembly.assemble import (
    CountProgram,
    Joining,
    Limits,
    assemble,
    needs_more_atoms,
    separate_parts,
    usual_cost,
)
from graphwright.tasks.molecules.assembly.environments import environments_of
from tiny_molecules import training_molecules

MODULE = sys.modules[assemble.__module__]
DRUGS = {
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O",
    "ibuprofen": "CC(C)Cc1ccc(C(C)C(=O)O)cc1",
    "caffeine": "Cn1c(=O)c2c(ncn2C)n(C)c1=O",
    "paracetamol": "CC(=O)Nc1ccc(O)cc1",
    "nicotine": "CN1CCCC1c1cccnc1",
    "four phenyls": "O=C(c1ccccc1)C(O)(c1ccccc1)C(c1ccccc1)c1ccccc1",
}


def found(smiles: str, **limits) -> list[str]:
    assembly = assemble(active_bits(parse_smiles(smiles)), shipped_alphabet(), 32, Limits(**limits))
    return [each.smiles for each in assembly.molecules]


@pytest.mark.parametrize("name", DRUGS)
def test_drugs_are_assembled(name):
    assert Chem.CanonSmiles(DRUGS[name]) in found(DRUGS[name])


@pytest.mark.parametrize(("count", "least"), [(12, 11), pytest.param(50, 48, marks=pytest.mark.slow)])
def test_training_molecules_are_assembled_and_all_have_the_fingerprint(count, least):
    molecules = training_molecules(count)
    right = 0
    for molecule in molecules:
        asked = active_bits(molecule)
        assembly = assemble(asked, shipped_alphabet(), 32)
        assert all(np.array_equal(active_bits(each.molecule), asked) for each in assembly.molecules)
        assert all(each.molecule.GetNumAtoms() <= 32 for each in assembly.molecules)
        costs = [each.cost for each in assembly.molecules]
        assert costs == sorted(costs)
        right += Chem.MolToSmiles(molecule) in [each.smiles for each in assembly.molecules]
    assert right >= least


@pytest.mark.parametrize("smiles", ["C1CC1", "C1CCC1", "CC1(C)CC1", "C1CC2CC12", "CCC", "CC(C)C", "CC(C)C(C)C"])
def test_environments_that_rdkit_drops_are_allowed_for(smiles):
    """In small rings and small molecules several atoms have the same bonds around them, and one bit for all."""
    assert Chem.CanonSmiles(smiles) in found(smiles)


def test_molecules_that_a_fingerprint_cannot_tell_apart_are_all_listed():
    chains = found("CCCCCCCCO", molecules=5)
    assert len(chains) == 5
    assert chains[0] == "CCCCCCO"  # the shortest that has all bits is the most usual
    assert "CCCCCCCCO" in chains


def test_hydrogens_are_where_the_fingerprint_says():
    """Tautomers have one graph, but not one fingerprint."""
    first, second = "Cc1ccn[nH]1", "Cc1cc[nH]n1"
    assert found(first)[0] == Chem.CanonSmiles(first) != Chem.CanonSmiles(second) == found(second)[0]


def test_an_environment_that_was_never_met_is_thought_of():
    alphabet = make_alphabet([parse_smiles("CCO"), parse_smiles("CCCC")])
    assembly = assemble(active_bits(parse_smiles("CCCO")), alphabet, 9)
    assert [each.smiles for each in assembly.molecules] == ["CCCO"]


def test_what_no_known_atom_explains_is_named():
    alphabet = make_alphabet([parse_smiles("CCO")])
    assembly = assemble(active_bits(parse_smiles("CC[Se]C")), alphabet, 9)
    assert assembly.molecules == ()
    assert assembly.unexplained


@pytest.mark.parametrize("smiles", ["C", "N", "O", "F", "Cl"])
def test_lone_atoms_are_assembled(smiles):
    assert found(smiles) == [smiles]


def test_a_lone_atom_is_one_of_the_alphabets_elements():
    alphabet = make_alphabet([parse_smiles("CCO")])
    assert [each.smiles for each in assemble(active_bits(parse_smiles("O")), alphabet, 9).molecules] == ["O"]
    assert assemble(active_bits(parse_smiles("N")), alphabet, 9).molecules == ()


def test_no_bits_are_no_molecule():
    assert assemble(np.zeros(0, np.uint16), shipped_alphabet(), 32).molecules == ()


@pytest.mark.parametrize("count", [97, 2048])
def test_more_bits_than_atoms_can_have_are_no_molecule_at_once(count, monkeypatch):
    """All ones would allow every environment there is: 45 s were not enough to list them, whatever the limit."""
    monkeypatch.setitem(assemble.__globals__, "environments_of", None)
    found = assemble(np.arange(count, dtype=np.uint16), shipped_alphabet(), 32)
    assert found.molecules == ()
    assert found.complete


def test_the_capacity_is_kept():
    asked = active_bits(parse_smiles("c1ccccc1O"))
    assert assemble(asked, shipped_alphabet(), 6).molecules == ()
    assert assemble(asked, shipped_alphabet(), 7).molecules


def test_no_time_is_no_molecule_and_no_program_runs_longer_than_is_left(monkeypatch):
    asked = active_bits(parse_smiles(DRUGS["aspirin"]))
    hasty = assemble(asked, shipped_alphabet(), 32, Limits(seconds=0))
    assert hasty.molecules == ()
    assert not hasty.complete
    limits, solve = [], MODULE.milp

    def recording(*arguments, options, **named):
        limits.append(options["time_limit"])
        return solve(*arguments, options=options, **named)

    monkeypatch.setattr(MODULE, "milp", recording)
    assert assemble(asked, shipped_alphabet(), 32, Limits(seconds=30)).molecules
    assert limits
    assert all(0 < limit <= 30 for limit in limits)


@pytest.mark.parametrize("inventive", [False, True])
def test_environments_are_listed_in_time_or_not_at_all(inventive):
    asked = active_bits(parse_smiles(DRUGS["aspirin"]))
    with pytest.raises(TimeoutError):
        environments_of(asked, shipped_alphabet(), inventive=inventive, deadline=time.perf_counter())


def test_a_solver_in_trouble_proves_nothing(monkeypatch):
    asked = active_bits(parse_smiles("CCO"))
    solve = MODULE.milp
    assert assemble(asked, shipped_alphabet(), 9).complete

    def troubled(*arguments, **named):
        result = solve(*arguments, **named)
        if result.x is None:
            result.status = 4  # numerical difficulties, as scipy says it
        return result

    monkeypatch.setattr(MODULE, "milp", troubled)
    assembly = assemble(asked, shipped_alphabet(), 9)
    assert [each.smiles for each in assembly.molecules] == ["CCO"]
    assert not assembly.complete


def test_a_molecule_that_has_no_room_is_told_from_one_that_does_not_exist():
    phenol, alphabet = active_bits(parse_smiles("c1ccccc1O")), shipped_alphabet()
    assert needs_more_atoms(phenol, alphabet, 6, seconds=60)
    assert not needs_more_atoms(phenol, alphabet, 7, seconds=60)
    assert not needs_more_atoms(np.arange(12, dtype=np.uint16), alphabet, 6, seconds=60)


def test_answers_do_not_depend_on_the_clock(monkeypatch):
    first = found("CCCCCCCCO", seconds=1000)
    clock = iter(range(10**9))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock) / 1000)
    assert found("CCCCCCCCO", seconds=1000) == first


@pytest.mark.parametrize(
    ("field", "value"), [("molecules", 0), ("programs", 0), ("barren", 0), ("steps", 0), ("seconds", -1)]
)
def test_limits_must_make_sense(field, value):
    with pytest.raises(ValueError, match=field):
        Limits(**{field: value})


def test_solutions_come_by_increasing_cost_and_none_twice():
    environments = environments_of(active_bits(parse_smiles("CCCCCCCCO")), shipped_alphabet())
    program = CountProgram(environments, 12)
    solutions = list(program.solutions(time.perf_counter() + 60))
    assert program.exhausted
    assert len({tuple(each) for each in solutions}) == len(solutions) > 1
    costs = [usual_cost(environments, each) for each in solutions]
    assert costs == sorted(costs)
    assert all(each.sum() <= 12 for each in solutions)
    for each in solutions:
        explained = frozenset().union(*(environments.bits[at] for at in np.flatnonzero(each)))
        assert explained == set(environments.asked.tolist())


def test_a_solution_in_parts_is_cut_off():
    environments = environments_of(active_bits(parse_smiles("CCCCCCCCO")), shipped_alphabet())
    program = CountProgram(environments, 12)
    solution = next(iter(program.solutions(time.perf_counter() + 60)))
    assert len(separate_parts(environments, solution)) == 1
    program.connect(np.flatnonzero(solution).tolist())  # as if these atoms were a part: others must join them
    assert all(
        set(np.flatnonzero(each)) - set(np.flatnonzero(solution))
        for each in program.solutions(time.perf_counter() + 60)
    )


def test_a_search_that_is_cut_short_says_so():
    environments = environments_of(active_bits(parse_smiles(DRUGS["aspirin"])), shipped_alphabet())
    solution = next(iter(CountProgram(environments, 32).solutions(time.perf_counter() + 60)))
    short = Joining(environments, solution, 3, time.perf_counter() + 60)
    assert list(short.skeletons()) == []
    assert short.spent
    enough = Joining(environments, solution, 3000, time.perf_counter() + 60)
    (skeleton, *_) = enough.skeletons()
    assert not enough.spent
    assert len(skeleton.environments) == 13
    assert len(skeleton.bonds) == 13
