"""To and from networkx and node-link JSON."""

import json
import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from graphwright.graphs import Attribute, Graph, Vocabulary, from_json, from_networkx, to_json, to_networkx

GOLDEN = Path(__file__).parents[2] / "golden" / "graph.json"
ATOMS = Vocabulary(("C", "N", "O"), ("none", "double", "single"))
FORMAMIDE = Graph.build(["O", "C", "N", "C"], [(1, 0), (2, 1)], ["double", "single"], ATOMS)
GRAPHS = {
    "labelled": FORMAMIDE,
    "zero nodes": Graph.build(0),
    "one node": Graph.build(1),
    "isolated": Graph.build("CCO"),
    "complete": Graph.build(4, [(i, j) for i in range(4) for j in range(i)]),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


def test_the_golden_file_holds_what_is_written():
    assert json.loads(GOLDEN.read_text()) == to_json(FORMAMIDE)


def test_the_golden_file_is_read_as_the_graph_it_was_written_from():
    graph = from_json(json.loads(GOLDEN.read_text()))
    assert graph == FORMAMIDE
    assert graph.vocabulary == ATOMS


@every_graph
def test_json_text_gives_back_the_graph(graph):
    assert from_json(json.loads(json.dumps(to_json(graph)))) == graph


@every_graph
def test_networkx_gives_back_the_graph(graph):
    assert from_networkx(to_networkx(graph)) == graph


@every_graph
def test_what_is_written_is_what_networkx_writes(graph):
    assert to_json(graph) == nx.node_link_data(to_networkx(graph), edges="edges")


@every_graph
def test_networkx_reads_what_is_written(graph):
    read = nx.node_link_graph(to_json(graph), edges="edges")
    assert nx.utils.graphs_equal(read, to_networkx(graph))


@pytest.mark.parametrize("field", ["edges", "links"])
@every_graph
def test_what_networkx_writes_is_read_under_either_name_of_the_edges(graph, field):
    assert from_json(nx.node_link_data(to_networkx(graph), edges=field)) == graph


def test_networkx_carries_names_on_nodes_and_edges():
    graph = to_networkx(FORMAMIDE)
    assert dict(graph.nodes(data="label")) == {0: "O", 1: "C", 2: "N", 3: "C"}
    assert set(graph.edges(data="label")) == {(0, 1, "double"), (1, 2, "single")}


def test_networkx_nodes_keep_their_order_whatever_they_are_called():
    source = nx.Graph()
    source.add_node("z", label="O")
    source.add_node(("a", 1), label="C")
    source.add_node(7, label="N")
    source.add_edge(7, "z", label="single")
    graph = from_networkx(source)
    assert graph.node_names == ["O", "C", "N"]
    assert graph.edges.tolist() == [[0, 2]]


def test_graphs_without_labels_get_the_default_vocabulary():
    graph = from_networkx(nx.petersen_graph())
    assert graph.vocabulary == Vocabulary()
    assert (graph.size, len(graph.edges)) == (10, 15)


def test_numbers_as_labels_become_their_names():
    source = nx.Graph()
    source.add_nodes_from([(0, {"label": 6}), (1, {"label": np.int64(7)})])
    assert from_networkx(source).node_names == ["6", "7"]


@pytest.mark.parametrize(
    "read", [from_json, lambda data, v: from_networkx(nx.node_link_graph(data, edges="edges"), v)]
)
def test_a_given_vocabulary_is_kept_and_must_know_the_names(read):
    wide = Vocabulary(("N", "C", "S", "O"), ("none", "single", "double", "triple"))
    assert read(to_json(FORMAMIDE), wide).vocabulary == wide
    assert read(to_json(FORMAMIDE), wide) == FORMAMIDE
    with pytest.raises(ValueError, match="node label 0 is 'O'"):
        read(to_json(FORMAMIDE), Vocabulary(("C", "N"), ATOMS.edges))
    with pytest.raises(ValueError, match="edge label 1 is 'single'"):
        read(to_json(FORMAMIDE), Vocabulary(ATOMS.nodes, ("none", "double")))


def test_ids_that_are_arrays_are_read_as_networkx_reads_them():
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(2, 3))
    data = json.loads(json.dumps(nx.node_link_data(nx.grid_2d_graph(2, 3), edges="edges")))
    assert data["nodes"][0]["id"] == [0, 0]
    assert from_json(data) == from_networkx(grid)


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_directed_and_parallel_edges_are_refused(kind):
    source = kind([(0, 1)])
    for read, given in ((from_networkx, source), (from_json, nx.node_link_data(source, edges="edges"))):
        with pytest.raises(ValueError, match="only undirected graphs without parallel edges"):
            read(given)


def test_a_self_loop_is_refused():
    with pytest.raises(ValueError, match=r"edges\[1\] joins node 1 to itself"):
        from_networkx(nx.Graph([(0, 1), (1, 1)]))


@pytest.mark.parametrize("label", [float("nan"), [1], {"a": 1}, object()])
def test_labels_that_are_no_names_are_refused_by_position(label):
    source = nx.Graph()
    source.add_nodes_from([(0, {"label": "C"}), (1, {"label": label})])
    with pytest.raises(ValueError, match=r"nodes\[1\].label must be a string or a number"):
        from_networkx(source)


NODES = [{"id": "a"}, {"id": "b"}]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{}", "node-link data must be an object, got str"),
        ([], "node-link data must be an object, got list"),
        (None, "node-link data must be an object, got NoneType"),
        ({}, "node-link data must have a list 'nodes'"),
        ({"nodes": NODES}, "node-link data must have a list 'edges'"),
        ({"nodes": {"a": 1}, "edges": []}, "node-link data must have a list 'nodes'"),
        ({"nodes": NODES, "links": "ab"}, "node-link data must have a list 'links'"),
        ({"nodes": [*NODES, 3], "edges": []}, "nodes[2] must be an object, got int"),
        ({"nodes": NODES, "edges": [["a", "b"]]}, "edges[0] must be an object, got list"),
        ({"nodes": [{"id": 0}, {}], "edges": []}, "nodes[1] has no 'id'"),
        ({"nodes": [{"id": None}], "edges": []}, "nodes[0].id must be a string or a number, got None"),
        ({"nodes": [{"id": float("nan")}], "edges": []}, "nodes[0].id must be a string or a number"),
        ({"nodes": [{"id": [0, {}]}], "edges": []}, "nodes[0].id must be a string or a number"),
        ({"nodes": [*NODES, {"id": "a"}], "edges": []}, "nodes[2] repeats the id 'a'"),
        ({"nodes": NODES, "edges": [{"source": "a"}]}, "edges[0] has no 'target'"),
        ({"nodes": NODES, "links": [{"target": "a"}]}, "links[0] has no 'source'"),
        ({"nodes": NODES, "edges": [{"source": "a", "target": "c"}]}, "edges[0] names node 'c'"),
        ({"nodes": NODES, "edges": [{"source": "a", "target": "a"}]}, "edges[0] joins node 0 to itself"),
        (
            {"nodes": NODES, "edges": [{"source": "a", "target": "b"}, {"source": "b", "target": "a"}]},
            "edges names the pair (0, 1) twice",
        ),
        ({"nodes": [{"id": 0, "label": "C"}, {"id": 1}], "edges": []}, "nodes[1] has no label, others have"),
        ({"nodes": [{"id": 0, "label": []}], "edges": []}, "nodes[0].label must be a string or a number"),
        (
            {
                "nodes": [*NODES, {"id": "c"}],
                "edges": [{"source": "a", "target": "b"}, {"source": "b", "target": "c", "label": "x"}],
            },
            "edges[0] has no label, others have",
        ),
        (
            {"nodes": NODES, "edges": [{"source": "a", "target": "b", "label": "none"}]},
            "edge label 0 is 'none', which means that there is no edge",
        ),
    ],
)
def test_wrong_json_is_refused_by_place(data, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        from_json(data)


PLACED = Graph.build(
    ["a", "b"],
    [(0, 1)],
    None,
    Vocabulary(("a", "b"), attributes=(Attribute("pos[0]"), Attribute("pos[1]"), Attribute("size"))),
    [[0.0, 1.0, 3.0], [2.0, 3.0, 4.5]],
)


def test_attributes_are_further_fields_of_the_nodes():
    assert to_json(PLACED)["nodes"] == [
        {"id": 0, "label": "a", "pos": [0.0, 1.0], "size": 3.0},
        {"id": 1, "label": "b", "pos": [2.0, 3.0], "size": 4.5},
    ]
    assert to_networkx(PLACED).nodes[1] == {"label": "b", "pos": [2.0, 3.0], "size": 4.5}


@pytest.mark.parametrize(
    "read", [lambda g, v=None: from_json(to_json(g), v), lambda g, v=None: from_networkx(to_networkx(g), v)]
)
def test_attributes_are_read_by_name(read):
    again = read(PLACED)
    assert again.vocabulary.attribute_names == PLACED.vocabulary.attribute_names
    assert again.attributes.tolist() == PLACED.attributes.tolist()
    chosen = Vocabulary(("a", "b"), attributes=(Attribute("size", 1.0, 2.0), Attribute("pos[1]")))
    assert read(PLACED, chosen).attributes.tolist() == [[3.0, 1.0], [4.5, 3.0]]
    assert read(PLACED, Vocabulary(("a", "b"))).attributes is None


def test_only_numbers_that_all_nodes_have_are_attributes():
    nodes = [{"id": 0, "x": 1, "kind": "big", "y": 2}, {"id": 1, "x": 0.5, "kind": "small", "seen": True}]
    graph = from_json({"nodes": nodes, "edges": []})
    assert graph.vocabulary.attribute_names == ("x",)
    assert graph.attributes.tolist() == [[1.0], [0.5]]
    nodes[1]["x"] = float("nan")
    with pytest.raises(ValueError, match=r"nodes\[1\].x is nan"):
        from_json({"nodes": nodes, "edges": []})
