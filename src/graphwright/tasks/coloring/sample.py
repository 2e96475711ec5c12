"""One sample: the picture and its graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphwright.graphs import Graph
from graphwright.tasks.coloring.config import ColoringConfig
from graphwright.tasks.coloring.dsatur import four_coloring
from graphwright.tasks.coloring.picture import VOCABULARY, paint
from graphwright.tasks.coloring.regions import border_lengths, draw_pixels, draw_size, region_labels
from graphwright.tasks.coloring.stream import stream
from graphwright.tasks.coloring.symmetry import SYMMETRIES, turn_image, turn_pixels
from graphwright.tasks.split import Split


@dataclass(frozen=True, eq=False)
class ColoringSample:
    """A picture and the graph of its regions.

    image: (3, side, side) float32 in [0, 1].
    graph: one node per region, labelled by colour; an edge where two regions touch.
    pixels: (n, 2) int64 row and column of a pixel inside the region of each node.
    """

    image: NDArray[np.float32]
    graph: Graph
    pixels: NDArray[np.int64]


def generate(config: ColoringConfig, seed: int, split: Split, index: int) -> ColoringSample:
    """Sample `index` of a split: a pure function of its arguments."""
    if not 0 <= index < config.length(split):
        raise ValueError(f"index must lie in 0..{config.length(split) - 1} for {split}, got {index}")
    rng = stream(seed, split, index)
    size = draw_size(config.min_size, config.capacity, rng)
    pixels = draw_pixels(size, config.side, rng)
    labels = region_labels(pixels, config.side)
    borders = border_lengths(labels, size)
    colors = four_coloring(borders > 0, rng)
    image = paint(labels, colors, config.noise, config.blur, rng)
    if config.min_pixels > 1:
        kept = np.flatnonzero(np.bincount(labels.ravel(), minlength=size) >= config.min_pixels)
        pixels, colors, borders = pixels[kept], colors[kept], borders[kept][:, kept]
    edges = np.argwhere(borders >= max(1, config.min_pixels))
    edges = edges[edges[:, 0] < edges[:, 1]]
    graph = Graph(colors, edges, np.ones(len(edges), np.int64), VOCABULARY)
    return ColoringSample(image, graph, pixels)


def augment(sample: ColoringSample, rng: np.random.Generator) -> ColoringSample:
    """The sample under a random symmetry of the square (flip, quarter turns); the graph stays as it is."""
    code = int(rng.integers(SYMMETRIES))
    pixels = turn_pixels(sample.pixels, sample.image.shape[-1], code)
    return replace(sample, image=turn_image(sample.image, code), pixels=pixels)
