"""The most probable molecule, against brute force and RDKit."""

import functools
import itertools

import numpy as np
import pytest
import torch

from graphwright.decoding import (
    Assignment,
    Formula,
    FormulaRule,
    NoMoleculeError,
    SlotScores,
    decode,
    decode_valid,
    slot_scores,
    valid,
    valid_candidates,
)
from graphwright.decoding.valid import greedy_molecule, valid_assignments
from graphwright.graphs import Graph, Prediction, Vocabulary, is_isomorphic
from graphwright.graphs.molecules import BONDS, is_molecule, molecule_from_graph, molecule_vocabulary
from molecule_logits import QM9, noisy_prediction, random_prediction

Chem = pytest.importorskip("rdkit.Chem")
descriptors = pytest.importorskip("rdkit.Chem.rdMolDescriptors")

FAR = 1e9
SMALL = molecule_vocabulary(["C", "N"])
KETONE = molecule_vocabulary(["C", "O"])
MOLECULES = [
    "CC1CC1C(=O)NC",
    "N#Cc1ccc[nH]1",
    "O=C1CC2OC1C2",
    "Cc1noc(N)n1",
    "CC(=O)NC(N)=O",
    "OC1CC2CC2C1",
    "c1ccc2occc2c1",
    "FC(F)(F)CO",
]


@pytest.fixture
def no_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Straight to the program."""
    monkeypatch.setattr(valid, "_LOOKED_AT", 0)


@functools.cache
def small_molecules() -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """All molecules of one to three slots in place: labels by slot (-1: absent), classes of 01, 02, 12."""
    found = []
    for labels in itertools.product(range(-1, 2), repeat=3):
        here = [slot for slot in range(3) if labels[slot] >= 0]
        pairs = [pair for pair in ((0, 1), (0, 2), (1, 2)) if set(pair) <= set(here)]
        for classes in itertools.product(range(5), repeat=len(pairs)):
            if len(here) and sum(code > 0 for code in classes) >= len(here) - 1:
                edges = [tuple(here.index(slot) for slot in pair) for pair in pairs]
                bonds = [(pair, BONDS[code]) for pair, code in zip(edges, classes, strict=True) if code]
                names = [SMALL.nodes[labels[slot]] for slot in here]
                graph = Graph.build(names, [pair for pair, _ in bonds], [name for _, name in bonds], SMALL)
                if is_molecule(graph):
                    full = dict(zip(pairs, classes, strict=True))
                    found.append((labels, tuple(full.get(pair, 0) for pair in ((0, 1), (0, 2), (1, 2)))))
    return tuple(found)


def placed(scores: SlotScores, labels: tuple[int, ...], classes: tuple[int, ...]) -> Assignment:
    matrix = np.zeros((3, 3), np.int64)
    for (i, j), code in zip(((0, 1), (0, 2), (1, 2)), classes, strict=True):
        matrix[i, j] = matrix[j, i] = code
    return scores.assign(np.array(labels) >= 0, np.maximum(labels, 0), matrix)


@pytest.mark.usefixtures("no_looking")
@pytest.mark.parametrize("seed", range(3))
def test_the_program_finds_molecules_in_the_order_of_brute_force(seed: int) -> None:
    (scores,) = slot_scores(random_prediction(1, 3, seed, labels=2), SMALL)
    expected = sorted((placed(scores, *one) for one in small_molecules()), key=lambda one: one.regret)
    found = list(itertools.islice(valid_assignments(scores, SMALL, None, FAR), 8))
    assert all(one.proved for one in found)
    np.testing.assert_allclose(
        [one.assignment.regret for one in found], [one.regret for one in expected[:8]], atol=1e-6
    )


@pytest.mark.usefixtures("no_looking")
@pytest.mark.parametrize("seed", range(6))
def test_choices_left_out_as_too_unlikely_come_back_where_they_are_better(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(valid, "_REGRET_STEP", 0.3)
    test_the_program_finds_molecules_in_the_order_of_brute_force(seed)


def test_looking_and_program_agree() -> None:
    prediction = random_prediction(4, 3, 7, labels=2)
    for scores in slot_scores(prediction, SMALL):
        best = min(placed(scores, *one).regret for one in small_molecules())
        assert next(valid_assignments(scores, SMALL, None, FAR)).assignment.regret == pytest.approx(best, abs=1e-6)


def test_all_molecules_there_are_come_and_then_nothing() -> None:
    prediction = Prediction(torch.zeros(1, 1), torch.zeros(1, 5, 1, 1), torch.tensor([[[0.3, -0.2]]]))
    (result,) = valid_candidates(prediction, SMALL, 10)
    assert sorted(candidate.graph.node_names[0] for candidate in result.candidates) == ["C", "N"]
    assert result.proved


@pytest.mark.usefixtures("no_looking")
@pytest.mark.parametrize("seed", range(2))
def test_the_best_bonds_of_four_atoms_are_those_of_brute_force(seed: int) -> None:
    """All slots and labels certain, C C C O, which holds an aromatic molecule too: cyclopropenone."""
    rng = np.random.default_rng(seed)
    edges = 3 * rng.normal(size=(1, 5, 4, 4))
    edges[0, 4, :3, :3] += 4.0
    labels = np.full((1, 4, 2), -80.0)
    labels[0, np.arange(4), [0, 0, 0, 1]] = 80.0
    prediction = Prediction(torch.full((1, 4), 80.0).double(), torch.tensor(edges), torch.tensor(labels))
    (scores,) = slot_scores(prediction, KETONE)
    pairs = list(itertools.combinations(range(4), 2))
    ranked = []
    for classes in itertools.product(range(5), repeat=6):
        regret = sum(scores.edge_regrets[i, j, code] for (i, j), code in zip(pairs, classes, strict=True))
        ranked.append((regret, classes))
    best = None
    for regret, classes in sorted(ranked):
        bonds = [(pair, BONDS[code]) for pair, code in zip(pairs, classes, strict=True) if code]
        graph = Graph.build(list("CCCO"), [pair for pair, _ in bonds], [name for _, name in bonds], KETONE)
        if is_molecule(graph):
            best = regret
            break
    found = next(valid_assignments(scores, KETONE, None, FAR))
    assert found.proved
    assert found.assignment.regret == pytest.approx(best, abs=1e-6)


def check_sanitizable(graph: Graph) -> None:
    """By RDKit alone: elements, bonds and the charges and hydrogens of our molecule, in one part and neutral."""
    again = Chem.MolFromSmiles(Chem.MolToSmiles(molecule_from_graph(graph)))
    assert again is not None
    assert len(Chem.GetMolFrags(again)) == 1
    assert Chem.GetFormalCharge(again) == 0
    assert again.GetNumAtoms() == graph.size


@pytest.mark.parametrize("presence", [0.0, 4.0])
def test_random_logits_give_molecules(presence: float) -> None:
    prediction = random_prediction(3, 9, 3, presence=presence)
    for decoding in decode_valid(prediction, QM9, seconds=1.0):
        check_sanitizable(decoding.graph)


def test_noisy_molecules_give_molecules_at_least_as_likely_as_valid_plain_ones() -> None:
    prediction, graphs = noisy_prediction(MOLECULES * 2, 9, 2.2, 0)
    plain = decode(prediction, QM9)
    decoded = decode_valid(prediction, QM9, seconds=3.0)
    valid = [is_molecule(graph) for graph in plain]
    assert 0 < sum(valid) < len(valid)
    for scores, graph, decoding, was_valid in zip(
        slot_scores(prediction, QM9), plain, decoded, valid, strict=True
    ):
        check_sanitizable(decoding.graph)
        assert decoding.log_score <= scores.highest + 1e-9
        if was_valid:
            assert decoding.graph == graph
            assert decoding.log_score == pytest.approx(scores.highest)
            assert decoding.proved_optimal
    right = [is_isomorphic(one.graph, truth) for one, truth in zip(decoded, graphs, strict=True)]
    assert sum(right) >= sum(is_isomorphic(one, truth) for one, truth in zip(plain, graphs, strict=True))


def test_a_graph_in_two_parts_is_joined_or_cut() -> None:
    prediction, _ = noisy_prediction(["CCCC"], 4, 0.0, 0)
    prediction.edges[0, :, 1, 2] = prediction.edges[0, :, 2, 1] = torch.tensor([3.0, 2.5, 0, 0, 0]).double()
    assert len(decode(prediction, QM9)[0].edges) == 2
    (decoding,) = decode_valid(prediction, QM9)
    assert Chem.MolToSmiles(molecule_from_graph(decoding.graph)) == "CCCC"
    (scores,) = slot_scores(prediction, QM9)
    assert decoding.log_score == pytest.approx(scores.highest - 0.5)


@pytest.mark.usefixtures("no_looking")
@pytest.mark.parametrize("smiles", MOLECULES)
def test_the_program_has_every_kind_of_molecule(smiles: str) -> None:
    """Nothing that RDKit accepts is cut off: a certain prediction is its own best molecule."""
    prediction, graphs = noisy_prediction([smiles], 9, 0.0, 0)
    (decoding,) = decode_valid(prediction, QM9)
    assert is_isomorphic(decoding.graph, graphs[0])
    assert decoding.proved_optimal


@pytest.mark.usefixtures("no_looking")
@pytest.mark.parametrize(
    "smiles",
    [
        "C[N+](=O)[O-]",
        "CN=[N+]=[N-]",
        "[C-]#[N+]C",
        "[O-][n+]1ccccc1",
        "O=c1cc[nH]cc1",
        "O=c1ccc1=O",
        "c1ccn2cccc2c1",
    ],
)
def test_the_program_has_charges_and_odd_rings(smiles: str) -> None:
    prediction, graphs = noisy_prediction([smiles], 9, 0.0, 0)
    (decoding,) = decode_valid(prediction, QM9)
    assert is_isomorphic(decoding.graph, graphs[0])


@pytest.mark.parametrize("text", ["C4H10O", "C4H8O", "C5H12", "C3H9N"])
def test_an_exact_formula_holds_to_the_hydrogen(text: str) -> None:
    prediction, _ = noisy_prediction(["CCOCC"], 6, 0.5, 1)
    (decoding,) = decode_valid(prediction, QM9, formulas=[Formula.parse(text)])
    molecule = molecule_from_graph(decoding.graph)
    assert descriptors.CalcMolFormula(molecule) == text


def test_a_formula_as_a_bound_holds() -> None:
    prediction, _ = noisy_prediction(["CCOCCOCC", "CCCCC"], 9, 0.5, 2)
    most = Formula.parse("C4H10O", FormulaRule.AT_MOST)
    free, bound = decode_valid(prediction, QM9, formulas=[None, most])
    assert free.graph.node_names.count("O") == 2
    names = bound.graph.node_names
    assert (names.count("C") <= 4, names.count("O") <= 1, names.count("N")) == (True, True, 0)
    assert is_molecule(bound.graph)


@pytest.mark.parametrize(
    ("text", "message"),
    [("C20H42", "sample 0: the formula has 20 heavy atoms"), ("CH3Cl", "sample 0: the formula has Cl")],
)
def test_a_formula_out_of_reach_is_refused(text: str, message: str) -> None:
    prediction, _ = noisy_prediction(["CCO"], 5, 0.0, 0)
    with pytest.raises(ValueError, match=message):
        decode_valid(prediction, QM9, formulas=[Formula.parse(text)])
    with pytest.raises(ValueError, match="2 formulas for 1 predictions"):
        decode_valid(prediction, QM9, formulas=[None, None])


def test_a_formula_that_no_molecule_has() -> None:
    prediction, _ = noisy_prediction(["CCO"], 3, 0.0, 0)
    with pytest.raises(NoMoleculeError, match="sample 0"):
        decode_valid(prediction, QM9, formulas=[Formula.parse("C2H12O")])
    (result,) = valid_candidates(prediction, QM9, 3, formulas=[Formula.parse("C2H12O")])
    assert result.candidates == ()


def test_without_time_there_is_still_a_molecule() -> None:
    prediction = random_prediction(3, 9, 0)
    for decoding in decode_valid(prediction, QM9, seconds=0.0):
        check_sanitizable(decoding.graph)
        assert not decoding.proved_optimal


def test_without_time_the_atoms_are_kept_and_joined_at_the_likeliest_places() -> None:
    """Triple bonds where single ones were: no molecule, and no search to mend it."""
    prediction, _ = noisy_prediction(["c1ccccc1O", "CCOC(N)CC"], 9, 0.0, 0)
    edges = prediction.edges.clone()
    edges[:, 3] += 40 * (edges[:, 1] > edges[:, 0])  # single bonds become triple ones
    worse = Prediction(20 * prediction.presence, edges, prediction.node_labels)
    for decoding in decode_valid(worse, QM9, seconds=0.0):
        check_sanitizable(decoding.graph)
        assert decoding.graph.size == 7
        assert not decoding.proved_optimal


@pytest.mark.parametrize("smiles", ["C1CC1", "CC1CC1C(=O)NC", "O=C1CC2OC1C2", "N#CC=O", "C"])
def test_what_is_right_already_is_joined_as_it_is(smiles: str) -> None:
    prediction, (truth,) = noisy_prediction([smiles], 9, 0.0, 0)
    found = greedy_molecule(slot_scores(prediction, QM9)[0], QM9, None)
    assert found is not None
    assert is_isomorphic(found.graph(QM9), truth)
    assert found.regret == pytest.approx(0)


def test_where_nothing_is_present_there_is_an_atom() -> None:
    prediction, _ = noisy_prediction(["CCO"], 3, 0.0, 0)
    nobody = Prediction(prediction.presence - 50, prediction.edges, prediction.node_labels)
    (decoding,) = decode_valid(nobody, QM9)
    assert decoding.graph.size == 1


def test_candidates_are_distinct_molecules_in_order_and_the_decoder_s_comes_first() -> None:
    prediction, _ = noisy_prediction(MOLECULES[:4], 9, 1.5, 4)
    decoded = decode_valid(prediction, QM9)
    for decoding, result in zip(decoded, valid_candidates(prediction, QM9, 4), strict=True):
        scores = [candidate.log_score for candidate in result.candidates]
        assert len(scores) == 4
        assert scores == sorted(scores, reverse=True)
        assert result.candidates[0].graph == decoding.graph
        assert all(is_molecule(candidate.graph) for candidate in result.candidates)
        for one, other in itertools.combinations(result.candidates, 2):
            assert not is_isomorphic(one.graph, other.graph)
        assert sum(candidate.share for candidate in result.candidates) == pytest.approx(1.0)


def test_a_vocabulary_that_is_not_chemistry_is_refused() -> None:
    prediction = Prediction(torch.zeros(1, 2), torch.zeros(1, 2, 2))
    with pytest.raises(ValueError, match="the edge classes of molecules"):
        decode_valid(prediction, Vocabulary())


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_slots_does_not_matter(seed: int) -> None:
    prediction, _ = noisy_prediction([MOLECULES[seed]], 9, 2.2, seed)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(9))
    moved = Prediction(
        prediction.presence[:, order], prediction.edges[:, :, order][..., order], prediction.node_labels[:, order]
    )
    (one,), (other,) = decode_valid(prediction, QM9), decode_valid(moved, QM9)
    assert one.log_score == pytest.approx(other.log_score, abs=1e-6)
    assert is_isomorphic(one.graph, other.graph)
