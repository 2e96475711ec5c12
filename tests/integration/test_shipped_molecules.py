"""What the shipped models of molecules say about molecules that they have not seen."""

import pytest
import torch

pytest.importorskip("rdkit")
from rdkit import Chem

import graphwright as gw
from graphwright.decoding import decode, decode_valid, slot_scores
from graphwright.graphs import is_isomorphic
from graphwright.graphs.molecules import is_molecule, molecule_from_graph

MOLECULES = 80


@pytest.fixture(scope="module")
def predicted():
    """Logits of the shipped qm9 for molecules of its test split, and these."""
    model = gw.load("qm9")
    data = model.task.data("test", limit=MOLECULES)
    inputs, graphs = data.batch(range(MOLECULES))
    with torch.no_grad():
        return model.predictor(inputs).graphs, graphs.graphs(), model.vocabulary


def test_every_valid_decoding_passes_rdkit_and_none_is_less_likely_than_a_valid_plain_one(predicted):
    prediction, _, vocabulary = predicted
    plain, decoded = decode(prediction, vocabulary), decode_valid(prediction, vocabulary)
    valid = [is_molecule(graph) for graph in plain]
    assert 0 < sum(valid) < MOLECULES  # both kinds occur, or nothing is tested
    for scores, graph, decoding, was_valid in zip(
        slot_scores(prediction, vocabulary), plain, decoded, valid, strict=True
    ):
        molecule = Chem.MolFromSmiles(Chem.MolToSmiles(molecule_from_graph(decoding.graph)))
        assert molecule is not None
        assert molecule.GetNumAtoms() == decoding.graph.size
        assert len(Chem.GetMolFrags(molecule)) == 1
        if was_valid:
            assert decoding.graph == graph
            assert decoding.log_score == pytest.approx(scores.highest)


def test_it_is_right_about_as_often_as_its_card_says(predicted):
    prediction, graphs, vocabulary = predicted
    right = [is_isomorphic(one, truth) for one, truth in zip(decode(prediction, vocabulary), graphs, strict=True)]
    assert sum(right) >= MOLECULES // 8
