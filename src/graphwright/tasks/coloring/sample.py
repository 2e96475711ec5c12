"""One sample as a pure function of its name: regions of a raster, their four colours, picture and graph."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import permutations
from typing import Annotated, Literal, Self, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from graphwright.graphs import Graph
from graphwright.settings import Capacity, TaskSettings
from graphwright.settings.choices import Count, NotNegative
from graphwright.tasks.coloring.picture import VOCABULARY, paint
from graphwright.tasks.split import SPLITS, Split, check_split


@dataclass(frozen=True)
class ColoringConfig:
    """What is generated: Coloring N, N = `capacity`; the other defaults are those of the paper.

    `side` and `samples` are numbers here, whatever 0 stands for in settings. Regions and contacts that the graph
    leaves out are painted; it may then be smaller than min_size, or in pieces. With all kept it is connected.
    """

    capacity: Annotated[Capacity, Field(description="Largest number of regions, N.")] = 10
    min_size: Annotated[Count, Field(description="Smallest number of regions.")] = 5
    side: Annotated[int, Field(ge=0, description="Pixels per side; 0 means 4 N.")] = 0
    noise: Annotated[NotNegative, Field(description="Standard deviation of the pixel noise.")] = 0.02
    blur: Annotated[NotNegative, Field(description="Standard deviation of the Gaussian blur, in pixels.")] = 0.0
    min_pixels: Annotated[
        int, Field(ge=0, description="Regions and contacts of fewer pixels are left out of the graph.")
    ] = 0
    samples: Annotated[int, Field(ge=0, description="Samples in all splits; 0 means 20,000 N.")] = 0

    def __post_init__(self) -> None:
        for name, (kind, least) in _kinds().items():
            value = getattr(self, name)
            if not (isinstance(value, int) if kind is int else math.isfinite(value)) or value < least:
                what = "whole" if kind is int else "finite"
                raise ValueError(f"{name} must be a {what} number, at least {least}, got {value!r}")
        object.__setattr__(self, "side", self.side or 4 * self.capacity)
        object.__setattr__(self, "samples", self.samples or 20_000 * self.capacity)
        if self.min_size > self.capacity:
            raise ValueError(f"min_size {self.min_size} is more than capacity {self.capacity}")
        if self.capacity > self.side**2:
            raise ValueError(f"capacity must be at most side * side, {self.side**2}, got {self.capacity}")
        # The largest region has at least this many pixels, so that some node always remains.
        if self.min_pixels > self.side**2 // self.capacity:
            raise ValueError(
                f"min_pixels must be at most side * side / capacity, {self.side**2 // self.capacity}, "
                f"got {self.min_pixels}"
            )
        if self.samples < 10:
            raise ValueError(f"samples must be at least 10, one for every split, got {self.samples}")

    @classmethod
    def any2graph(cls) -> ColoringConfig:
        """The smaller task of Krzakala et al., 2024: 32 x 32, blurred, slivers left out of the graph.

        Sizes 5..10 and 100,000 training samples, as that project's page says. The noise, which the
        specification does not exempt, stays at its default; blur comes first, then noise. Colours are proper
        for all regions and contacts painted, those that the graph leaves out included.
        """
        return cls(capacity=10, side=32, blur=0.4, min_pixels=3, samples=125_000)

    def length(self, split: Split) -> int:
        """Number of samples of a split."""
        check_split(split)
        tenth = self.samples // 10
        return self.samples - 2 * tenth if split == "train" else tenth


@cache
def _kinds() -> dict[str, tuple[type, int]]:
    """Type and least value of every field, as its annotation tells settings."""
    hints = get_type_hints(ColoringConfig, include_extras=True)
    told = ((name, hint.__origin__, info) for name, hint in hints.items() for info in hint.__metadata__)
    return {name: (kind, part.ge) for name, kind, info in told for part in info.metadata if hasattr(part, "ge")}


class ColoringTask(TaskSettings, ColoringConfig):  # type: ignore[misc]  # both are frozen, which mypy cannot see
    """Coloring: a picture of coloured regions; the graph says which regions touch and what colours they have."""

    input_kinds = ("picture",)
    default_encoder = "cnn"

    kind: Literal["coloring"] = "coloring"
    """What is predicted from what: coloring, graphs of regions from pictures."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Which data set: sample i is a pure function of seed, split and i."""
    diffusion: bool = True
    """Also predict how many neighbours of each colour a region has, and match by it."""

    @property
    def config(self) -> ColoringConfig:
        return ColoringConfig(**{each.name: getattr(self, each.name) for each in fields(ColoringConfig)})

    @model_validator(mode="after")
    def _can_be_generated(self) -> Self:
        _ = self.config
        return self


def stream(seed: int, split: Split, index: int, epoch: int | None = None) -> np.random.Generator:
    """The generator of sample `index`; with an epoch, the one that turns the sample in that epoch.

    Philox is a keyed bijection of a 256-bit counter. Seed and split are the key, index and epoch the upper
    half of the counter: two samples of a split read disjoint ranges, 2^128 blocks long, of one sequence.
    No state is shared, and no order of drawing, number of workers or restart can change a sample.
    """
    check_split(split)
    for name, value in (("seed", seed), ("index", index), ("epoch", epoch or 0)):
        if not 0 <= value < 2**63:
            raise ValueError(f"{name} must lie in 0..2^63 - 1, got {value}")
    key = np.array((seed, SPLITS.index(split)), np.uint64)
    counter = np.array((0, 0, 0 if epoch is None else epoch + 1, index), np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


# Distances are compared in blocks of about this many entries, which fit the cache and bound the memory.
_BLOCK = 2**18


def draw_size(low: int, high: int, rng: np.random.Generator) -> int:
    """A size, uniform in low..high."""
    return int(rng.integers(low, high + 1))


def draw_pixels(count: int, side: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(count, 2) distinct pixels (row, column), uniform."""
    pixels = np.empty((count, 2), np.int64)
    np.divmod(rng.choice(side * side, count, replace=False), side, out=(pixels[:, 0], pixels[:, 1]))
    return pixels


def region_labels(seeds: NDArray[np.int64], side: int) -> NDArray[np.intp]:
    """(side, side) index of the seed (n, 2) nearest to each pixel in L1; ties go to the lowest index.

    Every region is 4-connected and holds its seed: a step from a pixel towards its seed shortens that
    distance by one and no other by more. The graph of touching regions is thus the grid with each region
    contracted to a node, hence connected and planar, as the grid is, and so four-colourable.
    """
    bits = (len(seeds) - 1).bit_length()
    # Distance and index in one integer: the minimum over seeds is then both, ties included.
    dtype = np.uint16 if (2 * side) << bits <= 2**16 else np.uint32
    apart = np.abs(seeds[:, :, None] - np.arange(side)) << bits
    apart[:, 1] += np.arange(len(seeds))[:, None]
    rows, columns = apart.astype(dtype).transpose(1, 0, 2)
    nearest = np.empty((side, side), dtype)
    step = max(1, _BLOCK // (len(seeds) * side))
    for top in range(0, side, step):
        block = rows[:, top : top + step, None] + columns[:, None, :]
        block.min(axis=0, out=nearest[top : top + step])
    return (nearest & ((1 << bits) - 1)).astype(np.intp)


def border_lengths(labels: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """(count, count) horizontal and vertical pixel borders between two regions, 0 on the diagonal."""
    side, flat = len(labels), labels.ravel()
    across = flat[1:] != flat[:-1]
    across[side - 1 :: side] = False  # from the end of a row to the next one's beginning
    right, below = np.flatnonzero(across), np.flatnonzero(flat[side:] != flat[:-side])
    here = flat.take(np.concatenate((right, below)))
    there = flat.take(np.concatenate((right + 1, below + side)))
    lengths = np.bincount(here * count + there, minlength=count * count).reshape(count, count)
    return lengths + lengths.T


_PREFERENCES = tuple(permutations(range(4)))


def four_coloring(adjacent: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """(n,) colours 0..3, different wherever `adjacent` (n, n, symmetric) is true.

    DSATUR (Brélaz, 1979): colour next the node whose neighbours show most colours, ties and colours at
    random; go back where no colour is left. A search that goes back often was unlucky in its first choices,
    so past a limit it starts anew with others and twice the limit: no heavy tail, and always an answer.
    """
    count = len(adjacent)
    limit = 4 * count
    while True:
        order = rng.permutation(count)
        codes = rng.integers(len(_PREFERENCES), size=count)
        preferences = [_PREFERENCES[code] for code in codes.tolist()]
        solved = _search(_bits(adjacent[order][:, order]), preferences, limit)
        if solved is not None:
            colors = np.empty(count, np.int64)
            colors[order] = solved
            return colors
        limit *= 2


def _bits(rows: NDArray[np.bool_]) -> list[int]:
    """Each row (n,) as an integer, column j as bit j."""
    packed = np.packbits(rows, axis=1, bitorder="little")
    data, width = packed.tobytes(), packed.shape[1]
    return [int.from_bytes(data[at * width : (at + 1) * width], "little") for at in range(len(rows))]


def _search(neighbors: list[int], preferences: list[tuple[int, ...]], limit: int) -> list[int] | None:
    """Colours of all nodes, or None after going back `limit` times; an error if there is no colouring.

    Sets of nodes are bits of an integer. neighbors: of each node. preferences: colours, the last tried first.
    """
    colors = [0] * len(neighbors)
    uncolored = (1 << len(neighbors)) - 1
    blocked = [0, 0, 0, 0]  # by colour: the nodes next to it
    trail: list[tuple[int, list[int], int, list[int]]] = []
    while uncolored:
        chosen = _most_saturated(blocked, uncolored)
        node = (chosen & -chosen).bit_length() - 1
        free = [color for color in preferences[node] if not blocked[color] >> node & 1]
        while not free:
            if not trail:
                raise ValueError("the graph has no proper four-colouring")
            if limit == 0:
                return None
            limit -= 1
            node, free, uncolored, blocked = trail.pop()
        colors[node] = color = free.pop()
        trail.append((node, free, uncolored, blocked))
        uncolored &= ~(1 << node)
        blocked = blocked.copy()
        blocked[color] |= neighbors[node]
    return colors


def _most_saturated(blocked: list[int], uncolored: int) -> int:
    """The uncoloured nodes next to most colours, as bits."""
    a, b, c, d = blocked
    both, either, both_, either_ = a & b, a | b, c & d, c | d
    return (
        both & both_ & uncolored
        or (both & either_ | either & both_) & uncolored
        or (both | both_ | either & either_) & uncolored
        or (either | either_) & uncolored
        or uncolored
    )


SYMMETRIES = 8
"""Number of symmetries; code = quarter turns counterclockwise + 4 if flipped left to right first."""


def turn_image(image: NDArray[np.float32], code: int) -> NDArray[np.float32]:
    """(..., side, side) picture under a symmetry."""
    flipped = image[..., ::-1] if code >= 4 else image
    return np.ascontiguousarray(np.rot90(flipped, code % 4, axes=(-2, -1)))


def turn_pixels(pixels: NDArray[np.int64], side: int, code: int) -> NDArray[np.int64]:
    """(n, 2) where the symmetry takes the pixels (row, column)."""
    row, column = pixels.T
    if code >= 4:
        column = side - 1 - column
    for _ in range(code % 4):
        row, column = side - 1 - column, row
    return np.stack((row, column), axis=1)


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
