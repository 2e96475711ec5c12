"""The parts of the edit distance: exchanges, bounds, starts, branch and bound."""

from collections import Counter

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from graphwright.graphs import Graph, Vocabulary
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
from unit.metrics.graph_pairs import LABELLED, PLAIN, least_alignment, random_graph, region_graph

both_vocabularies = pytest.mark.parametrize("vocabulary", [PLAIN, LABELLED], ids=["plain", "labelled"])


def random_graphs(
    seed: int, count: int, sizes: tuple[int, int], vocabulary: Vocabulary
) -> tuple[list[Graph], list[Graph]]:
    rng = np.random.default_rng(seed)
    left, right = ([random_graph(rng, size, vocabulary) for _ in range(count)] for size in sizes)
    return left, right


def random_pairs(seed: int, count: int, sizes: tuple[int, int], vocabulary: Vocabulary) -> GraphPairs:
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
    pairs = random_pairs(0, 10, (5, 7), vocabulary)
    alignment = random_alignments(pairs)
    changes = swap_changes(pairs, alignment)
    for i in range(7):
        for j in range(7):
            swapped = alignment.copy()
            swapped[:, [i, j]] = swapped[:, [j, i]]
            assert np.array_equal(pairs.costs(swapped) - pairs.costs(alignment), changes[:, i, j])


@both_vocabularies
def test_improved_alignments_leave_no_better_exchange(vocabulary: Vocabulary) -> None:
    pairs = random_pairs(1, 20, (8, 8), vocabulary)
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
    pairs = random_pairs(5, 6, (4, 5), vocabulary)
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
    pairs = random_pairs(10, 30, (9, 9), vocabulary)
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
