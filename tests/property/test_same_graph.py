"""Isomorphism of many random labelled pairs as networkx judges it; edit distances of larger graphs as a metric.

Pairs are drawn close to each other, so that neither answer is the usual one: a shuffled copy; one with two edges
exchanged, which keeps every degree; one with two labels exchanged; or another graph of the same family.
"""

import itertools
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from oracles import networkx_says

from graphwright.graphs import Graph, Vocabulary, find_isomorphism, is_isomorphic, refinement_hash
from graphwright.metrics import edit_distances
from unit.metrics.graph_pairs import edited, random_graph, region_graph

VOCABULARY = Vocabulary(("a", "b", "c"), ("none", "single", "double"))


def lattice(steps: list[tuple[int, int]]) -> nx.Graph:
    """The cells of a 4x4 torus, each joined with those these steps away."""
    cells = itertools.product(range(4), repeat=2)
    return nx.Graph(((i, j), ((i + di) % 4, (j + dj) % 4)) for i, j in cells for di, dj in steps)


def paley(prime: int) -> nx.Graph:
    squares = {x * x % prime for x in range(1, prime)}
    return nx.Graph((i, j) for i in range(prime) for j in range(i) if (i - j) % prime in squares)


STRONGLY_REGULAR = [
    [nx.petersen_graph()],
    [paley(13)],
    # Rook's graph and Shrikhande's: the two of (16, 6, 2, 2).
    [lattice([(0, 1), (0, 2), (1, 0), (2, 0)]), lattice([(0, 1), (1, 0), (1, 1)])],
    [nx.complete_multipartite_graph(3, 3, 3)],
    [nx.complement(nx.petersen_graph())],
]
"""Families of one set of parameters: (n, degree, common neighbours of joined nodes, and of others)."""


def labelled(rng: np.random.Generator, graph: nx.Graph) -> Graph:
    """With labels of nodes and edges that are all the same, all but one, or random."""
    size = len(graph)
    matrix = nx.to_numpy_array(graph, dtype=np.int64)
    nodes, edges = np.zeros(size, np.int64), np.ones((size, size), np.int64)
    kind = rng.integers(4)
    if kind == 1:
        nodes[:1] = 1
    elif kind == 2:
        nodes = rng.integers(0, 2, size)
    elif kind == 3:
        nodes = rng.integers(0, 3, size)
        edges = np.triu(rng.integers(1, 3, (size, size)), 1)
        edges += edges.T
    return Graph.from_matrix(nodes, matrix * edges, VOCABULARY)


def draw(rng: np.random.Generator, family: str) -> tuple[Graph, Graph]:
    """Two graphs of a family."""
    if family == "strongly regular":
        members = STRONGLY_REGULAR[rng.integers(len(STRONGLY_REGULAR))]
        first, second = (members[rng.integers(len(members))] for _ in range(2))
    elif family == "regular":
        size, degree = 2 * int(rng.integers(3, 8)), int(rng.integers(2, 5))
        first, second = (nx.random_regular_graph(degree, size, seed=int(rng.integers(2**31))) for _ in range(2))
    else:
        size, share = int(rng.integers(0, 13)), rng.uniform(0.1, 0.9)
        first, second = (nx.gnp_random_graph(size, share, seed=int(rng.integers(2**31))) for _ in range(2))
    return labelled(rng, first), labelled(rng, second)


def with_edges_exchanged(rng: np.random.Generator, graph: Graph) -> Graph:
    """Edges ij and kl made il and kj, where that can be: no node's degree changes."""
    matrix = graph.edge_matrix()
    for _ in range(20 if len(graph.edges) > 1 else 0):
        (i, j), (k, m) = graph.edges[rng.choice(len(graph.edges), 2, replace=False)]
        if len({i, j, k, m}) == 4 and not matrix[i, m] and not matrix[k, j]:
            for (a, b), (c, d) in (((i, j), (i, m)), ((k, m), (k, j))):
                matrix[c, d] = matrix[d, c] = matrix[a, b]
                matrix[a, b] = matrix[b, a] = 0
            break
    return Graph.from_matrix(graph.node_labels, matrix, graph.vocabulary)


def with_labels_exchanged(rng: np.random.Generator, graph: Graph) -> Graph:
    labels = graph.node_labels.copy()
    if graph.size > 1:
        pair = rng.choice(graph.size, 2, replace=False)
        labels[pair] = labels[pair[::-1]]
    return Graph.from_matrix(labels, graph.edge_matrix(), graph.vocabulary)


def pairs(seed: int, count: int) -> list[tuple[str, Graph, Graph]]:
    rng, drawn = np.random.default_rng(seed), []
    for at in range(count):
        family = ("any", "regular", "strongly regular")[at % 3]
        first, other = draw(rng, family)
        second = (
            first,
            with_edges_exchanged(rng, first),
            with_labels_exchanged(rng, first),
            other,
        )[rng.integers(4)]
        drawn.append((family, first, second.permute(rng.permutation(second.size))))
    return drawn


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_random_labelled_pairs_are_isomorphic_when_networkx_says_so(count):
    answers: Counter[tuple[str, bool]] = Counter()
    for family, first, second in pairs(count, count):
        match = find_isomorphism(first, second)
        assert (match is not None) == networkx_says(first, second), (first, second)
        if match is not None:
            assert second.permute(match) == first
            assert refinement_hash(second) == refinement_hash(first)
        answers[family, match is not None] += 1
    print(f"{count} pairs, as networkx says: {dict(answers)}")
    assert len(answers) == 6  # both answers in every family
    assert min(answers.values()) > 0.05 * count


def triples(seed: int, count: int) -> list[tuple[Graph, Graph, Graph]]:
    """Region graphs, random and regular ones, each with two that a few edits made of it, or of one another."""
    rng, drawn = np.random.default_rng(seed), []
    for at in range(count):
        first = (
            region_graph(rng, int(rng.integers(4, 15))),
            random_graph(rng, int(rng.integers(1, 9))),
            draw(rng, "regular")[0],
        )[at % 3]
        second = edited(rng, first, int(rng.integers(0, 4)))
        drawn.append((first, second, edited(rng, second, int(rng.integers(0, 4)))))
    return drawn


@pytest.mark.parametrize("count", [60, pytest.param(1_000, marks=pytest.mark.slow)])
def test_edit_distance_is_a_metric_on_proved_triples(count):
    drawn = triples(count, count)
    forth = [edit_distances([t[i] for t in drawn], [t[j] for t in drawn]) for i, j in ((0, 1), (1, 2), (0, 2))]
    back = edit_distances([t[1] for t in drawn], [t[0] for t in drawn])
    proved = 0
    for triple, first, second, across, reverse in zip(drawn, *forth, back, strict=True):
        if all(each.proved for each in (first, second, across, reverse)):
            assert first.distance == reverse.distance
            assert across.distance <= first.distance + second.distance
            proved += 1
        assert (first.distance == 0) == is_isomorphic(triple[0], triple[1])
        assert (across.distance == 0) == is_isomorphic(triple[0], triple[2])
    print(f"{proved} of {count} triples are proved")
    assert proved > 0.9 * count
