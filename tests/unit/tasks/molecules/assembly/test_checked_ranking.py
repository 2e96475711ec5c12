"""Answers in the order in which they fit the fingerprint, and molecules repaired where none could be assembled."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from rdkit import Chem

from graphwright.decoding import slot_scores, valid_candidates
from graphwright.graphs import GraphBatch, Prediction, is_isomorphic
from graphwright.graphs.molecules import graph_from_molecule, molecule_vocabulary, parse_smiles
from graphwright.known.decoding import log_probabilities
from graphwright.tasks.molecules import active_bits
from graphwright.tasks.molecules.assembly.alphabet import alphabet_of, make_alphabet
from graphwright.tasks.molecules.assembly.assemble import Limits
from graphwright.tasks.molecules.assembly.ranking import (
    FingerprintEffort,
    check,
    fingerprint_candidates,
    repair,
    tanimoto,
)
from molecule_logits import QM9, noisy_prediction, random_prediction

SLOTS = 9
FEW = make_alphabet([parse_smiles("CF")])
"""An alphabet that nothing here can be assembled from."""


def bits(smiles: str) -> np.ndarray:
    return active_bits(parse_smiles(smiles))


def candidates(prediction, smiles, alphabet=None, count=5, **effort):
    asked = [bits(each) for each in smiles]
    return fingerprint_candidates(
        prediction, QM9, asked, alphabet or alphabet_of(QM9.nodes), SLOTS, count, FingerprintEffort(**effort)
    )


def test_answers_have_the_fingerprint_whatever_a_model_says():
    smiles = ["CC(=O)NC", "C1CC1C#N", "c1ccoc1"]
    for found, text in zip(candidates(random_prediction(3, SLOTS, 0), smiles), smiles, strict=True):
        first = found.candidates[0]
        assert first.checked
        assert first.text == Chem.CanonSmiles(text)
        assert is_isomorphic(first.graph, graph_from_molecule(parse_smiles(text), QM9))
        assert sum(each.share for each in found.candidates) == pytest.approx(1)


def test_the_model_decides_among_molecules_that_a_fingerprint_cannot_tell_apart():
    chains = ["CCCCCCO", "CCCCCCCO", "CCCCCCCCO"]
    for truth in chains:
        prediction, _ = noisy_prediction([truth], SLOTS, 0.1, seed=0)
        sure = Prediction(5 * prediction.presence, 5 * prediction.edges, 5 * prediction.node_labels)
        (found,) = candidates(sure, [truth])
        assert {each.text for each in found.candidates} == set(chains)
        assert found.candidates[0].text == truth
        scores = [each.log_score for each in found.candidates]
        assert scores == sorted(scores, reverse=True)


def test_tautomers_are_one_candidate():
    (found,) = candidates(random_prediction(1, SLOTS, 1), ["Cc1ccn[nH]1"])
    assert [each.text for each in found.candidates] == ["Cc1ccn[nH]1"]


def test_without_assembly_the_valid_candidates_are_ranked_by_fingerprint_then_likeness_then_score():
    smiles = ["CC(=O)NC", "CCOC=O", "OCC1CC1"]
    prediction, _ = noisy_prediction(smiles, SLOTS, 2.5, seed=1)
    valid = valid_candidates(prediction, QM9, 5, programs=4)
    found = candidates(prediction, smiles, FEW, programs=4, changes=1, seconds=60)
    for each, before, text in zip(found, valid, smiles, strict=True):
        asked = bits(text)
        ranks = [
            (np.array_equal(own, asked), tanimoto(own, asked), candidate.log_score)
            for candidate in each.candidates
            for own in [active_bits(Chem.MolFromSmiles(candidate.text))]
        ]
        assert ranks == sorted(ranks, reverse=True)
        assert [rank[0] for rank in ranks] == [candidate.checked for candidate in each.candidates]
        graphs = [candidate.graph for candidate in each.candidates]
        assert any(is_isomorphic(graph, one.graph) for graph in graphs for one in before.candidates)


def test_a_molecule_outside_the_alphabet_is_found_among_the_models_own():
    prediction, (truth,) = noisy_prediction(["CC(=O)NC"], SLOTS, 0.5, seed=0)
    (found,) = candidates(prediction, ["CC(=O)NC"], FEW, seconds=60)
    assert found.candidates[0].checked
    assert is_isomorphic(found.candidates[0].graph, truth)


def test_a_molecule_that_has_no_room_is_said_to_need_more_atoms():
    prediction = random_prediction(2, SLOTS, 0)
    large, fits = candidates(prediction, ["CC(=O)NCC(=O)NCC(=O)O", "CC(=O)NC"], seconds=60, changes=20, programs=2)
    assert {each.note for each in large.candidates} == {"needs more than 9 atoms"}
    assert not any(each.checked for each in large.candidates)
    assert {each.note for each in fits.candidates} == {None}


def test_without_time_the_best_so_far_answers():
    (found,) = candidates(random_prediction(1, SLOTS, 2), ["CC(=O)NC"], seconds=1e-9)
    assert len(found.candidates) >= 1
    assert not found.candidates[0].proved


def test_what_does_not_fit_is_refused():
    prediction = random_prediction(2, SLOTS, 0)
    with pytest.raises(ValueError, match="1 fingerprints for 2 predictions"):
        candidates(prediction, ["CCO"])
    with pytest.raises(ValueError, match="at least 1"):
        candidates(prediction, ["CCO", "CCN"], count=0)


def test_likeness_is_that_of_tanimoto():
    assert tanimoto(np.array([1, 2, 3]), np.array([2, 3, 4])) == 0.5
    assert tanimoto(np.array([1]), np.array([1])) == 1
    assert tanimoto(np.zeros(0), np.zeros(0)) == 1


def indifferent(graphs):
    return np.zeros(len(graphs))


def checked(smiles: str, asked: np.ndarray):
    found = check(graph_from_molecule(parse_smiles(smiles), QM9), asked)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("CCCC(C)=O", "CCC=C(C)O"),  # a bond's order, twice
        ("CC(O)CCC", "CC(=O)CCC"),
        ("CC(C)CCO", "CCC(C)CO"),  # an end of a bond
        ("CCOCCN", "CCNCCN"),  # an element
        ("CCOCC", "CCOCCN"),  # an atom more
        ("CCOCCN", "CCOCC"),  # an atom less
        ("CCCCCO", "C1CCCC1O"),  # a bond more
    ],
)
def test_repair_mends_what_is_wrong(wrong, right):
    asked = bits(right)
    start = checked(wrong, asked)
    assert start.wrong > 0
    mended = repair(start, asked, SLOTS, indifferent, changes=5000, deadline=time.perf_counter() + 60)
    assert mended.wrong < start.wrong
    assert mended.wrong == 0
    assert np.array_equal(active_bits(mended.molecule), asked)


def test_repair_never_makes_it_worse_and_keeps_to_its_limits():
    asked = bits("Cc1ccncc1F")
    start = checked("CCCCCCCO", asked)
    best = repair(start, asked, SLOTS, indifferent, changes=1500, deadline=time.perf_counter() + 60)
    assert best.wrong <= start.wrong
    assert best.graph.size <= SLOTS
    assert repair(start, asked, SLOTS, indifferent, changes=0, deadline=time.perf_counter() + 60) is start
    assert repair(start, asked, SLOTS, indifferent, changes=1500, deadline=0.0) is start


def test_repair_asks_the_model_among_equals():
    asked = bits("CCCCCN")
    start = checked("CCCCCO", asked)
    seen = []

    def opinion(graphs):
        seen.append(len(graphs))
        return np.arange(len(graphs), dtype=np.float64)

    limits = {"changes": 5000, "deadline": time.perf_counter() + 60}
    assert repair(start, asked, SLOTS, opinion, **limits).wrong == 0
    assert max(seen) > 1


def test_what_is_no_molecule_is_not_checked():
    graph = graph_from_molecule(parse_smiles("CF"), molecule_vocabulary(["C", "F"]))
    twice = type(graph)(graph.node_labels, graph.edges, graph.edge_labels + 1, graph.vocabulary)
    assert check(twice, bits("CF")) is None


def test_the_log_probability_of_a_graph_is_that_of_its_best_place():
    prediction, graphs = noisy_prediction(["CCO", "CCN"], SLOTS, 0.1, seed=3)
    scores = slot_scores(prediction, QM9)
    own = log_probabilities(scores[0], GraphBatch.collate(graphs, SLOTS))
    other = log_probabilities(scores[1], GraphBatch.collate(graphs, SLOTS))
    assert own[0] > own[1]
    assert other[1] > other[0]
    shuffled = [graph.permute(np.arange(graph.size)[::-1]) for graph in graphs]
    assert log_probabilities(scores[0], GraphBatch.collate(shuffled, SLOTS)) == pytest.approx(own)


def test_limits_are_those_asked_for():
    effort = FingerprintEffort(limits=replace(Limits(), molecules=1))
    prediction = random_prediction(1, SLOTS, 0)
    asked = [bits("CCCCCCO")]
    (found,) = fingerprint_candidates(prediction, QM9, asked, alphabet_of(QM9.nodes), SLOTS, 1, effort)
    assert len(found.candidates) == 1
