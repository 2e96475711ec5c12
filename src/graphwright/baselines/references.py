"""The training samples that a baseline may look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphwright.graphs import Graph
from graphwright.tasks import Samples, Task


@dataclass(frozen=True, eq=False)
class References:
    """Some samples of a training split, by their indices there, ascending."""

    samples: Samples
    indices: list[int]

    def __len__(self) -> int:
        return len(self.indices)

    def graph(self, at: int) -> Graph:
        """The graph of the sample at this index into `indices`."""
        graph: Graph = self.samples[self.indices[at]].graph
        return graph


def references_of(task: Task, count: int | None, seed: int = 0) -> References:
    """`count` training samples drawn without replacement, or all of them; spectra count one by one.

    The draw is a pure function of the seed and of how many samples there are.
    """
    if count is not None and count < 1:
        raise ValueError(f"references must be at least 1, got {count}")
    samples = task.references()
    if count is None or count >= len(samples):
        return References(samples, list(range(len(samples))))
    drawn = np.random.default_rng(seed).choice(len(samples), count, replace=False)
    return References(samples, np.sort(drawn).tolist())
