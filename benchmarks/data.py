"""Coloring samples per second beside plain loops over pixels, which the fast generator is also tested against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.measurement import Row, median_milliseconds
from graphwright.graphs import Graph
from graphwright.tasks.coloring import ColoringConfig, ColoringSample, Split, generate
from graphwright.tasks.coloring.picture import COLORS, RGB, VOCABULARY, standard_noise
from graphwright.tasks.coloring.sample import draw_pixels, draw_size, four_coloring, stream
from graphwright.training.processes import threads


def plain_labels(seeds: Sequence[Sequence[int]], side: int) -> list[list[int]]:
    """Index of the seed (row, column) nearest to each pixel in L1, the lowest on ties, pixel by pixel."""
    labels = []
    for row in range(side):
        line = []
        for column in range(side):
            owner, shortest = 0, 2 * side
            for index, (seed_row, seed_column) in enumerate(seeds):
                distance = abs(row - seed_row) + abs(column - seed_column)
                if distance < shortest:
                    owner, shortest = index, distance
            line.append(owner)
        labels.append(line)
    return labels


def plain_borders(labels: Sequence[Sequence[int]]) -> dict[tuple[int, int], int]:
    """Number of pixel borders between each two touching regions, smaller index first, pixel by pixel."""
    borders: dict[tuple[int, int], int] = {}
    side = len(labels)
    for row in range(side):
        for column in range(side):
            for next_row, next_column in ((row, column + 1), (row + 1, column)):
                if next_row < side and next_column < side:
                    here, there = sorted((labels[row][column], labels[next_row][next_column]))
                    if here != there:
                        borders[here, there] = borders.get((here, there), 0) + 1
    return borders


def plain_sample(config: ColoringConfig, seed: int, split: Split, index: int) -> ColoringSample:
    """The sample that `generate` gives, bit for bit, pixel by pixel; no blur, all regions kept."""
    if config.blur or config.min_pixels > 1:
        raise ValueError("blur and min_pixels are not in the plain generator")
    rng = stream(seed, split, index)
    size = draw_size(config.min_size, config.capacity, rng)
    pixels = draw_pixels(size, config.side, rng)
    labels = plain_labels(pixels.tolist(), config.side)
    edges = sorted(plain_borders(labels))
    adjacent = np.zeros((size, size), bool)
    for i, j in edges:
        adjacent[i, j] = adjacent[j, i] = True
    colors = four_coloring(adjacent, rng)
    image = _plain_image(labels, [RGB[COLORS[color]] for color in colors], config, rng)
    graph = Graph(colors, np.array(edges), np.ones(len(edges), np.int64), VOCABULARY)
    return ColoringSample(image, graph, pixels)


def _plain_image(
    labels: list[list[int]],
    fills: list[tuple[float, float, float]],
    config: ColoringConfig,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    image = np.empty((3, config.side, config.side), np.float32)
    grain = standard_noise(image.size if config.noise else 0, rng).tolist()
    at = 0
    for channel in range(3):
        for row in range(config.side):
            for column in range(config.side):
                value = np.float32(fills[labels[row][column]][channel])
                if config.noise:
                    value += np.float32(grain[at]) * np.float32(config.noise)
                image[channel, row, column] = min(max(value, np.float32(0)), np.float32(1))
                at += 1
    return image


Generator = Callable[[ColoringConfig, int, Split, int], ColoringSample]


def measure_data(
    sizes: tuple[int, ...] = (10, 20, 60), samples: int = 300, peer_samples: int = 5, repeats: int = 3
) -> Iterator[Row]:
    """Whole samples (picture, noise, graph, colouring) on one core."""
    with threads(1):
        for n in sizes:
            ours = _milliseconds(generate, n, samples, repeats)
            peer = _milliseconds(plain_sample, n, peer_samples, 1)
            speed = {"samples_per_second": 1000 / ours}
            yield Row("coloring sample", n, 1, 1, ours, "plain loop over pixels", peer, extras=speed)


def _milliseconds(generator: Generator, n: int, samples: int, repeats: int) -> float:
    config = ColoringConfig(n)

    def make_all() -> None:
        for index in range(samples):
            generator(config, 0, "train", index)

    return median_milliseconds(make_all, repeats) / samples
