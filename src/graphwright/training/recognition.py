"""Which of the known graphs a target is, and what they have in common."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphwright.decoding import Library
from graphwright.graphs import GraphBatch
from graphwright.graphs.neighbourhoods import neighbourhoods
from graphwright.models.bags import Bags

SMOOTHING = 0.05
"""Share of the certainty that goes to all graphs alike: few samples stand behind most of them."""
UNKNOWN = -1
RADIUS = 2
"""Edges up to which the surroundings of a node are a part: of scaffolds more made no difference."""


class Recognition:
    """The loss of a model's logits of known graphs."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def __call__(self, logits: Tensor, target: GraphBatch) -> Tensor:
        """(b, k) logits -> (b,) cross-entropies, 0 where the library does not have the target."""
        return functional.cross_entropy(
            logits, self.places(target), ignore_index=UNKNOWN, label_smoothing=SMOOTHING, reduction="none"
        )

    def places(self, target: GraphBatch) -> Tensor:
        """(b,) where the targets are in the library; `UNKNOWN` where they are not."""
        found = [self.library.distinct.find(graph) for graph in target.graphs()]
        places = [UNKNOWN if place is None else place for place in found]
        return torch.tensor(places, dtype=torch.int64, device=target.mask.device)


def shared_parts(library: Library) -> Bags:
    """Of every graph the neighbourhoods that another one has, too, and one part of its own."""
    found = [neighbourhoods(graph, RADIUS) for graph in library.graphs]
    counts = Counter(part for parts in found for part in parts)
    numbers = {part: at for at, part in enumerate(sorted(part for part, count in counts.items() if count > 1))}
    rows = [
        [*sorted(numbers[part] for part in parts if part in numbers), len(numbers) + at]
        for at, parts in enumerate(found)
    ]
    starts = np.cumsum([0, *map(len, rows)])[:-1]
    return Bags(
        torch.from_numpy(np.concatenate(rows)), torch.from_numpy(starts), height=len(numbers) + len(library)
    )
