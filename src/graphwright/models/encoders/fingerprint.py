"""Fingerprints to tokens: a Transformer over the active bits."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphwright.models.encoders.tokens import Tokens
from graphwright.models.transformer import encoder_layers


class FingerprintEncoder(nn.Module):
    """One embedding per bit, no positions: a fingerprint is a set. A start token stands for the whole of it.

    Codes 0..bits - 1 are active bits, `start` = bits and `padding` = bits + 1.
    """

    def __init__(self, bits: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.start, self.padding = bits, bits + 1
        self.embedding = nn.Embedding(bits + 2, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.layers = encoder_layers(width, layers, heads, dropout)

    def forward(self, codes: Tensor) -> Tokens:
        """codes (b, k) int64, each row with a start token, padded -> tokens (b, k, width)."""
        if codes.ndim != 2 or codes.dtype != torch.int64:
            raise ValueError(f"codes must be int64 of shape (b, k), got {codes.dtype} {tuple(codes.shape)}")
        real = codes != self.padding
        # Attention without a mask is faster, and most batches of one fingerprint need none.
        mask = real if codes.is_meta or not bool(real.all()) else None
        # Every bit is the environment of an atom; the start token is nobody's.
        return Tokens(self.layers(self.embedding(codes), mask), mask, codes < self.start)
