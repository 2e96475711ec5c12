import networkx as nx
import numpy as np
import pytest
from scipy.spatial import Delaunay

from graphwright.tasks.coloring import sample
from graphwright.tasks.coloring.sample import border_lengths, draw_pixels, four_coloring, region_labels


def _stacked(size: int, rng: np.random.Generator) -> "nx.Graph[int]":
    """A planar 3-tree: a triangle, then nodes each inside a random face. Its 4-colouring is unique."""
    graph: nx.Graph[int] = nx.complete_graph(3)
    faces = [(0, 1, 2)]
    for node in range(3, size):
        i, j, k = faces.pop(int(rng.integers(len(faces))))
        graph.add_edges_from((node, other) for other in (i, j, k))
        faces += [(i, j, node), (i, k, node), (j, k, node)]
    return graph


def _delaunay(size: int, rng: np.random.Generator) -> "nx.Graph[int]":
    graph: nx.Graph[int] = nx.empty_graph(size)
    for simplex in Delaunay(rng.random((size, 2))).simplices.tolist():
        nx.add_cycle(graph, simplex)
    return graph


PLANAR = {
    "one node": nx.empty_graph(1),
    "no edges": nx.empty_graph(9),
    "K4": nx.complete_graph(4),
    "K2,20": nx.complete_bipartite_graph(2, 20),
    "odd wheel": nx.wheel_graph(60),
    "even wheel": nx.wheel_graph(61),
    "odd cycle": nx.cycle_graph(9),
    "octahedron": nx.octahedral_graph(),
    "icosahedron": nx.icosahedral_graph(),
    "dodecahedron": nx.dodecahedral_graph(),
    "truncated tetrahedron": nx.truncated_tetrahedron_graph(),
    "two pieces": nx.disjoint_union(nx.complete_graph(4), nx.icosahedral_graph()),
    "grid": nx.convert_node_labels_to_integers(nx.triangular_lattice_graph(8, 10)),
    "3-tree": _stacked(60, np.random.default_rng(0)),
}


def _check(graph: "nx.Graph[int]", seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    adjacent = nx.to_numpy_array(graph, nodelist=range(len(graph)), dtype=bool)
    colors = four_coloring(adjacent, np.random.default_rng(seed))
    assert colors.shape == (len(graph),)
    assert set(colors.tolist()) <= {0, 1, 2, 3}
    assert all(colors[i] != colors[j] for i, j in graph.edges)
    return colors


@pytest.mark.parametrize("name", PLANAR)
def test_planar_graphs_are_coloured(name: str) -> None:
    for seed in range(20):
        _check(PLANAR[name], seed)


def test_random_triangulations_are_coloured() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        _check(_delaunay(60, rng), seed)
        _check(_stacked(60, rng), seed)


def test_no_nodes() -> None:
    assert four_coloring(np.zeros((0, 0), bool), np.random.default_rng(0)).shape == (0,)


def test_a_graph_without_colouring_is_refused() -> None:
    for graph in (nx.complete_graph(5), nx.disjoint_union(nx.path_graph(30), nx.complete_graph(5))):
        with pytest.raises(ValueError, match="no proper four-colouring"):
            _check(graph, 0)


def test_same_generator_same_colours_and_all_colourings_come_up() -> None:
    graph = nx.path_graph(2)
    assert np.array_equal(_check(PLANAR["icosahedron"], 3), _check(PLANAR["icosahedron"], 3))
    assert len({tuple(_check(graph, seed).tolist()) for seed in range(300)}) == 12


def test_restarts_still_end_with_a_colouring(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    search = sample._search

    def strict(neighbors: list[int], preferences: list[tuple[int, ...]], limit: int) -> list[int] | None:
        limits.append(limit)
        # Everything that goes back at all is given up, until the limit has doubled twice.
        return search(neighbors, preferences, 0 if len(limits) < 3 else limit)

    monkeypatch.setattr(sample, "_search", strict)
    most = 0
    for seed in range(40):
        limits.clear()
        _check(_delaunay(60, np.random.default_rng(seed)), seed)
        assert limits == [240 * 2**again for again in range(len(limits))]
        most = max(most, len(limits))
    assert most >= 2


def test_no_heavy_tail_at_sixty_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    search = sample._search

    def count(neighbors: list[int], preferences: list[tuple[int, ...]], limit: int) -> list[int] | None:
        limits.append(limit)
        return search(neighbors, preferences, limit)

    monkeypatch.setattr(sample, "_search", count)
    restarts = []
    for seed in range(500):
        rng = np.random.default_rng(seed)
        adjacent = border_lengths(region_labels(draw_pixels(60, 240, rng), 240), 60) > 0
        limits.clear()
        four_coloring(adjacent, rng)
        assert limits[0] == 240
        restarts.append(len(limits) - 1)
    # A restart every fiftieth time: going back is bounded, so the count of restarts bounds the time.
    assert sum(restarts) < 40
    assert max(restarts) <= 3


def test_most_saturated_is_what_counting_says() -> None:
    rng = np.random.default_rng(0)
    largest = set()
    for _ in range(300):
        shown = rng.random((4, 12)) < rng.random()
        uncolored = int(rng.integers(1, 2**12))
        counts = {node: shown[:, node].sum() for node in range(12) if uncolored >> node & 1}
        most = sum(1 << node for node, count in counts.items() if count == max(counts.values()))
        assert sample._most_saturated(sample._bits(shown), uncolored) == most
        largest.add(int(max(counts.values())))
    assert largest == {0, 1, 2, 3, 4}
