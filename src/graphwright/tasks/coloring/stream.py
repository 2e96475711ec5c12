"""The random numbers of one sample, a pure function of its name."""

from __future__ import annotations

import numpy as np

from graphwright.tasks.split import SPLITS, Split, check_split


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
