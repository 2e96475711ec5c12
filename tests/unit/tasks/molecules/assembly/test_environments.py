"""Identifiers as RDKit has them, alphabets of environments, and what a fingerprint leaves of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

from graphwright.cli import main as cli
from graphwright.graphs.molecules import parse_smiles
from graphwright.tasks.molecules import active_bits, find_data
from graphwright.tasks.molecules.assembly.alphabet import (
    Alphabet,
    Tally,
    alphabet_of,
    make_alphabet,
    ring_systems,
    shipped_alphabet,
)
from graphwright.tasks.molecules.assembly.environments import environments_of, fewer, with_invented
from tiny_molecules import training_molecules, write_molecules


def test_identifiers_are_those_of_rdkit():
    """Of every radius, redundant environments included: a wrong hash would find nothing at all."""
    generator = GetMorganGenerator(radius=2, includeRedundantEnvironments=True)
    for molecule in [*training_molecules(200), parse_smiles("C[N+](=O)[O-]"), parse_smiles("FS(F)(F)(F)(F)F")]:
        alphabet = make_alphabet([molecule])
        ours = {*alphabet.atom_ids.tolist(), *alphabet.ids.tolist(), *alphabet.wide.ids.tolist()}
        assert ours == set(generator.GetSparseCountFingerprint(molecule).GetNonzeroElements())


def test_an_alphabet_counts_environments_and_rings():
    alphabet = make_alphabet([parse_smiles("CCC"), parse_smiles("C1CC1"), parse_smiles("CCC")])
    assert len(alphabet.atoms) == 3  # CH3, CH2, CH2 in a ring
    assert sorted(alphabet.counts.tolist()) == [2, 3, 4]
    assert alphabet.wide.total == 9
    assert alphabet.rings.counts.tolist() == [1]
    with pytest.raises(ValueError, match="no molecule"):
        make_alphabet([])


def test_an_alphabet_comes_back_as_it_was_written(tmp_path):
    alphabet = make_alphabet(training_molecules(50))
    alphabet.save(tmp_path / "a.npz")
    again = Alphabet.load(tmp_path / "a.npz")
    for name in ("atoms", "centres", "bonds", "neighbours", "counts", "ids"):
        assert np.array_equal(getattr(alphabet, name), getattr(again, name)), name
    for name in ("wide", "rings"):
        first, second = getattr(alphabet, name), getattr(again, name)
        assert np.array_equal(first.ids, second.ids)
        assert np.abs(np.log2(first.counts / second.counts)).max() <= 0.5
    (tmp_path / "b.npz").write_bytes(b"no array")
    for wrong in ("b.npz", "c.npz"):
        with pytest.raises(ValueError, match="is not an alphabet"):
            Alphabet.load(tmp_path / wrong)


def test_a_tally_knows_what_it_never_met():
    tally = Tally.of(np.array([9, 4, 9], np.uint32), np.array([1, 5, 2]))
    assert tally.met(np.array([4, 5, 9, 10], np.uint32)).tolist() == [5, 0, 3, 0]
    costs = tally.costs(np.array([4, 9, 10], np.uint32))
    assert costs[0] < costs[1] < costs[2]
    empty = Tally.of(np.zeros(0, np.uint32), np.zeros(0, np.int64))
    assert empty.met(np.array([1], np.uint32)).tolist() == [0]


def test_what_ships_covers_training_molecules_and_says_where_it_is_from():
    alphabet = shipped_alphabet()
    for molecule in training_molecules(50):
        own = make_alphabet([molecule])
        assert np.isin(own.ids, alphabet.ids).all()
        assert (alphabet.wide.met(own.wide.ids) > 0).all()
        environments = environments_of(active_bits(molecule), alphabet)
        assert not environments.unexplained
        assert np.isin(own.ids, alphabet.ids[list(environments.narrow)]).all()
    record = json.loads(find_data("molecules").with_name("environments.json").read_text())
    assert record["split"] == "train"
    assert record["environments of radius 1"] == len(alphabet)
    assert record["data"]["molecules.parquet"].startswith("d6f9054e50c1")


def test_elements_that_a_model_does_not_name_are_left_out():
    part = alphabet_of(("C", "O"))
    assert 0 < len(part) < len(shipped_alphabet())
    used = part.atoms[np.concatenate([part.centres, part.neighbours[part.bonds > 0]])]
    assert set(used[:, 0].tolist()) == {6, 8}


def test_every_environment_has_its_bits_on_and_its_neighbours_offered():
    molecule = parse_smiles("CC(=O)Oc1ccccc1C(=O)O")
    asked = active_bits(molecule)
    environments = environments_of(asked, shipped_alphabet())
    assert frozenset().union(*environments.bits) == set(asked.tolist())
    halves = {
        (own, *half)
        for own, around in zip(environments.narrow, environments.around, strict=True)
        for half in around
    }
    assert all((other, bond, own) in halves for own, bond, other in halves)


def test_bits_that_nothing_explains_are_named():
    asked = np.array([3, 5, 7], np.uint16)
    assert environments_of(asked, make_alphabet([parse_smiles("CCO")])).unexplained == {3, 5, 7}


def test_environments_never_met_are_invented_from_known_bonds():
    """Propanol from ethanol and propane: each bond is known, the carbon between CH2 and OH is not."""
    alphabet = make_alphabet([parse_smiles("CCO"), parse_smiles("CCCC")])
    asked = active_bits(parse_smiles("CCCO"))
    assert environments_of(asked, alphabet).unexplained
    assert not environments_of(asked, alphabet, inventive=True).unexplained
    on = np.zeros(2048, bool)
    on[asked] = True
    invented = with_invented(alphabet, on)
    assert len(invented) > len(alphabet)
    assert (invented.counts[len(alphabet) :] == 0).all()
    assert len(np.unique(invented.ids)) == len(invented)


def test_too_many_combinations_lose_their_last_choices():
    choices = fewer([list(range(100)), list(range(100)), list(range(100))])
    assert np.prod([len(each) for each in choices]) <= 50_000
    assert all(each == list(range(len(each))) for each in choices)
    assert fewer([[1, 2], [3]]) == [[1, 2], [3]]


def test_ring_systems_are_told_apart_whatever_hangs_on_them():
    def systems(smiles: str) -> list[int]:
        return sorted(ring_systems(parse_smiles(smiles)))

    assert systems("CCO") == []
    assert systems("c1ccccc1") == systems("Cc1ccc(O)cc1") != systems("c1ccncc1")
    assert systems("C1CCCCC1") != systems("c1ccccc1")
    assert systems("c1ccc2ccccc2c1") == systems("Oc1cccc2c1cccc2")
    assert len(systems("c1ccccc1-c1ccccc1")) == 2
    assert systems("C1CCC2CCCCC2C1") != systems("C1CCC2(CC1)CCCC2")


def test_an_alphabet_is_made_by_a_command(tmp_path, capsys):
    path = write_molecules(tmp_path / "few.csv", ["CCO", "CCN", "not_smiles", "CCF"], ["train"] * 3 + ["test"])
    out = tmp_path / "own.npz"
    assert cli.main(["data", "environments", str(path), "--out", str(out)]) == cli.DONE
    record = json.loads(out.with_suffix(".json").read_text())
    assert (record["molecules"], record["unusable"]) == (2, 1)
    assert "environments of radius 1" in capsys.readouterr().out
    assert 9 not in Alphabet.load(out).atoms[:, 0]  # fluorine is in the test split only
    assert cli.main(["data", "environments", str(path), "--out", str(tmp_path / "own.txt")]) == cli.USAGE
    assert "must end in .npz" in capsys.readouterr().err
