"""Graphs on slots: slot by slot, and all of them from the highest score down."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from graphwright.decoding import (
    Assignment,
    Candidate,
    Slots,
    SlotScores,
    decode,
    harden,
    order_in_words,
    plain_candidates,
    slot_scores,
)
from graphwright.decoding.slots import assignments
from graphwright.graphs import Graph, Prediction, Vocabulary, is_isomorphic

VOCABULARY = Vocabulary(("a", "b", "c"), ("none", "single", "double"))


def logits(graph: Graph, slots: list[int], capacity: int) -> Prediction:
    """Logits that say `graph`, its node i in slot slots[i], all other slots absent."""
    presence = torch.full((1, capacity), -1.0)
    presence[0, slots] = 1.0
    labels = torch.zeros(1, capacity, 3)
    labels[0, slots, torch.from_numpy(graph.node_labels.copy())] = 2.0
    edges = torch.zeros(1, 3, capacity, capacity)
    edges[:, 0] = 1.0
    for (i, j), label in zip(graph.edges.tolist(), graph.edge_labels.tolist(), strict=True):
        edges[0, label, slots[i], slots[j]] = edges[0, label, slots[j], slots[i]] = 3.0
    return Prediction(presence, edges, labels)


def test_it_reads_what_the_logits_say() -> None:
    graph = Graph.build(["a", "c", "b"], [(0, 1), (1, 2)], ["double", "single"], VOCABULARY)
    assert decode(logits(graph, [0, 2, 3], 5), VOCABULARY) == [graph]


def test_edges_at_absent_slots_are_dropped_but_kept_in_the_slots() -> None:
    graph = Graph.build(["a", "b"], [(0, 1)], ["single"], VOCABULARY)
    prediction = logits(graph, [0, 1], 2)
    prediction.presence[0, 1] = -1.0
    assert decode(prediction, VOCABULARY) == [Graph.build(["a"], vocabulary=VOCABULARY)]
    slots = harden(prediction, VOCABULARY)
    assert slots.presence.tolist() == [[True, False]]
    assert slots.node_labels.tolist() == [[0, 1]]
    assert slots.edge_labels.tolist() == [[[0, 1], [1, 0]]]


def test_the_two_directions_of_an_edge_are_averaged() -> None:
    edges = torch.tensor([[[0.0, 3.0, -3.0], [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])
    prediction = Prediction(torch.ones(1, 3), edges)
    (graph,) = decode(prediction, Vocabulary())
    assert graph.edges.tolist() == [[0, 1]]  # 3 - 1 is for an edge, 1 - 3 against, 0 for neither.


def test_the_diagonal_is_never_an_edge() -> None:
    slots = harden(Prediction(torch.ones(2, 3), torch.full((2, 3, 3), 5.0)), Vocabulary())
    assert (slots.edge_labels == 1 - torch.eye(3, dtype=torch.int64)).all()


def test_presence_needs_more_than_one_half() -> None:
    prediction = Prediction(torch.tensor([[0.0, 1e-6, -1e-6]]), torch.zeros(1, 3, 3))
    assert harden(prediction, Vocabulary()).presence.tolist() == [[False, True, False]]


def test_graphs_of_no_node_and_batches_of_no_graph() -> None:
    nobody = Prediction(torch.full((2, 3), -1.0), torch.ones(2, 3, 3))
    assert [graph.size for graph in decode(nobody, Vocabulary())] == [0, 0]
    assert decode(Prediction(torch.zeros(0, 3), torch.zeros(0, 3, 3)), Vocabulary()) == []


def test_logits_of_a_model_in_training_are_accepted() -> None:
    presence = torch.ones(1, 2, requires_grad=True)
    assert decode(Prediction(presence, torch.ones(1, 2, 2, requires_grad=True)), Vocabulary())[0].size == 2


def test_wrong_classes_are_refused() -> None:
    presence = torch.ones(1, 2)
    with pytest.raises(ValueError, match="edges has 2 classes, the vocabulary 3"):
        decode(Prediction(presence, torch.zeros(1, 2, 2), torch.zeros(1, 2, 3)), VOCABULARY)
    with pytest.raises(ValueError, match="node_labels has 1 labels, the vocabulary 3"):
        decode(Prediction(presence, torch.zeros(1, 3, 2, 2)), VOCABULARY)


@pytest.mark.parametrize("name", ["presence", "node_labels", "edges"])
def test_a_nan_is_named(name: str) -> None:
    prediction = Prediction(torch.zeros(3, 2), torch.zeros(3, 3, 2, 2), torch.zeros(3, 2, 3))
    getattr(prediction, name)[2].view(-1)[0] = torch.nan
    with pytest.raises(ValueError, match=rf"{name} has a NaN \(sample 2\)"):
        decode(prediction, VOCABULARY)


def test_slots_check_themselves() -> None:
    presence, labels, edges = torch.ones(2, 2) > 0, torch.zeros(2, 2).long(), torch.zeros(2, 2, 2).long()
    assert (len(Slots(presence, labels, edges)), Slots(presence, labels, edges).capacity) == (2, 2)
    with pytest.raises(ValueError, match=r"presence must be torch.bool"):
        Slots(labels, labels, edges)
    with pytest.raises(ValueError, match=r"presence must have shape"):
        Slots(presence[0], labels, edges)
    with pytest.raises(ValueError, match=r"node_labels must be torch.int64 of shape \(2, 2\)"):
        Slots(presence, labels[:, :1], edges)
    lopsided = edges.clone()
    lopsided[1, 0, 1] = 1
    with pytest.raises(ValueError, match=r"edge_labels must be symmetric \(sample 1\)"):
        Slots(presence, labels, lopsided)
    loop = edges.clone()
    loop[1, 0, 0] = 1
    with pytest.raises(ValueError, match=r"edge_labels must be 0 on the diagonal \(sample 1\)"):
        Slots(presence, labels, loop)


TWO_LABELS = Vocabulary(("a", "b"), ("none", "single", "double"))


def random_scores(slots: int, seed: int) -> tuple[Prediction, SlotScores]:
    generator = torch.Generator().manual_seed(seed)
    prediction = Prediction(
        torch.randn(1, slots, generator=generator),
        torch.randn(1, 3, slots, slots, generator=generator),
        torch.randn(1, slots, 2, generator=generator),
    )
    return prediction, slot_scores(prediction, TWO_LABELS)[0]


def everything(scores: SlotScores) -> Iterator[Assignment]:
    """Every assignment, in no order."""
    n = scores.slots
    pairs = list(itertools.combinations(range(n), 2))
    for presence in itertools.product([False, True], repeat=n):
        here = [slot for slot in range(n) if presence[slot]]
        used = [(i, j) for i, j in pairs if presence[i] and presence[j]]
        for labels in itertools.product(range(2), repeat=len(here)):
            for classes in itertools.product(range(3), repeat=len(used)):
                label_row, matrix = np.zeros(n, np.int64), np.zeros((n, n), np.int64)
                label_row[here] = labels
                for (i, j), code in zip(used, classes, strict=True):
                    matrix[i, j] = matrix[j, i] = code
                yield scores.assign(np.array(presence), label_row, matrix)


def key(assignment: Assignment) -> bytes:
    return assignment.presence.tobytes() + assignment.labels.tobytes() + assignment.edges.tobytes()


def test_the_score_is_the_log_probability_of_the_decisions() -> None:
    """From probabilities alone: unused decisions at their most probable value, or summed out."""
    prediction, scores = random_scores(3, 0)
    present = torch.sigmoid(prediction.presence[0].double())
    labels = prediction.node_labels[0].double().softmax(1)
    logits = prediction.edges[0].double()
    edges = ((logits + logits.mT) / 2).softmax(0)
    matrix = np.zeros((3, 3), np.int64)
    matrix[0, 2] = matrix[2, 0] = 2
    assignment = scores.assign(np.array([True, False, True]), np.array([1, 1, 0]), matrix)
    used = present[0] * (1 - present[1]) * present[2] * labels[0, 1] * labels[2, 0] * edges[2, 0, 2]
    unused = labels[1].max() * edges[:, 0, 1].max() * edges[:, 1, 2].max()
    assert scores.log_probability(assignment) == pytest.approx(math.log(used), abs=1e-6)
    assert scores.score(assignment) == pytest.approx(math.log(used * unused), abs=1e-6)
    assert assignment.labels[1] == 0


def test_the_probabilities_of_all_graphs_sum_to_one() -> None:
    _, scores = random_scores(3, 1)
    assert sum(math.exp(scores.log_probability(one)) for one in everything(scores)) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_every_assignment_comes_once_and_in_order(seed: int) -> None:
    _, scores = random_scores(3, seed)
    expected = sorted(everything(scores), key=lambda one: one.regret)
    found = list(assignments(scores))
    np.testing.assert_allclose([one.regret for one in found], [one.regret for one in expected], atol=1e-9)
    assert {key(one) for one in found} == {key(one) for one in expected}
    for one in found[::37]:
        again = scores.assign(one.presence, one.labels, one.edges)
        assert again.regret == pytest.approx(one.regret, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_plain_decoder_comes_first_with_no_regret(seed: int) -> None:
    prediction, scores = random_scores(6, seed)
    first = next(assignments(scores))
    assert first.regret == 0
    assert [first.graph(TWO_LABELS)] == decode(prediction, TWO_LABELS)


def test_ties_are_broken_as_the_plain_decoder_does() -> None:
    prediction = Prediction(torch.zeros(1, 3), torch.zeros(1, 3, 3, 3), torch.zeros(1, 3, 2))
    first = next(assignments(slot_scores(prediction, TWO_LABELS)[0]))
    assert [first.graph(TWO_LABELS)] == decode(prediction, TWO_LABELS)


def test_certainty_is_finite() -> None:
    presence = torch.tensor([[torch.inf, -torch.inf, 1.0]])
    scores = slot_scores(Prediction(presence, torch.zeros(1, 3, 3, 3), torch.zeros(1, 3, 2)), TWO_LABELS)[0]
    assert np.isfinite(scores.presence).all()
    first = next(assignments(scores))
    assert first.presence.tolist() == [True, False, True]


@pytest.mark.parametrize("seed", range(4))
def test_plain_candidates_are_the_best_distinct_graphs(seed: int) -> None:
    prediction, scores = random_scores(3, seed)
    distinct: list[tuple[Assignment, float]] = []
    for one in sorted(everything(scores), key=lambda one: one.regret):
        graph = one.graph(TWO_LABELS)
        if not any(is_isomorphic(graph, other.graph(TWO_LABELS)) for other, _ in distinct):
            distinct.append((one, scores.score(one)))
        if len(distinct) == 12:
            break
    (result,) = plain_candidates(prediction, TWO_LABELS, 12)
    assert result.proved
    np.testing.assert_allclose(
        [candidate.log_score for candidate in result.candidates], [score for _, score in distinct[:12]]
    )
    for candidate, (one, _) in zip(result.candidates, distinct, strict=True):
        assert is_isomorphic(candidate.graph, one.graph(TWO_LABELS))
    assert sum(candidate.share for candidate in result.candidates) == pytest.approx(1.0)
    assert sum(candidate.probability for candidate in result.candidates) <= 1 + 1e-9


def test_all_candidates_together_have_probability_one() -> None:
    prediction, _ = random_scores(2, 0)
    (result,) = plain_candidates(prediction, TWO_LABELS, 1000)
    # The empty graph, two of one node, and of two nodes three kinds of pairs with three kinds of edge.
    assert len(result.candidates) == 1 + 2 + 3 * 3
    assert sum(candidate.probability for candidate in result.candidates) == pytest.approx(1.0)
    assert [candidate.share for candidate in result.candidates] == pytest.approx(
        [candidate.probability for candidate in result.candidates]
    )


def test_no_candidate_is_refused() -> None:
    prediction, _ = random_scores(2, 0)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        plain_candidates(prediction, TWO_LABELS, 0)


@pytest.mark.parametrize("looked_at", [1, 7, 40])
def test_candidates_are_those_of_the_assignments_looked_at(looked_at: int) -> None:
    prediction, scores = random_scores(4, 0)
    distinct: list[Assignment] = []
    for one in itertools.islice(assignments(scores), looked_at):
        if not any(is_isomorphic(one.graph(TWO_LABELS), other.graph(TWO_LABELS)) for other in distinct):
            distinct.append(one)
    (result,) = plain_candidates(prediction, TWO_LABELS, 1000, looked_at=looked_at)
    assert [each.log_score for each in result.candidates] == [scores.score(one) for one in distinct]
    assert result.proved  # a graph that is missing cannot score higher
    with pytest.raises(ValueError, match="at least 1 assignment must be looked at, got 0"):
        plain_candidates(prediction, TWO_LABELS, 5, looked_at=0)


def test_an_order_that_is_not_that_of_the_probabilities_is_explained() -> None:
    graph = Graph.build(["a"], [])

    def ranked(*probabilities: float, checked: bool | None = None) -> list[Candidate]:
        return [Candidate(graph, 0.0, each, 0.5, proved=True, checked=checked) for each in probabilities]

    assert order_in_words(ranked(0.5, 0.2, 0.2)) is None
    assert order_in_words([]) is None
    assert "adds up all ways" in (order_in_words(ranked(0.2, 0.5)) or "")
    assert "have the given fingerprint come first" in (order_in_words(ranked(0.2, 0.5, checked=True)) or "")
    assert "none has the given fingerprint" in (order_in_words(ranked(0.2, 0.5, checked=False)) or "")
