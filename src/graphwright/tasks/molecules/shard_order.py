"""A shuffle of many blocks that needs only a few of them at a time, as a pure function of seed, step and rank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Sampler

LANES, WINDOW = 8, 4
"""Streams that a batch is drawn from, and blocks that each of them mixes; fewer streams mix as many together."""

BLOCKS_AT_ONCE = 2 * LANES * WINDOW
"""Blocks that batches in a row touch at most: each lane's window, and the one that it moves to."""

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ShardOrder(Sampler[list[tuple[int, int]]]):
    """Batches of (index, epoch) from step `first` on, for ever, as `training.order.StepOrder` gives them.

    block_sizes: molecules in each block; indices count through the blocks in order.

    Each epoch shuffles the blocks, lays them end to end and cuts that row into lanes of equal length. A lane is
    shuffled within windows of a few blocks, and every batch takes as much from each lane. Dealt to the ranks in
    turn, a joint batch gives each rank whole lanes (if their number allows): a rank reads its own blocks alone,
    yet any number of ranks sees the same joint batches. What few blocks hold is shuffled as a whole.
    """

    block_sizes: tuple[int, ...]
    batch_size: int
    seed: int
    first: int = 0
    rank: int = 0
    ranks: int = 1

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {self.batch_size}")
        if self.batch_size > self.samples:
            raise ValueError(f"batch_size {self.batch_size} is more than the {self.samples} training samples")
        if self.batch_size % self.ranks:
            raise ValueError(f"batch_size {self.batch_size} is not a multiple of the {self.ranks} processes")

    @cached_property
    def samples(self) -> int:
        """Molecules in all blocks."""
        return sum(self.block_sizes)

    @property
    def lanes(self) -> int:
        """Lanes: up to eight, so that they share a batch evenly; the number of ranks has no say in it."""
        return gcd(self.batch_size, LANES)

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in an epoch."""
        return self.samples // self.batch_size

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        step = self.first
        while True:
            number = step // self.steps_per_epoch
            epoch = _Epoch(np.array(self.block_sizes, np.int64), self.lanes, self.seed, number)
            for at in range(step % self.steps_per_epoch, self.steps_per_epoch):
                batch = epoch.batch(at, self.batch_size)
                yield [(int(index), number) for index in batch[self.rank :: self.ranks]]
                step += 1


class _Epoch:
    """The order of one epoch, of which only the windows in use are ever laid out."""

    def __init__(self, sizes: IntArray, lanes: int, seed: int, epoch: int) -> None:
        self.lanes, self.window, self.key = lanes, LANES * WINDOW // lanes, (seed, epoch)
        random = np.random.default_rng(self.key)
        self.blocks = random.permutation(len(sizes))
        self.firsts = np.concatenate([[0], np.cumsum(sizes)])
        """(blocks + 1,) index of the first molecule of each block."""
        self.starts = np.concatenate([[0], np.cumsum(sizes[self.blocks])])
        """(blocks + 1,) where each shuffled block starts."""
        self.length = int(self.starts[-1]) // lanes
        few = len(sizes) <= LANES * WINDOW
        self.whole = random.permutation(self.starts[-1]) if few else None
        self._windows: dict[int, tuple[int, IntArray]] = {}

    def batch(self, at: int, size: int) -> IntArray:
        """(size,) indices of a batch; position j comes from lane j % lanes."""
        share = size // self.lanes
        if self.whole is not None:
            return self.whole[at * size : (at + 1) * size]
        parts = [self._lane(lane, at * share, (at + 1) * share) for lane in range(self.lanes)]
        return np.stack(parts, axis=1).reshape(-1)

    def _lane(self, lane: int, low: int, high: int) -> IntArray:
        """Indices at the places low..high-1 of a lane."""
        found: list[IntArray] = []
        place, end = lane * self.length + low, lane * self.length + high
        while place < end:
            start, order = self._window(lane, place)
            part = order[place - start : end - start]
            found.append(part)
            place += len(part)
        return np.concatenate(found)

    def _window(self, lane: int, place: int) -> tuple[int, IntArray]:
        """The window of a lane that holds a place: where it starts, and its shuffled indices."""
        start, order = self._windows.get(lane, (0, np.zeros(0, np.int64)))
        if start <= place < start + len(order):
            return start, order
        number = (int(np.searchsorted(self.starts, place, side="right")) - 1) // self.window
        low = max(int(self.starts[number * self.window]), lane * self.length)
        behind = min((number + 1) * self.window, len(self.blocks))
        high = min(int(self.starts[behind]), (lane + 1) * self.length)
        # Lanes from 1: numpy takes a key that ends in zeros for the same without them.
        places = low + np.random.default_rng((*self.key, 1 + lane, number)).permutation(high - low)
        block = np.searchsorted(self.starts, places, side="right") - 1
        order = self.firsts[self.blocks[block]] + places - self.starts[block]
        self._windows[lane] = low, order
        return low, order
