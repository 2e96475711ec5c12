"""Transformer layers as all our networks have them: normalised first, without positions.

Parameters are named and shaped as torch's own layers name them, so that weights are interchangeable. Torch's copy
every tensor several times on its way through an attention, which takes a processor an eighth of the time.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from graphwright.models.arithmetic import Linear, attend, linear


class Attention(nn.Module):
    """softmax(Q K' / sqrt(d)) V over heads, of a sequence to itself or to another one."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not a multiple of heads {heads}")
        self.heads, self.dropout = heads, dropout
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = Linear(width, width)
        nn.init.xavier_uniform_(self.in_proj_weight)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def forward(self, asking: Tensor, asked: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """asking (b, n, width), asked (b, k, width) or None for itself, mask (b, k) true where it may look."""
        weight, bias, width = self.in_proj_weight, self.in_proj_bias, asking.shape[2]
        if asked is None:
            queries, keys, values = self._split(linear(asking, weight, bias), 3)
        else:
            (queries,) = self._split(linear(asking, weight[:width], bias[:width]), 1)
            keys, values = self._split(linear(asked, weight[width:], bias[width:]), 2)
        seen = attend(
            queries,
            keys,
            values,
            None if mask is None else mask[:, None, None, :],
            self.dropout if self.training else 0.0,
        )
        result: Tensor = self.out_proj(seen.transpose(1, 2).flatten(2))
        return result

    def _split(self, projected: Tensor, parts: int) -> tuple[Tensor, ...]:
        """(b, n, parts * width) -> parts of (b, heads, n, width / heads)."""
        b, n, width = projected.shape
        return (
            projected.view(b, n, parts, self.heads, width // (parts * self.heads)).permute(2, 0, 3, 1, 4).unbind(0)
        )


class _FeedForward(nn.Module):
    """The part of a layer that every token goes through by itself."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.linear1 = Linear(width, 4 * width)
        self.linear2 = Linear(4 * width, width)
        for layer in (self.linear1, self.linear2):
            nn.init.xavier_uniform_(layer.weight)
        self.drop = nn.Dropout(dropout)

    def feed_forward(self, tokens: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        result: Tensor = self.drop(self.linear2(self.drop(gelu(self.linear1(tokens)))))
        return result


class EncoderLayer(_FeedForward):
    """Tokens attend to each other."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__(width, dropout)
        self.self_attn = Attention(width, heads, dropout)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        """tokens (b, k, width), mask (b, k) true at real ones."""
        tokens = tokens + self.drop(self.self_attn(self.norm1(tokens), mask=mask))
        return tokens + self.feed_forward(self.norm2(tokens))


class DecoderLayer(_FeedForward):
    """Slots attend to each other, then to the tokens."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__(width, dropout)
        self.self_attn = Attention(width, heads, dropout)
        self.multihead_attn = Attention(width, heads, dropout)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))

    def forward(
        self, slots: Tensor, tokens: Tensor, mask: Tensor | None, slot_mask: Tensor | None = None
    ) -> Tensor:
        """slots (b, n, width), tokens (b, k, width), mask (b, k) and slot_mask (b, n) true at real ones."""
        slots = slots + self.drop(self.self_attn(self.norm1(slots), mask=slot_mask))
        slots = slots + self.drop(self.multihead_attn(self.norm2(slots), tokens, mask))
        return slots + self.feed_forward(self.norm3(slots))


class _Stack(nn.Module):
    """Layers one after another, and a last normalisation."""

    def __init__(self, layers: list[nn.Module], width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(width)

    def forward(self, states: Tensor, *context: Tensor | None) -> Tensor:
        """(b, n, width) -> (b, n, width), with what every layer is given besides."""
        for layer in self.layers:
            states = layer(states, *context)
        result: Tensor = self.norm(states)
        return result


def encoder_layers(width: int, layers: int, heads: int, dropout: float) -> nn.Module:
    """(tokens (b, k, width), mask (b, k) or None) -> (b, k, width)."""
    return _Stack([EncoderLayer(width, heads, dropout) for _ in range(layers)], width)


def decoder_layers(width: int, layers: int, heads: int, dropout: float) -> nn.Module:
    """(slots (b, n, width), tokens (b, k, width), mask (b, k) or None, optionally slot mask) -> (b, n, width)."""
    return _Stack([DecoderLayer(width, heads, dropout) for _ in range(layers)], width)
