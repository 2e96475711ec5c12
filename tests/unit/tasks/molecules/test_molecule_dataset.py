"""Molecules as samples: parsed late, once, and exactly the same whenever."""

import pickle

import numpy as np
import pytest
import torch
from rdkit import Chem
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from torch.utils.data import DataLoader

from graphwright.graphs.molecules import graph_from_molecule, molecule_vocabulary, parse_smiles
from graphwright.settings import load_run
from graphwright.tasks import task_of
from graphwright.tasks.molecules import BITS, Fingerprint2Molecule, FingerprintTask, NoUsableMoleculeError
from graphwright.tasks.molecules.dataset import pack, read_molecule, unpack
from tiny_molecules import BAD, SMILES, tiny_file, write_molecules

VOCABULARY = molecule_vocabulary("CONF")


@pytest.fixture
def few(tmp_path) -> Fingerprint2Molecule:
    return task_of(FingerprintTask(data=str(tiny_file(tmp_path)), capacity=9, elements="C O N F"))


@pytest.mark.parametrize("smiles", SMILES)
def test_a_sample_is_rdkits_fingerprint_and_our_graph(smiles):
    molecule = Chem.MolFromSmiles(smiles)
    sample = read_molecule(smiles, VOCABULARY, 9)
    fingerprint = GetMorganGenerator(radius=2, fpSize=BITS).GetFingerprint(molecule)
    assert sample.bits.tolist() == sorted(fingerprint.GetOnBits())
    assert sample.graph == graph_from_molecule(parse_smiles(smiles), VOCABULARY)
    back = unpack(pack(sample), VOCABULARY, smiles)
    assert back.graph == sample.graph
    assert back.bits.tolist() == sample.bits.tolist()


def test_a_single_atom_survives_packing():
    sample = read_molecule("C", VOCABULARY, 9)
    assert unpack(pack(sample), VOCABULARY, "C").graph == sample.graph


def test_nothing_is_parsed_before_it_is_asked_for(few, monkeypatch):
    asked = []
    module = "graphwright.tasks.molecules.dataset.read_molecule"
    monkeypatch.setattr(module, lambda smiles, *rest: asked.append(smiles) or read_molecule(smiles, *rest))
    data = few.data("train")
    assert asked == SMILES[:1]  # one, to know that there is one
    for _ in range(3):
        data[20, 1]
    assert len(asked) == 2


def test_an_unusable_row_is_replaced_by_the_next_that_is_usable(few):
    data = few.data("train")
    assert len(data) == len(SMILES) + len(BAD)
    seen = [data[index].smiles for index in range(len(data))]
    assert seen == [*SMILES[:5], *[SMILES[5]] * len(BAD), *SMILES[5:]]
    # Whatever was asked before, in whatever order, in another process.
    other = pickle.loads(pickle.dumps(data))
    assert [other[index, 3].smiles for index in reversed(range(len(data)))] == seen[::-1]


def test_with_a_limit_no_sample_stands_in_for_another(few):
    assert [sample.smiles for sample in map(few.data("test", limit=8).__getitem__, range(8))] == SMILES[:8]
    assert len(few.data("test", limit=1000)) == len(SMILES)


def test_rejections_are_counted_and_listed_by_reason(few):
    rejected = few.data("train", limit=1000).rejected
    assert [(each.row, each.text, each.reason) for each in rejected] == [
        (row, text, reason) for row, (text, reason) in enumerate(BAD.items(), 6)
    ]
    assert "12 heavy atoms, at most 9" in rejected[1].detail


@pytest.mark.parametrize("workers", [0, 2])
def test_unusable_rows_are_counted_wherever_they_are_parsed(few, workers):
    data = few.data("train")
    assert data.unusable() == {}
    loader = DataLoader(data, 8, collate_fn=data.collate, num_workers=workers, multiprocessing_context=None)
    assert sum(len(target) for _, target in loader) == len(data)
    assert data.unusable() == dict.fromkeys(["unparsable", "several fragments", "too large", "unknown element"], 1)
    assert [each.text for each in data.rejected] == list(BAD)


def test_batches_are_tokens_and_padded_graphs(few):
    tokens, target = few.data("validation", limit=5).batch([0, 3])
    assert tokens.shape[0] == 2
    assert target.capacity == 9
    assert target.sizes.tolist() == [3, 6]
    assert [graph.node_names for graph in target.graphs()] == [["C", "C", "O"], ["C"] * 6]
    assert set(target[1].edge_names) == {"aromatic"}


def test_a_file_without_a_usable_row_says_why(tmp_path):
    path = write_molecules(tmp_path / "bad.csv", ["CCCCCCCCCCCC", "not_smiles", "CCCCCCCCCCCCCC"], ["train"] * 3)
    task = task_of(FingerprintTask(data=str(path), capacity=9, elements="C"))
    for limit in (None, 10):
        with pytest.raises(
            NoUsableMoleculeError, match=r"no usable molecule in 3 rows \(2 too large, 1 unparsable\); row 1: "
        ):
            task.data("train", limit=limit)
    with pytest.raises(NoUsableMoleculeError, match=r"bad.csv has no row in this split"):
        task.data("test")


def test_a_file_without_any_atom_says_why_before_elements_are_asked_for(tmp_path):
    path = write_molecules(tmp_path / "bad.csv", ["xx", "yy"])
    with pytest.raises(
        NoUsableMoleculeError, match=r"bad.csv has no usable molecule in 2 rows \(2 unparsable\); row 1: 'xx'"
    ):
        _ = task_of(FingerprintTask(data=str(path))).vocabulary


def test_elements_come_from_the_data_unless_they_are_named(few, tmp_path):
    assert few.vocabulary.nodes == ("C", "O", "N", "F")
    path = write_molecules(tmp_path / "a.csv", ["CCCl", "OC"])
    assert task_of(FingerprintTask(data=str(path))).vocabulary.nodes == ("C", "Cl", "O")
    assert Fingerprint2Molecule(FingerprintTask(data=str(path))).resolved().elements == "C Cl O"
    with pytest.raises(ValueError, match="'Xx' is not the symbol of an element"):
        task_of(FingerprintTask(data=str(path), elements="C Xx")).data("train")


@pytest.mark.parametrize("name", ["qm9-cpu", "fingerprint2molecule-cpu"])
def test_presets_name_the_elements_in_their_data(name):
    settings = load_run(name).task
    found = task_of(settings.model_copy(update={"elements": ""})).vocabulary
    assert task_of(settings).vocabulary == found


def test_every_molecule_of_a_shipped_sample_is_usable():
    data = task_of(load_run("fingerprint2molecule-cpu").task).data("test", limit=300)
    assert data.rejected == []
    sizes = np.array([len(data[index].atoms) for index in range(300)])
    assert 23 < sizes.mean() < 25


@pytest.mark.parametrize(
    "given",
    ["CCO", Chem.MolFromSmiles("CCO"), "bits", "vector", "string", ["CCO"], ("CCO", Chem.MolFromSmiles("OCC"))],
)
def test_inputs_are_taken_in_every_form(few, given):
    bits = read_molecule("CCO", VOCABULARY, 9).bits
    vector = np.zeros(BITS, np.uint8)
    vector[bits] = 1
    forms = {"bits": vector, "vector": vector.tolist(), "string": "".join(map(str, vector))}
    tokens = few.inputs(forms.get(given, given) if isinstance(given, str) else given)
    assert tokens.tolist() == [[BITS, *bits.tolist()]] * len(tokens)
    assert few.inputs(tokens) is tokens


def test_a_molecule_with_explicit_hydrogens_is_the_same_molecule(few):
    assert few.inputs(Chem.AddHs(Chem.MolFromSmiles("CCO"))).tolist() == few.inputs("CCO").tolist()
    raw = Chem.MolFromSmiles("C1=CC=CC=C1O", sanitize=False)
    assert few.inputs(raw).tolist() == few.inputs("Oc1ccccc1").tolist()
    with pytest.raises(ValueError, match="unsanitizable"):
        few.inputs(Chem.MolFromSmiles("C(C)(C)(C)(C)C", sanitize=False))


def test_arrays_and_lists_of_numpy_values_are_taken(few):
    bits = few.inputs("CCO")[0, 1:].tolist()
    vector = np.zeros(BITS, np.int64)
    vector[bits] = 1
    for one in (list(vector), list(vector.astype(bool)), torch.from_numpy(vector), torch.from_numpy(vector)[None]):
        assert few.inputs(one).tolist() == [[BITS, *bits]]
    assert few.inputs(np.array(["CCO", "OCC"])).tolist() == [[BITS, *bits]] * 2


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(1024), np.full(BITS, 2), "0101" * 300, torch.zeros(3, 1024, dtype=torch.int64),
     torch.full((2, 5), 99_999), torch.tensor([[BITS, -1]])],
)  # fmt: skip
def test_what_is_no_fingerprint_is_refused(few, wrong):
    with pytest.raises(ValueError, match="a fingerprint must"):
        few.inputs(wrong)


@pytest.mark.parametrize("wrong", [None, 5])
def test_what_is_no_molecule_is_refused(few, wrong):
    with pytest.raises(ValueError, match="expected a SMILES, an RDKit molecule"):
        few.inputs(wrong)


def test_all_of_a_file_is_read_whatever_its_splits_are_called(few, tmp_path):
    other = write_molecules(tmp_path / "other.csv", SMILES[:4], ["holdout", "train", "fold 1", "test"])
    assert [few.data_from(other)[at].smiles for at in range(4)] == SMILES[:4]
