"""Confidence intervals by resampling."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

DRAWS_TOGETHER = 1_000_000


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


def bootstrap_interval(
    values: ArrayLike,
    groups: Sequence[Hashable] | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap interval of the mean of values (m,).

    groups: a name for each value (its formula, its molecule). Values of a group are not independent of each other:
    whole groups are then drawn, as many as there are, and the mean is over all the values drawn.
    """
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"values must have shape (m,) with m > 0, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"values[{int(np.flatnonzero(~np.isfinite(array))[0])}] is not finite")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    if resamples < 1:
        raise ValueError(f"resamples must be positive, got {resamples}")
    sums, sizes = (array, np.ones_like(array)) if groups is None else _grouped(array, groups)
    means = _resampled_means(sums, sizes, resamples, np.random.default_rng(seed))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def _grouped(
    values: NDArray[np.float64], groups: Sequence[Hashable]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum and number of the values in each group."""
    if len(groups) != len(values):
        raise ValueError(f"groups has {len(groups)} entries for {len(values)} values")
    codes: dict[Hashable, int] = {}
    membership = [codes.setdefault(group, len(codes)) for group in groups]
    sums, sizes = np.zeros(len(codes)), np.zeros(len(codes))
    np.add.at(sums, membership, values)
    np.add.at(sizes, membership, 1)
    return sums, sizes


def _resampled_means(
    sums: NDArray[np.float64], sizes: NDArray[np.float64], resamples: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """(resamples,) means of as many draws, with replacement, as there are sums."""
    means = np.empty(resamples)
    together = max(1, DRAWS_TOGETHER // len(sums))
    for begin in range(0, resamples, together):
        count = min(together, resamples - begin)
        drawn = generator.integers(len(sums), size=(count, len(sums)))
        means[begin : begin + count] = sums[drawn].sum(1) / sizes[drawn].sum(1)
    return means
