"""Which of the known graphs a target is."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from graphwright.decoding import Library
from graphwright.graphs import GraphBatch

SMOOTHING = 0.05
"""Share of the certainty that goes to all graphs alike: few samples stand behind most of them."""
UNKNOWN = -1


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
