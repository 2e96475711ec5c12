"""Learned vectors of known graphs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from graphwright.models.bags import Bags

SCALE = 2.0


class GraphVectors(nn.Module):
    """A vector for every known graph, the sum of those of its parts over the root of their number.

    Graphs that have parts in common share what is learned of them: of most scaffolds there are a few molecules, of
    their rings and links many. Without parts given, every graph is one of its own.
    """

    rows: Tensor
    starts: Tensor

    def __init__(self, width: int, parts: Bags) -> None:
        super().__init__()
        # Copies, for loading writes into them.
        self.register_buffer("rows", parts.rows.clone())
        self.register_buffer("starts", parts.starts.clone())
        self.parts = nn.Parameter(torch.randn(parts.height, width) / width**0.5)

    def forward(self) -> Tensor:
        """(graphs, width)."""
        bags = Bags(self.rows, self.starts, len(self.parts))
        return bags.sums(self.parts) * (SCALE / bags.counts().to(self.parts.dtype).sqrt())[:, None]

    @torch.no_grad()
    def fold(self) -> None:
        """Give every graph one part of its own, all of its vector: nothing changes but what can be learned."""
        vectors, single = self(), Bags.single(len(self.starts))
        self.rows, self.starts = single.rows, single.starts
        self.parts = nn.Parameter(vectors / SCALE)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Takes parts of any number: a model does not say how many its graphs have in common.

        Where the number is right, as when a run is resumed, the parameter stays the one that is being trained.
        """
        rows, parts = state_dict.get(prefix + "rows"), state_dict.get(prefix + "parts")
        if rows is not None and rows.shape != self.rows.shape:
            self.rows = self.rows.new_empty(rows.shape)
        if parts is not None and parts.shape != self.parts.shape:
            self.parts = nn.Parameter(self.parts.new_empty(parts.shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)
