"""One graph: built from lists and matrices, permuted, compared, refused."""

import copy
import pickle
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from graphwright.graphs import Graph, Vocabulary

ATOMS = Vocabulary(("C", "N", "O"), ("none", "single", "double"))


@pytest.fixture
def formamide() -> Graph:
    """O=C-N, and a lone C."""
    return Graph.build(["O", "C", "N", "C"], [(1, 0), (2, 1)], ["double", "single"], ATOMS)


def test_an_edge_list_becomes_codes_with_each_pair_sorted(formamide):
    assert formamide.node_labels.tolist() == [2, 0, 1, 0]
    assert formamide.edges.tolist() == [[0, 1], [1, 2]]
    assert formamide.edge_labels.tolist() == [2, 1]


def test_edge_labels_follow_their_edges_when_those_are_sorted():
    graph = Graph.build(3, [(2, 1), (1, 0), (2, 0)], ["c", "a", "b"])
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert graph.edge_names == ["a", "b", "c"]


def test_names_are_those_it_was_built_from(formamide):
    assert formamide.node_names == ["O", "C", "N", "C"]
    assert formamide.edge_names == ["double", "single"]


def test_a_graph_built_again_from_its_own_edge_list_is_the_same(formamide):
    again = Graph.build(formamide.node_names, formamide.edges.tolist(), formamide.edge_names, formamide.vocabulary)
    assert again == formamide
    assert again.vocabulary == formamide.vocabulary


@pytest.mark.parametrize("size", [0, 1, 3, np.int64(3)])
def test_a_number_of_nodes_makes_isolated_unlabelled_nodes(size):
    graph = Graph.build(size)
    assert graph.size == size
    assert graph.node_names == ["node"] * int(size)
    assert graph.edges.shape == (0, 2)


def test_labels_may_come_from_a_generator():
    graph = Graph.build((name for name in "CO"), [(0, 1)], (name for name in ["single"]))
    assert graph.node_names == ["C", "O"]
    assert graph.edge_names == ["single"]


def test_integral_floats_are_integers():
    assert Graph.build(3, np.array([[0.0, 2.0]], np.float16)).edges.tolist() == [[0, 2]]


def test_the_matrix_is_symmetric_and_holds_the_edge_codes(formamide):
    want = [[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert formamide.edge_matrix().tolist() == want


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_a_complete_graph_goes_through_its_matrix(size):
    matrix = np.ones((size, size), int) - np.eye(size, dtype=int)
    graph = Graph.from_matrix([0] * size, matrix)
    assert len(graph.edges) == size * (size - 1) // 2
    assert np.array_equal(graph.edge_matrix(), matrix)


def test_a_matrix_gives_back_the_graph_it_came_from(formamide):
    assert Graph.from_matrix(formamide.node_labels, formamide.edge_matrix(), ATOMS) == formamide


def test_an_empty_list_is_the_matrix_of_no_nodes():
    assert Graph.from_matrix([], []) == Graph.build(0)


def test_permuting_moves_node_order_i_to_position_i(formamide):
    moved = formamide.permute([2, 0, 3, 1])
    assert moved.node_names == ["N", "O", "C", "C"]
    assert moved.edges.tolist() == [[0, 3], [1, 3]]
    assert moved.edge_names == ["single", "double"]
    assert moved.vocabulary == ATOMS


def test_permuting_the_matrix_is_permuting_the_graph(formamide):
    order = [3, 1, 0, 2]
    assert np.array_equal(formamide.permute(order).edge_matrix(), formamide.edge_matrix()[np.ix_(order, order)])


def test_the_inverse_permutation_restores_the_graph(formamide):
    order = np.array([2, 0, 3, 1])
    assert formamide.permute(order) != formamide
    assert formamide.permute(order).permute(np.argsort(order)) == formamide


@pytest.mark.parametrize("order", [[0, 1, 2], [0, 1, 2, 2], [1, 2, 3, 4], [-1, 0, 1, 2], [0.5, 1, 2, 3], []])
def test_what_is_not_a_permutation_is_refused(formamide, order):
    with pytest.raises(ValueError, match="order"):
        formamide.permute(order)


def test_the_error_says_what_a_permutation_is(formamide):
    with pytest.raises(ValueError, match=r"^order is not a permutation of 0\.\.3$"):
        formamide.permute([0, 1, 2, 2])


def test_a_subgraph_keeps_the_order_asked_for(formamide):
    part = formamide.subgraph([1, 3, 0])
    assert part.node_names == ["C", "C", "O"]
    assert part.edges.tolist() == [[0, 2]]
    assert part.edge_names == ["double"]
    assert formamide.subgraph([]) == Graph.build(0)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [([0, 4], "nodes[1] is 4, expected 0..3"), ([-1], "nodes[0] is -1"), ([0, 0], "a node twice: [0, 0]")],
)
def test_a_subgraph_of_nodes_that_are_not_there_is_refused(formamide, nodes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        formamide.subgraph(nodes)


def test_equality_is_by_name_and_not_by_code(formamide):
    other = Vocabulary(("O", "N", "C"), ("none", "double", "single"))
    again = formamide.with_vocabulary(other)
    assert again.node_labels.tolist() != formamide.node_labels.tolist()
    assert again == formamide
    assert hash(again) == hash(formamide)


@pytest.mark.parametrize(
    "other",
    [
        Graph.build(["O", "C", "N"], [(1, 0), (2, 1)], ["double", "single"], ATOMS),
        Graph.build(["O", "C", "C", "C"], [(1, 0), (2, 1)], ["double", "single"], ATOMS),
        Graph.build(["O", "C", "N", "C"], [(1, 0), (2, 1)], ["single", "single"], ATOMS),
        Graph.build(["O", "C", "N", "C"], [(1, 0), (2, 0)], ["double", "single"], ATOMS),
        Graph.build(["O", "C", "N", "C"], [(1, 0)], ["double"], ATOMS),
        "O=CN",
    ],
    ids=["size", "node label", "edge label", "edge end", "edge missing", "another type"],
)
def test_any_difference_makes_graphs_unequal(formamide, other):
    assert formamide != other


def test_another_vocabulary_must_know_every_name(formamide):
    with pytest.raises(ValueError, match="node label 2 is 'N'"):
        formamide.with_vocabulary(Vocabulary(("C", "O"), ATOMS.edges))


@pytest.mark.parametrize("copied", [lambda g: g, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_the_arrays_are_read_only_also_in_copies(formamide, copied):
    graph = copied(formamide)
    assert graph == formamide
    for array in (graph.node_labels, graph.edges, graph.edge_labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_the_fields_of_a_graph_cannot_be_replaced(formamide):
    with pytest.raises(FrozenInstanceError):
        formamide.edges = np.zeros((0, 2), np.int64)


def test_a_graph_does_not_share_memory_with_what_it_was_built_from():
    labels, edges, codes = np.zeros(2, np.int64), np.array([[0, 1]]), np.array([1])
    graph = Graph(labels, edges, codes)
    labels[0], edges[0, 0], codes[0] = 7, 1, 9
    assert graph == Graph.build(2, [(0, 1)])


def test_a_graph_says_how_large_it_is(formamide):
    assert repr(formamide) == "Graph(4 nodes, 2 edges)"


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 3)], "edges[0, 1] is 3, expected 0..2"),
        ([(0, 1), (-1, 2)], "edges[1, 0] is -1"),
        ([(0, 1), (2, 2)], "edges[1] joins node 2 to itself"),
        ([(0, 1), (1, 2), (1, 0)], "edges names the pair (0, 1) twice"),
        ([(0, 1, 2)], "edges must have shape (-1, 2)"),
        ([0, 1], "edges must have shape (-1, 2)"),
        ([(0, 1), (2,)], "edges must be an array of shape (-1, 2)"),
        (np.zeros((0, 5)), "edges must have shape (-1, 2)"),
        ([(0, 1), (0, float("nan"))], "edges[1, 1] is nan"),
        ([(0, float("inf"))], "edges[0, 1] is inf"),
        ([(0, 1.5)], "edges[0, 1] is 1.5"),
        ([(0, 1e300)], "edges[0, 1] is 1e+300"),
        (np.array([[0, 2**64 - 1]], np.uint64), "edges[0, 1] is 18446744073709551615"),
        ([("a", "b")], "edges must hold integers"),
        ([(0, 1j)], "edges must hold integers"),
        ([(True, False)], "edges must hold integers, got bool"),
        ([(0, 10**30)], "edges must hold integers, got object"),
        (None, "edges must have shape"),
    ],
)
def test_malformed_edges_are_refused_by_position(edges, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Graph.build(3, edges)


@pytest.mark.parametrize("labels", [-1, np.int64(-1), 2.0, float("nan"), None])
def test_malformed_numbers_of_nodes_are_refused(labels):
    with pytest.raises(ValueError, match="labels must be names or a number of nodes"):
        Graph.build(labels)


@pytest.mark.parametrize("labels", [[], ["a"], ["a", "b", "c"]])
def test_each_edge_needs_one_label(labels):
    with pytest.raises(ValueError, match=f"edge_labels has {len(labels)} entries for 2 edges"):
        Graph.build(3, [(0, 1), (1, 2)], labels)


def test_labels_may_only_be_left_out_where_the_vocabulary_offers_no_choice():
    with pytest.raises(ValueError, match=r"^labels must be given"):
        Graph.build(2, vocabulary=ATOMS)
    with pytest.raises(ValueError, match=r"^edge_labels must be given"):
        Graph.build("CC", [(0, 1)], vocabulary=ATOMS)
    assert Graph.build(0, vocabulary=ATOMS).size == 0
    assert Graph.build("CC", vocabulary=ATOMS).size == 2
    assert Graph.build("CN", [(0, 1)], vocabulary=Vocabulary(("C", "N"))).edge_names == ["edge"]


@pytest.mark.parametrize(
    ("labels", "matrix", "message"),
    [
        ([0, 0], [[0, 1], [0, 0]], "edge_matrix is not symmetric: [0, 1] is 1, [1, 0] is 0"),
        ([0, 0], [[0, 1], [2, 0]], "edge_matrix is not symmetric: [0, 1] is 1, [1, 0] is 2"),
        ([0, 0], [[0, 0], [0, 1]], "edge_matrix joins node 1 to itself"),
        ([0, 0], [[0, 3], [3, 0]], "edge_matrix[0, 1] is 3, expected 0..2"),
        ([0, 0], [[0, -1], [-1, 0]], "edge_matrix[0, 1] is -1"),
        ([0, 0], [[0, 0.5], [0.5, 0]], "edge_matrix[0, 1] is 0.5"),
        ([0, 0], [[0, float("nan")], [float("nan"), 0]], "edge_matrix[0, 1] is nan"),
        ([0, 0], [[False, True], [True, False]], "edge_matrix must hold integers, got bool"),
        ([0, 0], [], "edge_matrix must have shape (2, 2)"),
        ([0], [], "edge_matrix must have shape (1, 1)"),
        ([0, 0], np.zeros((3, 3)), "edge_matrix must have shape (2, 2)"),
        ([0, 3], np.zeros((2, 2)), "node_labels[1] is 3, expected 0..2"),
        ([[0, 0]], np.zeros((2, 2)), "node_labels must have shape (-1,)"),
    ],
)
def test_malformed_matrices_are_refused_by_position(labels, matrix, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Graph.from_matrix(labels, matrix, ATOMS)


@pytest.mark.parametrize(
    ("labels", "codes", "message"),
    [
        ([0, 1], [1], "node_labels[1] is 1, expected 0..0"),
        ([0, -1], [1], "node_labels[1] is -1"),
        ([0, 0], [0], "edge_labels[0] is 0, expected 1..1"),
        ([0, 0], [2], "edge_labels[0] is 2, expected 1..1"),
        ([0, 0], [[1]], "edge_labels must have shape (-1,)"),
    ],
)
def test_codes_outside_the_vocabulary_are_refused_by_position(labels, codes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Graph(labels, [[0, 1]], codes)
