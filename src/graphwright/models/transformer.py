"""Transformer layers as all our networks have them."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

Layers = TypeVar("Layers", bound=nn.Module)


def token_layers(width: int, layers: int, heads: int, dropout: float) -> nn.TransformerEncoder:
    """Self-attention over tokens (b, k, width), normalised first, without positions."""
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout, activation="gelu", batch_first=True, norm_first=True
    )
    return start_apart(nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False))


def start_apart(layers: Layers) -> Layers:
    """The layers with fresh weights each: torch makes them as copies of one."""
    for parameter in layers.parameters():
        if parameter.ndim > 1:
            nn.init.xavier_uniform_(parameter)
    return layers
