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

    def forward(self, tokens: Tensor, token_mask: Tensor | None, whole: Tensor | None = None) -> Tensor:
        """Slot states (b, n, width).

        tokens: (b, k, memory width). token_mask: (b, k), true at real ones. whole: (b, width), what is known of
        the input as a whole, which every query then knows from the start.
        """
        return self._attend(self.queries, tokens, token_mask, whole)

    def _attend(self, queries: Tensor, tokens: Tensor, token_mask: Tensor | None, whole: Tensor | None) -> Tensor:
        """Queries (q, width) -> states (b, q, width)."""
        queries = queries.expand(tokens.shape[0], -1, -1)
        if whole is not None:
            queries = queries + whole[:, None]
        ignored = None if token_mask is None else ~token_mask
        result: Tensor = self.layers(queries, self.memory(tokens), memory_key_padding_mask=ignored)
        return result
