"""What must hold of the metrics for every pair of graphs."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphwright.decoding import Slots
from graphwright.graphs import Graph, GraphBatch, Vocabulary, is_isomorphic
from graphwright.metrics import (
    AlignedSlots,
    aligned_errors,
    edit_distance,
    evaluate_graphs,
    is_isomorphic_skeleton,
)

VOCABULARY = Vocabulary(("C", "N"), ("none", "single", "double"))
many = settings(deadline=None, max_examples=150)


@st.composite
def graphs(draw: st.DrawFn, max_size: int = 6) -> Graph:
    """Few labels, so that chance makes equal and symmetric graphs."""
    size = draw(st.integers(0, max_size))
    labels = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    return Graph.from_matrix(labels, draw(symmetric(size)), VOCABULARY)


@st.composite
def symmetric(draw: st.DrawFn, size: int) -> np.ndarray:
    count = size * (size - 1) // 2
    matrix = np.zeros((size, size), np.int64)
    matrix[np.triu_indices(size, 1)] = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    return matrix + matrix.T


@st.composite
def shuffled(draw: st.DrawFn, graph: Graph) -> Graph:
    return graph.permute(draw(st.permutations(range(graph.size))))


@st.composite
def aligned_pairs(draw: st.DrawFn, capacity: int = 5) -> tuple[AlignedSlots, Graph]:
    """A target and slots near it: what the target says at random positions, with some of it changed."""
    target = draw(graphs(max_size=capacity))
    batch = GraphBatch.collate([target], capacity)
    positions = torch.tensor(draw(st.permutations(range(capacity))))
    moved = torch.argsort(positions)
    presence, labels = batch.mask[0, moved], batch.node_labels[0, moved]
    edges = batch.edge_labels[0][moved][:, moved]
    for _ in range(draw(st.integers(0, 4))):
        i, j = draw(st.integers(0, capacity - 1)), draw(st.integers(0, capacity - 1))
        kind = draw(st.sampled_from(["presence", "label", "edge"]))
        if kind == "presence":
            presence[i] = ~presence[i]
        elif kind == "label":
            labels[i] = 1 - labels[i]
        elif i != j:
            edges[i, j] = edges[j, i] = draw(st.integers(0, 2))
    return AlignedSlots(Slots(presence[None], labels[None], edges[None]), positions[None]), target


@many
@given(st.data(), graphs(), graphs())
def test_edit_distance_is_a_metric_up_to_isomorphism(data: st.DataObject, first: Graph, second: Graph) -> None:
    forth, back = edit_distance(first, second), edit_distance(second, first)
    assert forth.proved
    assert forth.distance == back.distance
    assert (forth.distance == 0) == is_isomorphic(first, second)
    assert edit_distance(data.draw(shuffled(first)), data.draw(shuffled(second))).distance == forth.distance
    third = data.draw(graphs())
    assert forth.distance <= edit_distance(first, third).distance + edit_distance(third, second).distance


@many
@given(st.data(), graphs(), st.integers(0, 4))
def test_k_changed_edges_are_at_most_k_edits(data: st.DataObject, graph: Graph, count: int) -> None:
    matrix = graph.edge_matrix()
    for _ in range(count if graph.size > 1 else 0):
        i, j = data.draw(st.permutations(range(graph.size)))[:2]
        matrix[i, j] = matrix[j, i] = data.draw(st.integers(0, 2))
    changed = Graph.from_matrix(graph.node_labels, matrix, VOCABULARY)
    assert edit_distance(graph, data.draw(shuffled(changed))).distance <= count


@many
@given(graphs(), graphs())
def test_edit_distance_lies_between_what_sizes_ask_and_building_anew(first: Graph, second: Graph) -> None:
    distance = edit_distance(first, second).distance
    assert distance >= abs(first.size - second.size)
    assert distance >= abs(len(first.edges) - len(second.edges))
    assert distance <= max(first.size, second.size) + len(first.edges) + len(second.edges)


@many
@given(graphs(), graphs())
def test_isomorphic_graphs_have_isomorphic_skeletons(first: Graph, second: Graph) -> None:
    assert is_isomorphic_skeleton(first, second) or not is_isomorphic(first, second)


@many
@given(aligned_pairs())
def test_aligned_figures_are_never_better_than_true_ones(pair: tuple[AlignedSlots, Graph]) -> None:
    """The convention: isomorphic >= aligned_exact always, edit <= aligned_edit + unseen always.

    So edit <= aligned_edit where every slot is rightly present or absent. Where one is not, the paper's count
    leaves out the edges between it and the others, and then edit may be the larger.
    """
    aligned, target = pair
    (predicted,) = aligned.slots.graphs(VOCABULARY)
    errors = aligned_errors(aligned, GraphBatch.collate([target], aligned.slots.capacity))
    report = evaluate_graphs([predicted], [target], aligned)
    assert report.aligned_edit is not None
    assert report.aligned_edit.tolist() == errors.edit.tolist()
    assert report.isomorphic[0] >= errors.exact[0].item()
    assert report.edit[0] <= errors.edit[0].item() + errors.unseen[0].item()
    if errors.presence[0] == 0:
        assert errors.unseen[0] == 0
        assert report.edit[0] <= report.aligned_edit[0]


@many
@given(graphs(), graphs())
def test_shares_are_shares_and_agree_with_the_distance(first: Graph, second: Graph) -> None:
    report = evaluate_graphs([first], [second])
    for share in (report.node_accuracy, report.edge_precision, report.edge_recall):
        assert 0 <= share[0] <= 1
    perfect = report.node_accuracy[0] == report.edge_precision[0] == report.edge_recall[0] == 1
    assert (perfect and report.size_correct[0]) == report.isomorphic[0]
    wrong_nodes = max(first.size, second.size) - report.node_accuracy[0] * second.size
    assert wrong_nodes <= report.edit[0] + 1e-9
