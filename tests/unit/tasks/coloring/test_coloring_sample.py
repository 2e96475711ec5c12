import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from benchmarks.data import plain_borders, plain_labels, plain_sample
from graphwright.tasks.coloring import (
    COLORS,
    RGB,
    SPLITS,
    ColoringConfig,
    ColoringSample,
    Split,
    augment,
    generate,
)
from graphwright.tasks.coloring.sample import draw_pixels, draw_size, stream

CONFIGS = {
    "coloring10": ColoringConfig(10),
    "coloring20": ColoringConfig(20),
    "demo": ColoringConfig(4, min_size=2),
    "crowded": ColoringConfig(16, min_size=16, side=4),
    "any2graph": ColoringConfig.any2graph(),
}


def digest(sample: ColoringSample) -> str:
    parts = (sample.image, sample.pixels, sample.graph.node_labels, sample.graph.edges)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def digests() -> list[str]:
    return [digest(generate(config, 7, "train", index)) for config in CONFIGS.values() for index in range(8)]


def test_a_sample_is_the_same_in_another_process() -> None:
    code = "import test_coloring_sample as t; print(*t.digests())"
    there = subprocess.run(
        [sys.executable, "-c", code],
        cwd=os.path.dirname(__file__),
        env=os.environ | {"PYTHONHASHSEED": "123", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.split() == digests()


def test_a_sample_is_the_same_whatever_was_drawn_before() -> None:
    first = digest(generate(ColoringConfig(10), 0, "train", 5))
    generate(ColoringConfig(10), 0, "train", 4)
    np.random.default_rng().random()
    assert digest(generate(ColoringConfig(10), 0, "train", 5)) == first


def test_samples_of_today_are_samples_of_tomorrow() -> None:
    # Reported figures belong to these samples: if this fails, every dataset has changed.
    sample = generate(ColoringConfig(10), 0, "test", 0)
    assert " ".join(map(str, sample.pixels.ravel())) == "39 24 30 37 17 21 11 38 32 17 11 2 24 30 24 17"
    assert " ".join(sample.graph.node_names) == "yellow blue yellow green blue red red green"
    edges = "0 1 0 4 0 6 1 3 1 6 2 3 2 5 2 6 2 7 3 6 4 5 4 6 4 7 5 7 6 7"
    assert " ".join(map(str, sample.graph.edges.ravel())) == edges
    np.testing.assert_allclose(sample.image[:, 0, 0], [0.783116, 0.281013, 0.257881], atol=1e-6)


def test_seeds_splits_and_indices_give_different_samples() -> None:
    config = ColoringConfig(10)
    seen = {
        digest(generate(config, seed, split, index))
        for seed in range(3)
        for split in SPLITS
        for index in range(20)
    }
    assert len(seen) == 3 * 3 * 20


@pytest.mark.parametrize("name", ["coloring10", "coloring20", "demo", "crowded"])
def test_samples_are_those_of_the_plain_loop(name: str) -> None:
    for index in range(4):
        fast, plain = generate(CONFIGS[name], 1, "test", index), plain_sample(CONFIGS[name], 1, "test", index)
        assert np.array_equal(fast.image, plain.image)
        assert np.array_equal(fast.pixels, plain.pixels)
        assert fast.graph == plain.graph


def _check_picture(sample: ColoringSample) -> None:
    """The whole picture is the map of the nodes' own pixels, in the nodes' colours, up to noise."""
    labels = np.array(plain_labels(sample.pixels.tolist(), sample.image.shape[-1]))
    fills = np.array([RGB[name] for name in sample.graph.node_names])
    assert np.abs(sample.image - fills[labels].transpose(2, 0, 1)).max() < 4.5 * 0.02
    assert sorted(plain_borders(labels.tolist())) == list(map(tuple, sample.graph.edges.tolist()))


@pytest.mark.parametrize("capacity", [10, 20])
def test_pictures_show_their_graphs(capacity: int) -> None:
    for index in range(10):
        _check_picture(generate(ColoringConfig(capacity), 2, "train", index))


@pytest.mark.parametrize("capacity", [10, 60])
def test_graphs_are_connected_and_properly_coloured(capacity: int) -> None:
    config = ColoringConfig(capacity)
    for index in range(60):
        graph = generate(config, 3, "train", index).graph
        first, second = graph.edges.T
        assert (graph.node_labels[first] != graph.node_labels[second]).all()
        assert connected_components(graph.edge_matrix(), directed=False)[0] == 1
        assert config.min_size <= graph.size <= capacity


def test_one_pixel() -> None:
    sample = generate(ColoringConfig(1, min_size=1, side=1), 0, "train", 0)
    assert sample.image.shape == (3, 1, 1)
    assert (sample.graph.size, len(sample.graph.edges)) == (1, 0)


def test_turned_samples_keep_graph_and_picture_together() -> None:
    sample = generate(ColoringConfig(10, noise=0), 0, "train", 0)
    borders = {_colors_touching(sample.image)}
    seen = set()
    for seed in range(60):
        turned = augment(sample, np.random.default_rng(seed))
        assert turned.graph is sample.graph
        borders.add(_colors_touching(turned.image))
        row, column = turned.pixels.T
        fills = np.array([RGB[name] for name in turned.graph.node_names], np.float32)
        assert np.array_equal(turned.image[:, row, column], fills.T)
        seen.add(turned.image.tobytes())
    assert len(seen) == 8
    assert len(borders) == 1


def _colors_touching(
    image: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
) -> tuple[tuple[str, str, int], ...]:
    """How many pixel borders there are between each two colours."""
    fills = np.array(list(RGB.values()), np.float32)
    codes = (image.transpose(1, 2, 0)[:, :, None] == fills).all(axis=-1).argmax(axis=-1)
    counted = plain_borders(codes.tolist())
    return tuple(sorted((COLORS[i], COLORS[j], count) for (i, j), count in counted.items()))


@pytest.mark.parametrize("min_pixels", [3, 20])
def test_slivers_are_left_out_of_the_graph(min_pixels: int) -> None:
    config = replace(ColoringConfig.any2graph(), min_pixels=min_pixels)
    regions = contacts = 0
    for index in range(150):
        sample = generate(config, 0, "validation", index)
        rng = stream(0, "validation", index)
        size = draw_size(5, 10, rng)
        pixels = draw_pixels(size, 32, rng)
        labels = plain_labels(pixels.tolist(), 32)
        areas = [sum(line.count(node) for line in labels) for node in range(size)]
        kept = [node for node in range(size) if areas[node] >= min_pixels]
        lengths = {pair: count for pair, count in plain_borders(labels).items() if set(pair) <= set(kept)}
        edges = [[kept.index(i), kept.index(j)] for (i, j), count in lengths.items() if count >= min_pixels]
        assert sample.pixels.tolist() == pixels[kept].tolist()
        assert sample.graph.edges.tolist() == sorted(edges)
        regions += size - len(kept)
        contacts += len(lengths) - len(edges)
    assert contacts > 0
    assert regions > 0 or min_pixels == 3


def test_slivers_are_painted_all_the_same() -> None:
    whole = ColoringConfig(10, side=32)
    for index in range(20):
        kept, dropped = (generate(config, 0, "train", index) for config in (whole, replace(whole, min_pixels=20)))
        assert np.array_equal(kept.image, dropped.image)


@pytest.mark.parametrize("index", [-1, 160_000])
def test_an_index_outside_the_split_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match=r"^index must lie in 0\.\.159999 for train"):
        generate(ColoringConfig(10), 0, "train", index)


@pytest.mark.parametrize(("seed", "split", "field"), [(-1, "train", "seed"), (0, "dev", "split")])
def test_a_bad_name_is_refused(seed: int, split: Split, field: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field} must"):
        generate(ColoringConfig(10), seed, split, 0)
