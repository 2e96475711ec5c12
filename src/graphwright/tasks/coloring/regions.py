"""Regions of a raster: who owns each pixel, and who touches whom."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
