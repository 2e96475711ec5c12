"""Edit distances against plain definitions, networkx, and what is known beforehand."""

import networkx as nx
import numpy as np
import pytest

from graphwright.graphs import Graph, Vocabulary, from_networkx
from graphwright.metrics import edit, edit_distance, edit_distances
from graphwright.metrics.pairs import GraphPairs, branch_bound
from unit.metrics.graph_pairs import (
    COLOURS,
    LABELLED,
    PLAIN,
    alignment_cost,
    edited,
    least_alignment,
    least_path,
    networkx_distance,
    random_graph,
    region_graph,
)


def random_pairs(seed: int, count: int, largest: int, vocabulary: Vocabulary) -> tuple[list[Graph], list[Graph]]:
    rng = np.random.default_rng(seed)
    return tuple(  # type: ignore[return-value]
        [random_graph(rng, int(rng.integers(0, largest + 1)), vocabulary) for _ in range(count)] for _ in range(2)
    )


def region_pairs(seed: int, count: int, edits: int) -> tuple[list[Graph], list[Graph]]:
    rng = np.random.default_rng(seed)
    targets = [region_graph(rng, int(rng.integers(5, 21))) for _ in range(count)]
    return [edited(rng, target, edits) for target in targets], targets


def build(labels: str, *edges: tuple[int, int, str]) -> Graph:
    return Graph.build(list(labels), [edge[:2] for edge in edges], [edge[2] for edge in edges], LABELLED)


@pytest.mark.parametrize("vocabulary", [PLAIN, LABELLED], ids=["plain", "labelled"])
@pytest.mark.parametrize(("oracle", "largest"), [(networkx_distance, 5), (least_path, 4), (least_alignment, 6)])
def test_it_is_the_least_over_all_paths(oracle, largest: int, vocabulary: Vocabulary) -> None:
    first, second = random_pairs(largest, 120, largest, vocabulary)
    found = edit_distances(first, second)
    assert [result.distance for result in found] == [
        oracle(one, other) for one, other in zip(first, second, strict=True)
    ]
    assert all(result.proved for result in found)


@pytest.mark.parametrize("vocabulary", [PLAIN, LABELLED], ids=["plain", "labelled"])
def test_bounds_hold_where_the_search_gives_up(vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit, "WORK", 0)
    first, second = random_pairs(7, 200, 6, vocabulary)
    found = edit_distances(first, second)
    true = [least_alignment(one, other) for one, other in zip(first, second, strict=True)]
    for result, distance in zip(found, true, strict=True):
        assert result.lower_bound <= distance <= result.distance
    proved = sum(result.proved for result in found)
    hit = sum(result.distance == distance for result, distance in zip(found, true, strict=True))
    assert proved < len(found)  # Otherwise this test sees nothing.
    assert hit >= 0.95 * len(found)


@pytest.mark.parametrize("vocabulary", [PLAIN, LABELLED], ids=["plain", "labelled"])
def test_the_alignment_costs_the_distance(vocabulary: Vocabulary) -> None:
    first, second = random_pairs(8, 100, 9, vocabulary)
    for one, other, result in zip(first, second, edit_distances(first, second), strict=True):
        assert sorted(result.alignment) == list(range(max(one.size, other.size)))
        assert alignment_cost(one, other, result.alignment) == result.distance


BASE = build("abc", (0, 1, "single"), (1, 2, "double"))
ONE_EDIT = {
    "relabelled node": build("aac", (0, 1, "single"), (1, 2, "double")),
    "relabelled edge": build("abc", (0, 1, "triple"), (1, 2, "double")),
    "missing edge": build("abc", (0, 1, "single")),
    "added edge": build("abc", (0, 1, "single"), (1, 2, "double"), (0, 2, "single")),
    "added node": build("abca", (0, 1, "single"), (1, 2, "double")),
}


@pytest.mark.parametrize("other", ONE_EDIT.values(), ids=ONE_EDIT)
def test_each_kind_of_edit_costs_one(other: Graph) -> None:
    order = list(range(other.size))[::-1]
    for first, second in ((BASE, other.permute(order)), (other.permute(order), BASE)):
        result = edit_distance(first, second)
        assert (result.distance, result.proved) == (1, True)


def test_a_node_goes_with_its_edges() -> None:
    star = build("abbb", (0, 1, "single"), (0, 2, "single"), (0, 3, "single"))
    assert edit_distance(star, build("bbb")).distance == 4
    assert edit_distance(build("bbb"), star).distance == 4


def test_graphs_of_no_node_and_of_one() -> None:
    empty, one, other = build(""), build("a"), build("b")
    for first, second, distance in (
        (empty, empty, 0),
        (empty, one, 1),
        (one, empty, 1),
        (one, other, 1),
        (one, one, 0),
    ):
        result = edit_distance(first, second)
        assert (result.distance, result.lower_bound) == (distance, distance)
    assert edit_distance(empty, BASE).distance == 5
    assert edit_distances([], []) == []


def test_graphs_that_refinement_cannot_tell_apart_differ() -> None:
    hexagon = from_networkx(nx.cycle_graph(6))
    triangles = from_networkx(nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)))
    result = edit_distance(hexagon, triangles)
    assert (result.distance, result.proved) == (4, True)
    assert edit_distance(hexagon, hexagon.permute([3, 1, 5, 0, 2, 4])).distance == 0


def test_graphs_that_are_not_isomorphic_are_one_edit_apart_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit, "WORK", 0)
    # Two hexagons and a ring of twelve: every node sees two like neighbours, so the bound sees nothing.
    first = from_networkx(nx.disjoint_union(nx.cycle_graph(6), nx.cycle_graph(6)))
    second = from_networkx(nx.cycle_graph(12))
    bounds, _ = branch_bound(GraphPairs.pad([first], [second]))
    assert bounds.tolist() == [0]
    assert edit_distance(first, second).lower_bound == 1


def test_few_errors_in_large_graphs_are_found_and_proved() -> None:
    for edits in (1, 3, 4):
        predicted, targets = region_pairs(edits, 60, edits)
        found = edit_distances(predicted, targets)
        assert all(result.distance <= edits for result in found)
        assert sum(result.proved for result in found) >= 59


def test_bad_predictions_stay_below_the_edits_made() -> None:
    predicted, targets = region_pairs(15, 40, 15)
    found = edit_distances(predicted, targets)
    assert sum(result.distance <= 15 for result in found) >= 38
    assert sum(result.proved for result in found) >= 30


def test_a_start_is_never_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    first = [random_graph(rng, size) for size in (9, 12, 10)]
    second = [random_graph(rng, size) for size in (12, 9, 10)]
    best = edit_distances(first, second)

    def reverse(pairs: GraphPairs) -> np.ndarray:
        return np.tile(np.arange(pairs.slots)[::-1], (len(pairs), 1))

    # With all that finds alignments taken away, only those given are left.
    monkeypatch.setattr(edit, "starting_alignments", lambda _: [])
    monkeypatch.setattr(edit, "branch_bound", lambda pairs: (np.zeros(len(pairs), int), reverse(pairs)))
    monkeypatch.setattr(edit, "improve", lambda _, alignment: alignment)
    monkeypatch.setattr(edit, "branch_and_bound", lambda pairs, given: (np.zeros(len(pairs), int), given))
    without = edit_distances(first, second)
    given = edit_distances(first, second, [result.alignment for result in best])
    for one, other, result in zip(best, without, given, strict=True):
        assert one.distance == result.distance < other.distance
        assert np.array_equal(one.alignment, result.alignment)


def test_company_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    predicted, targets = region_pairs(11, 30, 6)
    together = edit_distances(predicted, targets)
    monkeypatch.setattr(edit, "TOGETHER", 1)
    for one, other in zip(together, edit_distances(predicted, targets), strict=True):
        assert (one.distance, one.lower_bound) == (other.distance, other.lower_bound)
        assert np.array_equal(one.alignment, other.alignment)


def test_wrong_input_is_named() -> None:
    plain, coloured = Graph.build(2), Graph.build(["red"], vocabulary=COLOURS)
    with pytest.raises(ValueError, match=r"second has 1 graphs, first has 2"):
        edit_distances([plain, plain], [plain])
    with pytest.raises(ValueError, match=r"second\[1\] has another vocabulary than first\[1\]"):
        edit_distances([plain, plain], [plain, coloured])
    with pytest.raises(ValueError, match=r"starts has 1 alignments for 2 pairs"):
        edit_distances([plain, plain], [plain, plain], [None])
    with pytest.raises(ValueError, match=r"starts\[1\] is not a permutation of 0..1"):
        edit_distances([plain, plain], [plain, plain], [None, np.array([0, 0])])
