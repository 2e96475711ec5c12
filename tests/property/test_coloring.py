from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse.csgraph import connected_components

from benchmarks.data import plain_borders, plain_labels
from graphwright.tasks.coloring import SPLITS, ColoringConfig, Split, augment, generate
from graphwright.tasks.coloring.sample import border_lengths, four_coloring, region_labels

quick = settings(deadline=None, max_examples=60)
splits = st.sampled_from(SPLITS)
seeds = st.integers(0, 2**63 - 1)


@st.composite
def configs(draw: st.DrawFn) -> ColoringConfig:
    capacity = draw(st.integers(1, 60))
    smallest = draw(st.integers(1, capacity))
    side = draw(st.integers(int(np.ceil(capacity**0.5)), 48))
    sliver = draw(st.integers(0, min(4, side**2 // capacity)))
    return ColoringConfig(capacity, smallest, side, draw(st.sampled_from((0.0, 0.02, 1.0))), min_pixels=sliver)


@st.composite
def maps(draw: st.DrawFn) -> tuple[list[tuple[int, int]], int]:
    side = draw(st.integers(1, 12))
    pixel = st.tuples(st.integers(0, side - 1), st.integers(0, side - 1))
    return draw(st.lists(pixel, min_size=1, max_size=20, unique=True)), side


@quick
@given(configs(), seeds, splits, st.integers(0, 10_000))
def test_samples_are_proper_and_repeatable(config: ColoringConfig, seed: int, split: Split, at: int) -> None:
    index = at % config.length(split)
    sample, again = generate(config, seed, split, index), generate(config, seed, split, index)
    assert np.array_equal(sample.image, again.image)
    assert sample.graph == again.graph
    graph = sample.graph
    first, second = graph.edges.T
    assert (graph.node_labels[first] != graph.node_labels[second]).all()
    assert 1 <= graph.size <= config.capacity
    assert sample.image.min() >= 0
    assert sample.image.max() <= 1
    if config.min_pixels <= 1:
        assert graph.size >= config.min_size
        assert connected_components(graph.edge_matrix(), directed=False)[0] == 1


@quick
@given(maps())
def test_labels_and_borders_are_those_of_the_plain_loop(drawn: tuple[list[tuple[int, int]], int]) -> None:
    pixels, side = drawn
    labels = region_labels(np.array(pixels), side)
    assert labels.tolist() == plain_labels(pixels, side)
    lengths = border_lengths(labels, len(pixels))
    counted = {(i, j): lengths[i, j] for i, j in np.argwhere(np.triu(lengths)).tolist()}
    assert counted == plain_borders(labels.tolist())


@quick
@given(maps())
def test_regions_hold_their_seed_in_one_piece(drawn: tuple[list[tuple[int, int]], int]) -> None:
    from scipy.ndimage import label

    pixels, side = drawn
    labels = region_labels(np.array(pixels), side)
    for node, pixel in enumerate(pixels):
        assert labels[pixel] == node
        assert label(labels == node)[1] == 1


@quick
@given(st.integers(1, 9).flatmap(lambda n: arrays(bool, (n, n))), st.integers(0, 100))
def test_any_graph_is_coloured_or_refused(drawn: "np.ndarray[Any, np.dtype[np.bool_]]", seed: int) -> None:
    adjacent = np.triu(drawn, 1)
    adjacent |= adjacent.T
    try:
        colors = four_coloring(adjacent, np.random.default_rng(seed))
    except ValueError:
        assert not _colorable(adjacent, [])
    else:
        assert not (adjacent & (colors[:, None] == colors)).any()


def _colorable(adjacent: "np.ndarray[Any, np.dtype[np.bool_]]", colors: list[int]) -> bool:
    """Whether the colours of the first nodes can be completed, by trying everything."""
    node = len(colors)
    if node == len(adjacent):
        return True
    taken = {colors[other] for other in range(node) if adjacent[node, other]}
    return any(_colorable(adjacent, [*colors, color]) for color in range(4) if color not in taken)


@quick
@given(seeds, st.integers(0, 1_000))
def test_turns_move_pixels_with_the_picture(seed: int, index: int) -> None:
    sample = generate(ColoringConfig(6, min_size=2), seed, "train", index)
    turned = augment(sample, np.random.default_rng(index))
    assert np.array_equal(turned.image[:, *turned.pixels.T], sample.image[:, *sample.pixels.T])
    assert turned.graph == sample.graph
