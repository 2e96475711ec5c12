"""Parts that graphs have in common."""

import numpy as np
import pytest

from graphwright.graphs import Graph
from graphwright.graphs.isomorphism import neighbourhoods
from tiny import random_batch


def path(names: str, edges: str = "") -> Graph:
    joined = [(at, at + 1) for at in range(len(names) - 1)]
    return Graph.build(list(names), joined, list(edges) if edges else None)


def test_a_path_has_its_ends_and_its_middle():
    assert len(neighbourhoods(path("aaaaa"), 0)) == 1
    assert len(neighbourhoods(path("aaaaa"), 1)) == 1 + 2
    assert len(neighbourhoods(path("aaaaa"), 2)) == 1 + 2 + 3
    assert len(neighbourhoods(path("abaaa"), 0)) == 2


def test_graphs_share_the_parts_that_are_alike_and_no_others():
    longer, shorter = neighbourhoods(path("aaaaab"), 1), neighbourhoods(path("aaaa"), 1)
    assert shorter < longer
    assert not neighbourhoods(path("cc"), 2) & longer
    assert neighbourhoods(path("aa", "x"), 1) != neighbourhoods(path("aa", "y"), 1)
    assert neighbourhoods(path("aa", "x"), 0) == neighbourhoods(path("aa", "y"), 0)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_nodes_does_not_count(seed):
    generator = np.random.default_rng(seed)
    graph = random_batch(generator, [7], 7)[0]
    assert neighbourhoods(graph.permute(generator.permutation(7)), 2) == neighbourhoods(graph, 2)


def test_a_graph_without_nodes_has_none():
    assert neighbourhoods(Graph.build([], []), 2) == set()
