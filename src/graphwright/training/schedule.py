"""What each step of a run sees: the budget, the learning rate over it, and the order of the samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphwright.settings import Train
from graphwright.tasks.task import Batches, Samples


@dataclass(frozen=True)
class Budget:
    """How far a run may go: steps, minutes, or both (the strictest counts)."""

    steps: int | None
    minutes: float | None

    @classmethod
    def of(cls, train: Train, steps_per_epoch: int) -> Budget:
        """The budget of a run, epochs counted in steps."""
        limits = [train.steps, None if train.epochs is None else train.epochs * steps_per_epoch]
        given = [limit for limit in limits if limit is not None]
        return cls(min(given) if given else None, train.minutes)

    def progress(self, step: int, seconds: float) -> float:
        """Share of the budget used, 0 to 1, after `step` steps and `seconds` of training."""
        shares = [0.0]
        if self.steps is not None:
            shares.append(step / self.steps)
        if self.minutes is not None:
            shares.append(seconds / (60 * self.minutes))
        return min(max(shares), 1.0)


def learning_rate(train: Train, progress: float) -> float:
    """Linear warm-up over the first share of the budget, then a cosine down to the minimum."""
    if progress < train.warmup:
        # Never exactly zero: the first step would be lost.
        return train.learning_rate * max(progress / train.warmup, 0.01)
    fall = (progress - train.warmup) / (1 - train.warmup)
    span = train.learning_rate - train.minimum_learning_rate
    return train.minimum_learning_rate + span * (1 + math.cos(math.pi * fall)) / 2


def order_of(train: Train, data: Samples, first: int = 0, rank: int = 0, ranks: int = 1) -> Batches:
    """Which samples each step from `first` on sees, as the data set wants it or shuffled as a whole."""
    own = data.order(train.batch_size, train.seed, first, rank, ranks)
    if own is not None:
        return own
    return StepOrder(len(data), train.batch_size, train.seed, first, rank, ranks)


@dataclass(frozen=True)
class StepOrder(Batches):
    """Each epoch is a fresh shuffle of all samples."""

    samples: int
    batch_size: int
    seed: int
    first: int = 0
    rank: int = 0
    ranks: int = 1

    def epoch(self, number: int) -> Callable[[int], NDArray[np.int64]]:
        order = np.random.default_rng([self.seed, number]).permutation(self.samples)
        return lambda at: order[at * self.batch_size : (at + 1) * self.batch_size]
