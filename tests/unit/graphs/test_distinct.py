"""Graphs told apart up to the order of their nodes."""

from graphwright.graphs.isomorphism import DistinctGraphs
from tiny import complete, cycle, from_edges


def test_a_graph_has_one_place_however_its_nodes_are_ordered():
    found = DistinctGraphs()
    path = from_edges(4, [(0, 1), (1, 2), (2, 3)])
    assert [found.add(graph) for graph in (path, cycle(4), path.permute([2, 0, 3, 1]), complete(4))] == [
        0,
        1,
        0,
        2,
    ]
    assert found.add(cycle(4).permute([1, 3, 0, 2])) == 1
    assert found.graphs == [path, cycle(4), complete(4)]


def test_graphs_that_refinement_confuses_are_kept_apart():
    """Two triangles and a hexagon: every node has two like neighbours."""
    triangles = from_edges(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])
    found = DistinctGraphs()
    assert [found.add(graph) for graph in (triangles, cycle(6), triangles)] == [0, 1, 0]


def test_looking_for_a_graph_does_not_add_it():
    found = DistinctGraphs()
    found.add(cycle(5))
    assert found.find(cycle(5).permute([4, 2, 0, 1, 3])) == 0
    assert found.find(complete(5)) is None
    assert len(found.graphs) == 1
