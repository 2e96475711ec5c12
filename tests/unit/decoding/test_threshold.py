"""Hard decisions from logits."""

import pytest
import torch

from graphwright.decoding import Slots, decode, harden
from graphwright.graphs import Graph, Prediction, Vocabulary

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
