"""Which samples a step sees: a pure function of seed, step and rank, so that resuming needs no state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from torch.utils.data import Sampler


@dataclass(frozen=True)
class StepOrder(Sampler[list[tuple[int, int]]]):
    """Batches of (index, epoch) from step `first` on, for ever; each epoch is a fresh shuffle, its tail dropped.

    A global batch is dealt to the ranks in turn, so that any number of processes sees the same joint batches.
    """

    samples: int
    batch_size: int
    seed: int
    first: int = 0
    rank: int = 0
    ranks: int = 1

    def __post_init__(self) -> None:
        if self.batch_size > self.samples:
            raise ValueError(f"batch_size {self.batch_size} is more than the {self.samples} training samples")
        if self.batch_size % self.ranks:
            raise ValueError(f"batch_size {self.batch_size} is not a multiple of the {self.ranks} processes")

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in an epoch."""
        return self.samples // self.batch_size

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        step = self.first
        while True:
            epoch = step // self.steps_per_epoch
            order = np.random.default_rng([self.seed, epoch]).permutation(self.samples)
            for at in range(step % self.steps_per_epoch, self.steps_per_epoch):
                batch = order[at * self.batch_size : (at + 1) * self.batch_size]
                yield [(int(index), epoch) for index in batch[self.rank :: self.ranks]]
                step += 1
