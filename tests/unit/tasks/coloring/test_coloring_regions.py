import numpy as np
import pytest

from benchmarks.data import plain_borders, plain_labels
from graphwright.tasks.coloring.sample import border_lengths, draw_pixels, draw_size, region_labels

# Mean sizes and numbers of samples of the paper's Table 3.
TABLE_3 = {10: (7.51, 200_000), 20: (12.51, 400_000), 30: (17.52, 600_000)}
TABLE_3 |= {40: (22.52, 800_000), 50: (27.50, 1_000_000), 60: (32.49, 1_200_000)}


def test_ties_go_to_the_lowest_index() -> None:
    corners = np.array([[0, 2], [2, 0], [0, 0], [2, 2]])
    assert region_labels(corners, 3).tolist() == [[2, 0, 0], [1, 0, 0], [1, 1, 3]]


@pytest.mark.parametrize(("count", "side"), [(1, 1), (1, 5), (2, 2), (64, 8), (65, 17), (33, 40), (300, 100)])
def test_labels_are_those_of_the_plain_loop(count: int, side: int) -> None:
    # 300 seeds on a side of 100 need more than 16 bits for distance and index.
    seeds = draw_pixels(count, side, np.random.default_rng(count))
    assert region_labels(seeds, side).tolist() == plain_labels(seeds.tolist(), side)


def test_labels_of_a_raster_of_many_blocks() -> None:
    seeds = draw_pixels(60, 240, np.random.default_rng(0))
    grid = np.indices((240, 240))
    distances = np.abs(grid[None] - seeds[:, :, None, None]).sum(axis=1)
    assert np.array_equal(region_labels(seeds, 240), distances.argmin(axis=0))


def test_borders_do_not_wrap_around() -> None:
    labels = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8]])
    lengths = border_lengths(labels, 9)
    pairs = {(i, j) for i, j in np.argwhere(np.triu(lengths)).tolist()}
    assert pairs == {(i, i + 1) for i in range(9) if i % 3 < 2} | {(i, i + 3) for i in range(6)}
    assert np.array_equal(lengths, lengths.T)


@pytest.mark.parametrize("side", [1, 2, 7, 20])
def test_borders_are_those_of_the_plain_loop(side: int) -> None:
    labels = np.random.default_rng(side).integers(6, size=(side, side))
    lengths = border_lengths(labels, 6)
    counted = {(i, j): lengths[i, j] for i, j in np.argwhere(np.triu(lengths)).tolist()}
    assert counted == plain_borders(labels.tolist())


def test_pixels_are_distinct_and_everywhere() -> None:
    rng = np.random.default_rng(0)
    assert sorted(map(tuple, draw_pixels(25, 5, rng).tolist())) == [(i, j) for i in range(5) for j in range(5)]
    first = np.concatenate([draw_pixels(2, 3, rng)[:1] for _ in range(9_000)])
    counts = np.bincount(first @ (3, 1), minlength=9)
    assert np.abs(counts - 1_000).max() < 5 * (9_000 * 1 / 9 * 8 / 9) ** 0.5


@pytest.mark.parametrize("capacity", TABLE_3)
def test_mean_sizes_are_those_of_table_3(capacity: int) -> None:
    _compare_with_table_3(capacity, 10_000)


@pytest.mark.slow
@pytest.mark.parametrize("capacity", TABLE_3)
def test_mean_sizes_are_those_of_table_3_closely(capacity: int) -> None:
    _compare_with_table_3(capacity, 200_000)


def _compare_with_table_3(capacity: int, draws: int) -> None:
    from graphwright.tasks.coloring.sample import stream

    sizes = np.array([draw_size(5, capacity, stream(0, "train", index)) for index in range(draws)])
    mean, samples = TABLE_3[capacity]
    deviation = (((capacity - 4) ** 2 - 1) / 12) ** 0.5
    error = deviation * (1 / draws + 1 / samples) ** 0.5
    assert abs(sizes.mean() - mean) < 5 * error + 0.005  # the table is rounded
    assert (sizes.min(), sizes.max()) == (5, capacity)
    assert abs(sizes.std() - deviation) < 5 * deviation / draws**0.5
