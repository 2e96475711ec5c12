"""Edit distances, and the search for the best alignment."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from graphwright.graphs import Graph, Vocabulary, from_networkx
from graphwright.metrics import edit, edit_distance, edit_distances
from graphwright.metrics.edit import (
    Frontier,
    align_neighbourhoods,
    branch_and_bound,
    detours,
    frank_wolfe,
    improve,
    price,
    starting_alignments,
    swap_changes,
)
from graphwright.metrics.pairs import (
    GraphPairs,
    branch_bound,
    branch_costs,
    channel_weight,
    cheapest_alignment,
    edge_channels,
    half_up,
    multiset_difference,
)
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


both_vocabularies = pytest.mark.parametrize("vocabulary", [PLAIN, LABELLED], ids=["plain", "labelled"])


def random_graphs(
    seed: int, count: int, sizes: tuple[int, int], vocabulary: Vocabulary
) -> tuple[list[Graph], list[Graph]]:
    rng = np.random.default_rng(seed)
    left, right = ([random_graph(rng, size, vocabulary) for _ in range(count)] for size in sizes)
    return left, right


def searched_pairs(seed: int, count: int, sizes: tuple[int, int], vocabulary: Vocabulary) -> GraphPairs:
    return GraphPairs.pad(*random_graphs(seed, count, sizes, vocabulary))


def random_alignments(pairs: GraphPairs, seed: int = 0) -> np.ndarray:
    natural = np.tile(np.arange(pairs.slots), (len(pairs), 1))
    return np.random.default_rng(seed).permuted(natural, axis=1)


@both_vocabularies
def test_channels_compare_edges(vocabulary: Vocabulary) -> None:
    classes = len(vocabulary.edges)
    e, f = np.meshgrid(np.arange(classes), np.arange(classes))
    first, second = (edge_channels(codes[None].astype(np.int32), classes)[0] for codes in (e, f))
    overlap = channel_weight(classes) * (first * second).sum(0)
    assert np.array_equal((e > 0) + (f > 0).astype(int) - overlap, e != f)


@both_vocabularies
def test_swap_changes_are_differences_of_costs(vocabulary: Vocabulary) -> None:
    pairs = searched_pairs(0, 10, (5, 7), vocabulary)
    alignment = random_alignments(pairs)
    changes = swap_changes(pairs, alignment)
    for i in range(7):
        for j in range(7):
            swapped = alignment.copy()
            swapped[:, [i, j]] = swapped[:, [j, i]]
            assert np.array_equal(pairs.costs(swapped) - pairs.costs(alignment), changes[:, i, j])


@both_vocabularies
def test_improved_alignments_leave_no_better_exchange(vocabulary: Vocabulary) -> None:
    pairs = searched_pairs(1, 20, (8, 8), vocabulary)
    start = random_alignments(pairs)
    kept = start.copy()
    improved = improve(pairs, start)
    assert np.array_equal(start, kept)
    assert (swap_changes(pairs, improved) >= 0).all()
    assert (pairs.costs(improved) <= pairs.costs(start)).all()
    assert (pairs.costs(improved) < pairs.costs(start)).any()


def test_multiset_difference_counts_edits() -> None:
    rng = np.random.default_rng(2)
    left, right = (
        rng.integers(0, 4, (3, 5, 2)).astype(np.float32),
        rng.integers(0, 4, (3, 6, 2)).astype(np.float32),
    )
    difference = multiset_difference(left, right)
    for at in np.ndindex(3, 5, 6):
        a = Counter(dict(enumerate(left[at[0], at[1]].astype(int))))
        b = Counter(dict(enumerate(right[at[0], at[2]].astype(int))))
        assert difference[at] == max(a.total(), b.total()) - (a & b).total()


def test_halves_are_rounded_up() -> None:
    assert half_up(np.array([0, 1, 2, 3], np.float32)).tolist() == [0, 1, 1, 2]


@both_vocabularies
@pytest.mark.parametrize("sizes", [(5, 5), (3, 5), (1, 5)])
def test_the_branch_bound_is_below_the_distance_and_above_the_counts(
    sizes: tuple[int, int], vocabulary: Vocabulary
) -> None:
    graphs = random_graphs(3, 60, sizes, vocabulary)
    pairs, true = GraphPairs.pad(*graphs), np.array([*map(least_alignment, *graphs)])
    bounds, alignment = branch_bound(pairs)
    assert (bounds <= true).all()
    assert (bounds > 0).any()
    nodes = [multiset(a, b) for a, b in zip(pairs.left_labels, pairs.right_labels, strict=True)]
    upper = np.triu_indices(pairs.slots, 1)
    edges = [multiset(a[upper], b[upper]) for a, b in zip(pairs.left_edges, pairs.right_edges, strict=True)]
    assert (bounds >= np.add(nodes, edges)).all()
    assert np.array_equal(alignment, cheapest_alignment(branch_costs(pairs)))


def multiset(left: np.ndarray, right: np.ndarray) -> int:
    """Edits between two multisets of equal size."""
    return len(left) - (Counter(left.tolist()) & Counter(right.tolist())).total()


def test_detours_are_forced_assignments() -> None:
    rng = np.random.default_rng(4)
    costs = rng.integers(0, 6, (20, 7, 7)).astype(np.float32)
    partner = cheapest_alignment(costs)
    dearer = detours(costs, partner)
    for cost, own, more in zip(costs, partner, dearer, strict=True):
        best = cost[np.arange(7), own].sum()
        for column in range(7):
            rest = np.delete(cost[1:], column, axis=1)
            forced = cost[0, column] + rest[linear_sum_assignment(rest)].sum()
            assert forced - best == more[column]


@both_vocabularies
def test_partial_alignments_are_priced_below_their_completions(vocabulary: Vocabulary) -> None:
    pairs = searched_pairs(5, 6, (4, 5), vocabulary)
    alignment = random_alignments(pairs)
    costs = pairs.costs(alignment)
    frontier, previous = Frontier.root(pairs), np.zeros(len(pairs), np.int64)
    for slot in range(5):
        prices = price(pairs, frontier)
        column = np.argmax(frontier.free == alignment[:, slot, None], axis=1)
        child = prices.children[np.arange(len(pairs)), column]
        assert (previous <= prices.bounds).all()
        assert (prices.bounds == prices.children.min(1)).all()
        assert (child <= costs).all()
        assert (pairs.costs(prices.completions) >= prices.bounds).all()
        if slot == 4:  # Left slot 4 is padding, so all is known.
            assert np.array_equal(prices.bounds, costs)
            break
        frontier, previous = frontier.extend(pairs, np.arange(len(pairs)), column), child
    assert np.array_equal(frontier.placed, alignment[:, :4])


@both_vocabularies
@pytest.mark.parametrize("sizes", [(6, 6), (4, 6), (2, 6), (0, 6)])
def test_branch_and_bound_is_exact_from_the_worst_start(sizes: tuple[int, int], vocabulary: Vocabulary) -> None:
    graphs = random_graphs(6, 40, sizes, vocabulary)
    pairs, true = GraphPairs.pad(*graphs), np.array([*map(least_alignment, *graphs)])
    lower, alignment = branch_and_bound(pairs, random_alignments(pairs))
    assert np.array_equal(lower, true)
    assert np.array_equal(pairs.costs(alignment), true)


@both_vocabularies
def test_starts_are_alignments_and_find_a_hidden_copy(vocabulary: Vocabulary) -> None:
    rng = np.random.default_rng(8)
    graphs = [random_graph(rng, 10, vocabulary) for _ in range(20)]
    pairs = GraphPairs.pad(graphs, [graph.permute(rng.permutation(10)) for graph in graphs])
    starts = starting_alignments(pairs)
    for start in starts:
        assert np.array_equal(np.sort(start, axis=1), np.tile(np.arange(10), (20, 1)))
    assert np.array_equal(starts[0], np.tile(np.arange(10), (20, 1)))
    improved = [pairs.costs(improve(pairs, start)) for start in starts[1:]]
    assert (np.min(improved, axis=0) == 0).mean() >= 0.9


def test_neighbourhoods_tell_nodes_apart_by_the_labels_around_them() -> None:
    rng = np.random.default_rng(9)
    graphs = [region_graph(rng, 15) for _ in range(20)]
    pairs = GraphPairs.pad(graphs, [graph.permute(rng.permutation(15)) for graph in graphs])
    by_labels = pairs.costs(cheapest_alignment(pairs.label_costs))
    assert pairs.costs(align_neighbourhoods(pairs)).sum() < 0.3 * by_labels.sum()


@both_vocabularies
def test_frank_wolfe_beats_chance_by_far(vocabulary: Vocabulary) -> None:
    pairs = searched_pairs(10, 30, (9, 9), vocabulary)
    found = pairs.costs(frank_wolfe(pairs, np.full((30, 9, 9), 1 / 9, np.float32)))
    assert found.sum() < 0.8 * pairs.costs(random_alignments(pairs)).sum()


def test_frank_wolfe_stays_at_the_best_vertex() -> None:
    rng = np.random.default_rng(11)
    graphs = [region_graph(rng, 12) for _ in range(10)]
    orders = np.array([rng.permutation(12) for _ in graphs])
    pairs = GraphPairs.pad([g.permute(order) for g, order in zip(graphs, orders, strict=True)], graphs)
    assert (pairs.costs(orders) == 0).all()
    vertex = (orders[:, :, None] == np.arange(12)).astype(np.float32)
    assert (pairs.costs(frank_wolfe(pairs, vertex)) == 0).all()
