"""The nearest fingerprint, against RDKit's similarity."""

import numpy as np
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

from graphwright.baselines import NearestFingerprint, nearest_molecules
from graphwright.settings import FingerprintTask
from graphwright.tasks import task_of
from tiny_molecules import SMILES, tiny_file

GENERATOR = GetMorganGenerator(radius=2, fpSize=2048)


def fingerprints(smiles):
    return [GENERATOR.GetFingerprint(Chem.MolFromSmiles(each)) for each in smiles]


def bits(found):
    return [np.array(list(each.GetOnBits()), np.uint16) for each in found]


def test_it_is_the_one_that_rdkit_finds():
    reference, queries = fingerprints(SMILES), fingerprints(["CCCCO", "c1ccccc1C", "CC(N)C=O", "CCO"] * 20)
    found = NearestFingerprint.of(bits(reference)).find(bits(queries))
    for query, neighbour in zip(queries, found, strict=True):
        similarities = DataStructs.BulkTanimotoSimilarity(query, reference)
        assert neighbour.similarity == pytest.approx(max(similarities), abs=1e-6)
        assert neighbour.index == int(np.argmax(similarities))
    assert found[3].similarity == 1


def test_empty_fingerprints_are_like_each_other():
    none = np.zeros(0, np.uint16)
    found = NearestFingerprint.of([np.array([3], np.uint16), none]).find([none, np.array([4], np.uint16)])
    assert [(each.index, each.similarity) for each in found] == [(1, 1.0), (0, 0.0)]
    with pytest.raises(ValueError, match="must not be empty"):
        NearestFingerprint.of([])


def test_its_graph_is_the_training_molecules(tmp_path):
    task = task_of(FingerprintTask(data=str(tiny_file(tmp_path)), capacity=9, elements="C O N F"))
    reference = task.data("train", limit=100)
    counted = []
    graphs = nearest_molecules(reference, [reference[7].bits, reference[2].bits], counted.append)
    assert graphs == [reference[7].graph, reference[2].graph]
    assert sum(counted) == len(reference)
