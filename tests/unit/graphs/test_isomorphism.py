"""Whether graphs are the same: isomorphism, hashes, neighbourhoods, distinct graphs."""

import itertools
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

from graphwright.graphs import (
    Graph,
    find_isomorphism,
    from_networkx,
    is_isomorphic,
    isomorphism,
    refinement_hash,
)
from graphwright.graphs.isomorphism import DistinctGraphs, neighbourhoods
from tiny import complete, cycle, from_edges, random_batch


def rook() -> nx.Graph:
    """Squares of a 4x4 board, joined along rows and columns: strongly regular (16, 6, 2, 2)."""
    return nx.cartesian_product(nx.complete_graph(4), nx.complete_graph(4))


def shrikhande() -> nx.Graph:
    """The other strongly regular graph (16, 6, 2, 2)."""
    cells = itertools.product(range(4), repeat=2)
    steps = ((0, 1), (1, 0), (1, 1))
    return nx.Graph(((i, j), ((i + di) % 4, (j + dj) % 4)) for i, j in cells for di, dj in steps)


def cycles(*lengths: int) -> nx.Graph:
    return nx.disjoint_union_all([nx.cycle_graph(length) for length in lengths])


def with_hub(graph: nx.Graph) -> nx.Graph:
    hubbed = graph.copy()
    hubbed.add_edges_from(("hub", node) for node in graph)
    return hubbed


def cai_furer_immerman(twisted: bool) -> nx.Graph:
    """The pair over K4: no refinement tells them apart, only a search does."""
    base, graph = nx.complete_graph(4), nx.Graph()
    for node in base:
        around = [frozenset(edge) for edge in base.edges(node)]
        parity = int(twisted and node == 0)
        for chosen in itertools.chain(*(itertools.combinations(around, k) for k in (parity, parity + 2))):
            inner = (node, frozenset(chosen))
            graph.add_edges_from((inner, (node, edge, edge in chosen)) for edge in around)
    for (i, j), side in itertools.product(base.edges, (False, True)):
        graph.add_edge((i, frozenset((i, j)), side), (j, frozenset((i, j)), side))
    return graph


def shuffled(graph: Graph, seed: int = 0) -> Graph:
    return graph.permute(np.random.default_rng(seed).permutation(graph.size))


ALIKE = {
    "six-ring and two triangles": lambda: (nx.cycle_graph(6), cycles(3, 3)),
    "rook and Shrikhande": lambda: (rook(), shrikhande()),
    "prism and K33": lambda: (nx.circular_ladder_graph(3), nx.complete_bipartite_graph(3, 3)),
    "ladder and Moebius ladder": lambda: (nx.circular_ladder_graph(12), nx.circulant_graph(24, [1, 12])),
    "Cai-Furer-Immerman": lambda: (cai_furer_immerman(False), cai_furer_immerman(True)),
    "prisms over rook and Shrikhande": lambda: (
        nx.cartesian_product(rook(), nx.path_graph(2)),
        nx.cartesian_product(shrikhande(), nx.path_graph(2)),
    ),
}


@pytest.mark.parametrize("pair", ALIKE.values(), ids=ALIKE)
def test_pairs_that_refinement_cannot_tell_apart_are_told_apart(
    pair: Callable[[], tuple[nx.Graph, nx.Graph]],
):
    first, second = (from_networkx(graph) for graph in pair())
    assert refinement_hash(first) == refinement_hash(second)
    assert not is_isomorphic(first, second)
    assert not is_isomorphic(second, first)


def test_all_graphs_of_up_to_seven_nodes_are_told_apart():
    alike: dict[str, list[Graph]] = {}
    for graph in map(from_networkx, nx.graph_atlas_g()):
        assert is_isomorphic(graph, shuffled(graph))
        alike.setdefault(refinement_hash(graph), []).append(graph)
    pairs = [pair for graphs in alike.values() for pair in itertools.combinations(graphs, 2)]
    assert len(pairs) == 26  # what refinement misses, of 1253 graphs
    assert not any(is_isomorphic(*pair) for pair in pairs)


REGULAR = {
    "rook": rook,
    "Shrikhande": shrikhande,
    "Petersen": nx.petersen_graph,
    "hypercube": lambda: nx.hypercube_graph(5),
    "torus": lambda: nx.grid_2d_graph(6, 6, periodic=True),
    "Cai-Furer-Immerman": lambda: cai_furer_immerman(True),
    "random regular": lambda: nx.random_regular_graph(3, 30, seed=1),
    "complete": lambda: nx.complete_graph(40),
    "complete bipartite": lambda: nx.complete_bipartite_graph(15, 15),
    "isolated": lambda: nx.empty_graph(40),
    "one node": lambda: nx.empty_graph(1),
    "zero nodes": lambda: nx.empty_graph(0),
}


@pytest.mark.parametrize("make", REGULAR.values(), ids=REGULAR)
def test_a_shuffled_copy_is_matched_node_by_node(make: Callable[[], nx.Graph]):
    first = from_networkx(make())
    second = shuffled(first)
    match = find_isomorphism(first, second)
    assert match is not None
    assert second.permute(match) == first
    assert refinement_hash(second) == refinement_hash(first)


MANY_PARTS = {
    "apart": lambda graph: graph,
    "under one hub": with_hub,
    "in the complement": nx.complement,
    "under a hub in the complement": lambda graph: nx.complement(with_hub(graph)),
    "each in a product": lambda graph: nx.cartesian_product(graph, nx.path_graph(2)),
}


@pytest.fixture
def few_guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail, rather than run for years, when a search refines more often than a sound one ever needs to."""
    left = iter(range(1000))
    refine = isomorphism._refine

    def counted(*arguments):
        assert next(left, None) is not None, "the search explodes"
        return refine(*arguments)

    monkeypatch.setattr(isomorphism, "_refine", counted)


@pytest.mark.usefixtures("few_guesses")
@pytest.mark.parametrize("arrange", MANY_PARTS.values(), ids=MANY_PARTS)
def test_many_equal_parts_do_not_multiply_the_search(arrange: Callable[[nx.Graph], nx.Graph]):
    first = from_networkx(arrange(cycles(*[6] * 8)))
    second = from_networkx(arrange(cycles(*[6] * 7, 3, 3)))
    assert not is_isomorphic(first, shuffled(second))
    assert is_isomorphic(first, shuffled(first))


def test_parts_of_different_kinds_are_each_matched_with_their_like():
    graph = from_networkx(nx.disjoint_union_all([rook(), shrikhande(), rook(), shrikhande()]))
    assert is_isomorphic(graph, shuffled(graph))
    other = from_networkx(nx.disjoint_union_all([rook(), shrikhande(), rook(), rook()]))
    assert not is_isomorphic(graph, shuffled(other))


def test_labelled_edges_of_a_complete_graph_are_compared():
    pairs = list(itertools.combinations(range(6), 2))
    ring = [("b" if nx.cycle_graph(6).has_edge(*pair) else "a") for pair in pairs]
    triangles = [("b" if cycles(3, 3).has_edge(*pair) else "a") for pair in pairs]
    first, second = (Graph.build(6, pairs, labels) for labels in (ring, triangles))
    assert is_isomorphic(first, shuffled(first))
    assert not is_isomorphic(first, second)


PATH = Graph.build("CCO", [(0, 1), (1, 2)], ["single", "double"])


@pytest.mark.parametrize(
    "other",
    [
        Graph.build("CCN", [(0, 1), (1, 2)], ["single", "double"]),
        Graph.build("COC", [(0, 1), (1, 2)], ["single", "double"]),
        Graph.build("CCO", [(0, 1), (1, 2)], ["double", "single"]),
        Graph.build("CCO", [(0, 1), (1, 2)], ["single", "triple"]),
        Graph.build("CCO", [(0, 1), (0, 2)], ["double", "single"]),
        Graph.build("CCO", [(0, 1)], ["single"]),
        Graph.build("CCOO", [(0, 1), (1, 2)], ["single", "double"]),
    ],
    ids=["label", "label place", "edge labels", "edge name", "edge place", "edge missing", "a node more"],
)
def test_any_difference_is_seen_by_the_test_and_by_the_hash(other):
    assert not is_isomorphic(PATH, other)
    assert refinement_hash(PATH) != refinement_hash(other)


def test_names_are_compared_and_not_codes():
    other = Graph.build("OCC", [(1, 2), (0, 1)], ["a", "z"])
    same = Graph.build("OCC", [(1, 2), (0, 1)], ["single", "double"])
    wide = same.with_vocabulary(type(same.vocabulary)(("X", "O", "C"), ("none", "q", "single", "double")))
    assert not is_isomorphic(PATH, other)
    assert is_isomorphic(PATH, same)
    assert is_isomorphic(PATH, wide)
    assert refinement_hash(PATH) == refinement_hash(wide)


def test_unlabelled_graphs_differ_from_graphs_labelled_otherwise():
    assert not is_isomorphic(Graph.build(2), Graph.build("CC"))
    assert refinement_hash(Graph.build(2)) != refinement_hash(Graph.build("CC"))


def test_the_hash_is_the_same_in_every_process():
    assert refinement_hash(PATH) == "3ca8c314fa2537f7ef82babcef4f6fb502bb328e942c08e5040553d3365ec51e"


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
