"""From encoder tokens to one state per slot."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphwright.models.transformer import decoder_layers


class NodeDecoder(nn.Module):
    """A Transformer decoder with one learned query per slot: slots attend to each other and to the tokens."""

    def __init__(self, slots: int, width: int, layers: int, heads: int, dropout: float, memory_width: int) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(slots, width) / width**0.5)
        self.memory = nn.Linear(memory_width, width)
        self.layers = decoder_layers(width, layers, heads, dropout)

    def forward(self, tokens: Tensor, token_mask: Tensor | None) -> Tensor:
        """tokens (b, k, memory width), token_mask (b, k) true at real ones -> slot states (b, n, width)."""
        queries = self.queries.expand(tokens.shape[0], -1, -1)
        result: Tensor = self.layers(queries, self.memory(tokens), token_mask)
        return result
