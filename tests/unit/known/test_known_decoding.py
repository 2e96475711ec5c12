"""The most probable of known graphs, against every one that could be; and how sure a model may be of it."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch

from graphwright.decoding import Formula, FormulaRule, slot_scores
from graphwright.graphs import Graph, Prediction, is_isomorphic
from graphwright.graphs.molecules import molecule_vocabulary
from graphwright.known import Library, Placement, decoding, known_candidates
from graphwright.known.decoding import FREQUENCY, LEAST, MOST, _bounds, temperature
from tiny import LABELLED, random_batch, random_prediction

SLOTS = 5


def library(seed: int, count: int = 12) -> Library:
    sizes = np.random.default_rng(seed).integers(1, SLOTS + 1, count).tolist()
    drawn = Library.of(random_batch(np.random.default_rng(seed), sizes, SLOTS).graphs(), SLOTS)
    return Library.of(drawn.graphs, SLOTS)  # each met once


def prediction(seed: int, count: int = 3, scale: float = 2.0) -> Prediction:
    return random_prediction(torch.Generator().manual_seed(seed), count, SLOTS, scale=scale)


def brute_force(scores, graph: Graph) -> float:
    """The log-probability at the best of all places, term by term."""
    labels, edges = graph.node_labels, graph.edge_matrix()
    best = -np.inf
    for slots in permutations(range(scores.slots), graph.size):
        value = sum(scores.presence[slot, int(slot in slots)] for slot in range(scores.slots))
        value += sum(scores.labels[slot, labels[node]] for node, slot in enumerate(slots))
        value += sum(
            scores.edges[slots[i], slots[j], edges[i, j]]
            for i in range(graph.size)
            for j in range(i + 1, graph.size)
        )
        best = max(best, value)
    return best


@pytest.mark.parametrize("seed", range(6))
def test_found_places_are_places_and_nearly_always_the_best(seed):
    known, predicted = library(seed), prediction(seed)
    every = known_candidates(predicted, LABELLED, known, len(known))
    for scores, found in zip(slot_scores(predicted, LABELLED), every, strict=True):
        best = {id(graph): brute_force(scores, graph) for graph in known.graphs}
        values = [candidate.log_score for candidate in found.candidates]
        assert values == sorted(values, reverse=True)
        for candidate in found.candidates:
            assert candidate.log_score <= best[id(candidate.graph)] + 1e-9
            assert candidate.probability == pytest.approx(np.exp(candidate.log_score))
        assert sum(candidate.share for candidate in found.candidates) == pytest.approx(1)
        # A local search may miss a place, but not by much for the first of the list.
        assert found.candidates[0].log_score >= max(best.values()) - 1.5


def test_no_place_exceeds_the_bound():
    known, predicted = library(7, 20), prediction(7)
    contents = known.contents
    for scores in slot_scores(predicted, LABELLED):
        for bound, graph in zip(_bounds(contents, scores), known.graphs, strict=True):
            assert brute_force(scores, graph) <= bound + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_a_prediction_that_is_sure_of_a_known_graph_on_shuffled_slots_gives_that_graph(seed):
    known = library(seed, 30)
    generator = np.random.default_rng(seed)
    at = int(generator.integers(len(known)))
    batch = known.batch
    slots = torch.from_numpy(generator.permutation(SLOTS))
    presence = 8.0 * (2 * batch.mask[at, slots].float() - 1)
    labels = 8.0 * torch.nn.functional.one_hot(batch.node_labels[at, slots], len(LABELLED.nodes)).float()
    classes = torch.nn.functional.one_hot(batch.edge_labels[at][slots][:, slots], len(LABELLED.edges))
    predicted = Prediction(presence[None], 8.0 * classes.movedim(-1, 0).float()[None], labels[None])
    found = known_candidates(predicted, LABELLED, known, 3)[0]
    assert is_isomorphic(found.candidates[0].graph, known.graphs[at])
    assert found.candidates[0].share > 0.9


def test_in_order_the_first_slots_are_taken_as_they_come():
    known, predicted = library(3), prediction(3, 2)
    every = known_candidates(predicted, LABELLED, known, len(known), placement=Placement.IN_ORDER)
    for scores, found in zip(slot_scores(predicted, LABELLED), every, strict=True):
        for candidate in found.candidates:
            graph = candidate.graph
            size, edges = graph.size, graph.edge_matrix()
            value = scores.presence[:size, 1].sum() + scores.presence[size:, 0].sum()
            value += scores.labels[np.arange(size), graph.node_labels].sum()
            value += sum(scores.edges[i, j, edges[i, j]] for i in range(size) for j in range(i + 1, size))
            assert candidate.log_score == pytest.approx(value)
            assert not candidate.proved
    best = known_candidates(predicted, LABELLED, known, 1)
    for placed, ordered in zip(best, every, strict=True):
        assert placed.candidates[0].log_score >= ordered.candidates[0].log_score - 1e-9


def test_of_graphs_as_probable_the_one_met_more_often_comes_first():
    graphs = random_batch(np.random.default_rng(1), [3, 3], SLOTS).graphs()
    nothing_said = Prediction(torch.zeros(1, SLOTS), torch.zeros(1, 3, SLOTS, SLOTS), torch.zeros(1, SLOTS, 3))
    for rare, common in (graphs, graphs[::-1]):
        known = Library.of([rare, *[common] * 4], SLOTS)
        assert known.counts.tolist() == [1, 4]
        for placement in Placement:
            first, second = known_candidates(nothing_said, LABELLED, known, 2, placement=placement)[0].candidates
            assert is_isomorphic(first.graph, common)
            assert first.probability == pytest.approx(second.probability)
            assert first.log_score - second.log_score == pytest.approx(FREQUENCY * np.log(4))
            assert first.share > second.share


def test_a_library_holds_every_graph_once_and_none_that_does_not_fit():
    batch = random_batch(np.random.default_rng(0), [4, 3, 5], SLOTS)
    shuffled = batch.permute(torch.tensor([[2, 0, 3, 1, 4], [1, 2, 0, 3, 4], [4, 2, 0, 1, 3]]))
    assert len(Library.of([*batch.graphs(), *shuffled.graphs()], SLOTS)) == 3
    assert len(Library.of(batch.graphs(), 4)) == 2
    with pytest.raises(ValueError, match="no graph of 1 to 2 nodes"):
        Library.of(batch.graphs(), 2)


def test_a_formula_leaves_out_what_has_more_atoms_and_the_plain_decoder_answers_where_nothing_is_left():
    vocabulary = molecule_vocabulary(("C", "N"))
    graphs = [
        Graph.from_matrix(np.array(labels), _chain(len(labels)), vocabulary) for labels in ([0, 0], [0, 1], [0])
    ]
    known = Library.of(graphs, 3)
    generator = torch.Generator().manual_seed(0)
    predicted = Prediction(
        torch.full((3, 3), 4.0),
        torch.randn(3, 5, 3, 3, generator=generator),
        torch.randn(3, 3, 2, generator=generator),
    )
    bounds = [Formula({"C": 2}, rule=FormulaRule.AT_MOST), None, Formula({"N": 3}, rule=FormulaRule.AT_MOST)]
    found = known_candidates(predicted, vocabulary, known, 5, formulas=bounds)
    assert [len(each.candidates) for each in found[:2]] == [2, 3]
    assert all(not np.any(each.graph.node_labels == 1) for each in found[0].candidates)
    assert found[2].candidates[0].graph.size == 3  # none of the library's
    exact = known_candidates(predicted, vocabulary, known, 5, formulas=[Formula.parse("C2H6")] * 3)
    assert all(len(each.candidates) == 1 for each in exact)


def _chain(size: int) -> np.ndarray:
    matrix = np.zeros((size, size), np.int64)
    for i in range(size - 1):
        matrix[i, i + 1] = matrix[i + 1, i] = 1
    return matrix


def test_what_does_not_fit_is_refused():
    known, predicted = library(0), prediction(0)
    with pytest.raises(ValueError, match="at least 1"):
        known_candidates(predicted, LABELLED, known, 0)
    with pytest.raises(ValueError, match="another vocabulary, or other slots"):
        known_candidates(predicted, LABELLED, Library.of(known.graphs, SLOTS + 1), 1)
    with pytest.raises(ValueError, match="2 formulas for 3 predictions"):
        known_candidates(predicted, LABELLED, known, 1, formulas=[None, None])


@pytest.mark.parametrize("placement", Placement)
def test_a_model_that_recognises_graphs_ranks_them_itself(placement):
    known, predicted = library(3, 20), prediction(3)
    logits = torch.randn(3, len(known), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    told = known_candidates(replace(predicted, known=logits), LABELLED, known, 4, placement=placement)
    for row, found in zip(logits, told, strict=True):
        best = row.argsort(descending=True)[:4].tolist()
        assert [each.graph for each in found.candidates] == [known.graphs[at] for at in best]
        wholes = row.softmax(0)[best]
        assert [each.probability for each in found.candidates] == pytest.approx(wholes.tolist())
        assert [each.log_score for each in found.candidates] == pytest.approx(wholes.log().tolist())
        assert [each.share for each in found.candidates] == pytest.approx((wholes / wholes.sum()).tolist())


def test_recognised_graphs_obey_formulas_too():
    vocabulary = molecule_vocabulary(("C", "N"))
    ring, pair = ([("C", "C", "N"), [(0, 1, 1), (1, 2, 1), (0, 2, 1)]], [("C", "C"), [(0, 1, 1)]])
    graphs = [
        Graph(
            np.array([vocabulary.nodes.index(atom) for atom in atoms]),
            np.array([bond[:2] for bond in bonds]),
            np.array([bond[2] for bond in bonds]),
            vocabulary,
        )
        for atoms, bonds in (ring, pair)
    ]
    known = Library.of(graphs, 3)
    predicted = random_prediction(torch.Generator().manual_seed(0), 1, 3, vocabulary=vocabulary)
    told = replace(predicted, known=torch.tensor([[9.0, 0.0]], dtype=predicted.presence.dtype))
    at_most = Formula({"C": 5}, 12, rule=FormulaRule.AT_MOST)
    free, bound = (
        known_candidates(told, vocabulary, known, 2, formulas=formulas)[0] for formulas in (None, [at_most])
    )
    assert [each.graph.size for each in free.candidates] == [3, 2]
    assert [each.graph.size for each in bound.candidates] == [2]
    # Probabilities are among the graphs that are left.
    assert [each.probability for each in bound.candidates] == pytest.approx([1])
    assert sum(each.probability for each in free.candidates) == pytest.approx(1)


def test_a_model_that_recognises_other_graphs_is_refused():
    known = library(4)
    with pytest.raises(ValueError, match=r"recognises 3 graphs, the library has \d+"):
        known_candidates(replace(prediction(4), known=torch.zeros(3, 3, dtype=torch.float64)), LABELLED, known, 1)


def test_slots_are_scored_only_where_no_known_graph_is_left(monkeypatch):
    vocabulary = molecule_vocabulary(("C", "N"))
    graphs = [Graph.from_matrix(np.array([0, 0]), _chain(2), vocabulary)]
    known = Library.of(graphs, 3)
    predicted = random_prediction(torch.Generator().manual_seed(0), 2, 3, vocabulary)
    told = replace(predicted, known=torch.zeros(2, 1, dtype=torch.float64))
    scored = []

    def counted(*given):
        scored.append(given)
        return slot_scores(*given)

    monkeypatch.setattr(decoding, "slot_scores", counted)
    first = known_candidates(told, vocabulary, known, 1)
    assert not scored
    assert [each.candidates[0].graph for each in first] == graphs * 2
    nitrogen = Formula({"N": 3}, rule=FormulaRule.AT_MOST)
    fallen_back = known_candidates(told, vocabulary, known, 1, formulas=[None, nitrogen])
    assert len(scored) == 1
    assert fallen_back[0].candidates[0].graph == graphs[0]


def mean_confidence(logits, at: float) -> float:
    return float(np.mean([np.exp(each / at).max() / np.exp(each / at).sum() for each in logits]))


@pytest.mark.parametrize("accuracy", [0.2, 0.5, 0.9])
def test_mean_confidence_is_the_accuracy(accuracy):
    rng = np.random.default_rng(0)
    logits = [3 * rng.standard_normal(size) for size in rng.integers(5, 40, 200)]
    assert mean_confidence(logits, temperature(logits, accuracy)) == pytest.approx(accuracy, abs=1e-6)


def test_a_model_that_is_sure_and_right_is_left_sure_and_one_that_is_never_right_is_not():
    logits = [np.array([5.0, 0.0]), np.array([3.0, 0.0])]
    assert temperature(logits, 1.0) == pytest.approx(LEAST, rel=1e-3)
    assert temperature(logits, 0.0) == pytest.approx(MOST, rel=1e-3)
