"""Graphs at random: what must hold for every one, and agreement with networkx."""

import json

import networkx as nx
import numpy as np
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import networkx_says

from graphwright.graphs import (
    Graph,
    GraphBatch,
    Vocabulary,
    find_isomorphism,
    from_json,
    from_networkx,
    is_isomorphic,
    refinement_hash,
    to_json,
    to_networkx,
)

VOCABULARY = Vocabulary(("C", "N", "O"), ("none", "single", "double"))
many = settings(deadline=None, max_examples=200)
some = settings(deadline=None, max_examples=50)


@st.composite
def graphs(draw: st.DrawFn, max_size: int = 7, labels: int = 3, classes: int = 3) -> Graph:
    """Graphs of few nodes and few labels, so that chance makes symmetric ones and equal ones."""
    size = draw(st.integers(0, max_size))
    count = size * (size - 1) // 2
    nodes = draw(st.lists(st.integers(0, labels - 1), min_size=size, max_size=size))
    codes = draw(st.lists(st.integers(0, classes - 1), min_size=count, max_size=count))
    matrix = np.zeros((size, size), np.int64)
    matrix[np.triu_indices(size, 1)] = codes
    return Graph.from_matrix(nodes, matrix + matrix.T, VOCABULARY)


@st.composite
def permuted(draw: st.DrawFn, **options: int) -> tuple[Graph, np.ndarray]:
    graph = draw(graphs(**options))
    return graph, np.array(draw(st.permutations(range(graph.size))), np.int64)


@st.composite
def regular(draw: st.DrawFn) -> Graph:
    """Every node has the same degree: refinement alone sees nothing."""
    size = draw(st.sampled_from([6, 8, 10]))
    degree = draw(st.sampled_from([2, 3, 4]))
    return from_networkx(nx.random_regular_graph(degree, size, seed=draw(st.integers(0, 2**16))))


def check_against_networkx(first: Graph, second: Graph) -> None:
    match = find_isomorphism(first, second)
    assert (match is not None) == networkx_says(first, second)
    if match is not None:
        assert second.permute(match) == first
        assert refinement_hash(second) == refinement_hash(first)


@many
@given(permuted())
def test_a_permuted_copy_is_isomorphic_and_the_match_undoes_the_permutation(pair):
    graph, order = pair
    copy = graph.permute(order)
    match = find_isomorphism(graph, copy)
    assert match is not None
    assert copy.permute(match) == graph
    assert refinement_hash(copy) == refinement_hash(graph)


@many
@given(graphs(max_size=4, labels=1, classes=2), graphs(max_size=4, labels=1, classes=2))
def test_small_unlabelled_graphs_are_isomorphic_when_networkx_says_so(first, second):
    check_against_networkx(first, second)


@many
@given(graphs(max_size=3, labels=2), graphs(max_size=3, labels=2))
def test_small_labelled_graphs_are_isomorphic_when_networkx_says_so(first, second):
    check_against_networkx(first, second)


@many
@given(permuted(labels=2), st.data())
def test_one_changed_pair_is_judged_as_networkx_judges_it(pair, data):
    graph, order = pair
    assume(graph.size > 1)
    i, j = data.draw(st.sampled_from([(i, j) for j in range(graph.size) for i in range(j)]))
    matrix = graph.edge_matrix()
    matrix[i, j] = matrix[j, i] = (matrix[i, j] + data.draw(st.sampled_from([1, 2]))) % 3
    changed = Graph.from_matrix(graph.node_labels, matrix, VOCABULARY)
    assert not is_isomorphic(graph, changed) or len(graph.edges) == len(changed.edges)
    check_against_networkx(graph, changed.permute(order))


@many
@given(permuted(labels=2, classes=2), st.data())
def test_one_moved_edge_is_judged_as_networkx_judges_it(pair, data):
    graph, order = pair
    assume(len(graph.edges) > 0)
    free = np.argwhere(np.triu(graph.edge_matrix() == 0, 1)).tolist()
    assume(free)
    edges = graph.edges.tolist()
    edges[data.draw(st.integers(0, len(edges) - 1))] = data.draw(st.sampled_from(free))
    moved = Graph.build(graph.node_names, edges, graph.edge_names, VOCABULARY)
    check_against_networkx(graph, moved.permute(order))


@many
@given(permuted(labels=3), st.data())
def test_two_swapped_labels_are_judged_as_networkx_judges_it(pair, data):
    graph, order = pair
    assume(graph.size > 1)
    i, j = data.draw(st.lists(st.integers(0, graph.size - 1), min_size=2, max_size=2, unique=True))
    names = graph.node_names
    names[i], names[j] = names[j], names[i]
    check_against_networkx(graph, Graph.build(names, graph.edges, graph.edge_names, VOCABULARY).permute(order))


@many
@given(regular(), regular())
def test_regular_graphs_are_isomorphic_when_networkx_says_so(first, second):
    check_against_networkx(first, second)


@some
@given(regular(), st.integers(2, 6), st.randoms(use_true_random=False))
def test_many_copies_of_one_part_are_matched_in_any_order(part, copies, random):
    union = from_networkx(nx.disjoint_union_all([to_networkx(part)] * copies))
    order = random.sample(range(union.size), union.size)
    match = find_isomorphism(union, union.permute(order))
    assert match is not None
    assert union.permute(order).permute(match) == union


@many
@given(graphs())
def test_isomorphism_of_complements_is_isomorphism(graph):
    """Cutting along missing edges and cutting along edges must come to the same."""
    complement = from_networkx(nx.complement(to_networkx(graph)))
    copy = complement.permute(np.arange(complement.size)[::-1])
    match = find_isomorphism(complement, copy)
    assert match is not None
    assert copy.permute(match) == complement


@many
@given(graphs())
def test_networkx_and_json_text_give_back_the_graph(graph):
    written = json.dumps(to_json(graph))
    assert from_json(json.loads(written), VOCABULARY) == graph
    assert from_json(json.loads(written)) == graph
    assert from_networkx(to_networkx(graph), VOCABULARY) == graph
    assert nx.node_link_data(to_networkx(graph), edges="edges") == to_json(graph)


@many
@given(graphs())
def test_edge_lists_and_matrices_give_back_the_graph(graph):
    built = Graph.build(graph.node_names, graph.edges.tolist(), graph.edge_names, VOCABULARY)
    assert built == graph
    assert Graph.from_matrix(graph.node_labels, graph.edge_matrix(), VOCABULARY) == graph


@many
@given(permuted())
def test_permuting_moves_labels_and_matrix_together(pair):
    graph, order = pair
    moved = graph.permute(order)
    assert np.array_equal(moved.node_labels, graph.node_labels[order])
    assert np.array_equal(moved.edge_matrix(), graph.edge_matrix()[np.ix_(order, order)])
    assert moved.permute(np.argsort(order)) == graph
    assert graph.subgraph(order) == moved


@some
@given(st.lists(graphs(), max_size=4), st.integers(0, 3))
def test_batches_give_back_their_graphs_padded_or_not(many_graphs, extra):
    batch = GraphBatch.collate(many_graphs, vocabulary=VOCABULARY)
    padded = batch.pad(batch.capacity + extra)
    assert batch.graphs() == padded.graphs() == padded.unpad().graphs() == many_graphs
    assert padded.unpad().capacity == batch.capacity
    assert batch.sizes.tolist() == [graph.size for graph in many_graphs]


@some
@given(st.lists(permuted(), min_size=1, max_size=4))
def test_a_batch_permutes_as_its_graphs_do(pairs):
    batch = GraphBatch.collate([graph for graph, _ in pairs])
    order = torch.arange(batch.capacity).repeat(len(batch), 1)
    for row, (graph, own) in zip(order, pairs, strict=True):
        row[: graph.size] = torch.from_numpy(own)
    moved = batch.permute(order)
    assert moved.graphs() == [graph.permute(own) for graph, own in pairs]
    rows = order[:, :, None].expand(-1, -1, 3)
    assert torch.equal(moved.diffused_labels(), batch.diffused_labels().gather(1, rows))
