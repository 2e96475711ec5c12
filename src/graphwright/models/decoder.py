"""From encoder tokens to one state per slot."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphwright.models.transformer import start_apart


class NodeDecoder(nn.Module):
    """A Transformer decoder with one learned query per slot: slots attend to each other and to the tokens."""

    def __init__(self, slots: int, width: int, layers: int, heads: int, dropout: float, memory_width: int) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(slots, width) / width**0.5)
        self.memory = nn.Linear(memory_width, width)
        layer = nn.TransformerDecoderLayer(
            width, heads, 4 * width, dropout, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = start_apart(nn.TransformerDecoder(layer, layers, nn.LayerNorm(width)))

    def forward(self, tokens: Tensor, token_mask: Tensor | None) -> Tensor:
        """tokens (b, k, memory width), token_mask (b, k) true at real ones -> slot states (b, n, width)."""
        queries = self.queries.expand(tokens.shape[0], -1, -1)
        ignored = None if token_mask is None else ~token_mask
        result: Tensor = self.layers(queries, self.memory(tokens), memory_key_padding_mask=ignored)
        return result
