"""Which of the known graphs a target is."""

from __future__ import annotations

from hashlib import blake2b

import torch
from torch import Tensor
from torch.nn import functional

from graphwright.decoding import Library
from graphwright.graphs import GraphBatch

SMOOTHING = 0.05
"""Share of the certainty that goes to all graphs alike: few samples stand behind most of them."""
UNKNOWN = -1


class Recognition:
    """The loss of a model's logits of known graphs. Remembers every target that it has looked up."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._places: dict[bytes, int] = {}

    def __call__(self, logits: Tensor, target: GraphBatch) -> Tensor:
        """(b, k) logits -> (b,) cross-entropies, 0 where the library does not have the target."""
        return functional.cross_entropy(
            logits, self.places(target), ignore_index=UNKNOWN, label_smoothing=SMOOTHING, reduction="none"
        )

    def places(self, target: GraphBatch) -> Tensor:
        """(b,) where the targets are in the library; `UNKNOWN` where they are not."""
        # The same graph comes again with its nodes in the same order: isomorphism is for the first time.
        keys = torch.cat([target.mask.long(), target.node_labels, target.edge_labels.flatten(1)], 1).short().cpu()
        digests = [blake2b(row.numpy().tobytes(), digest_size=16).digest() for row in keys]
        found = [self._place(digest, target, at) for at, digest in enumerate(digests)]
        return torch.tensor(found, device=target.mask.device)

    def _place(self, key: bytes, target: GraphBatch, at: int) -> int:
        if key not in self._places:
            (graph,) = target.select(torch.tensor([at], device=target.mask.device)).graphs()
            place = self._library.distinct.find(graph)
            self._places[key] = UNKNOWN if place is None else place
        return self._places[key]
