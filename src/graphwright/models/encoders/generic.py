"""Inputs of no particular trade to tokens: sets of bits, vectors, lists of tokens, sets of vectors."""

from __future__ import annotations

from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from graphwright.models.arithmetic import Linear
from graphwright.models.encoders.encoder import AttentionEncoder, Encoder, Tokens
from graphwright.models.transformer import encoder_layers
from graphwright.settings import ENCODERS, InputForm, Model


@ENCODERS.register("fingerprint")
class FingerprintEncoder(AttentionEncoder):
    """One embedding per bit, no positions: a fingerprint is a set. A start token stands for the whole of it.

    Codes 0..bits - 1 are active bits, `start` = bits and `padding` = bits + 1.
    """

    reads = ("bits",)
    owning = True

    def __init__(self, bits: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__(bits, width, layers, heads, dropout)
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


VECTOR_TOKENS = 4
"""Tokens that a vector becomes: slots attend to them, and attention to a single token could not choose."""
SLOWEST = 10_000.0
"""Longest wavelength of the positions, over 2 pi, as in the first Transformer."""


@ENCODERS.register("vector")
class VectorEncoder(Encoder):
    """An MLP with residual layers, and a few tokens read off its last one."""

    reads = ("vector",)

    def __init__(self, numbers: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.numbers, self.width = numbers, width
        self.first = Linear(numbers, 2 * width)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(2 * width),
                Linear(2 * width, 4 * width),
                nn.GELU(),
                Linear(4 * width, 2 * width),
            )
            for _ in range(layers)
        )
        self.drop = nn.Dropout(dropout)
        self.last = Linear(2 * width, VECTOR_TOKENS * width)
        self.norm = nn.LayerNorm(width)

    @classmethod
    def build(cls, form: InputForm, model: Model) -> Self:
        return cls(form.size, model.encoder_width, model.encoder_layers, model.dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        """vectors (b, numbers), standardised -> tokens (b, VECTOR_TOKENS, width)."""
        if vectors.ndim != 2 or vectors.shape[1] != self.numbers:
            raise ValueError(f"vectors must have shape (b, {self.numbers}), got {tuple(vectors.shape)}")
        states = self.first(vectors)
        for layer in self.layers:
            states = states + self.drop(layer(states))
        result: Tensor = self.norm(self.last(states).unflatten(1, (VECTOR_TOKENS, self.width)))
        return result


@ENCODERS.register("tokens")
class SequenceEncoder(FingerprintEncoder):
    """A Transformer over a list of tokens, which is read as a set of bits is, but for the tokens' positions.

    Codes 0..words - 1 are tokens, `start` = words and `padding` = words + 1.
    """

    reads = ("tokens",)

    def __init__(self, words: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__(words, width, layers, heads, dropout)
        self.embedding = _PositionedEmbedding(words + 2, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)


class _PositionedEmbedding(nn.Embedding):
    """An embedding, and sines and cosines of the position, for lists of any length."""

    def forward(self, codes: Tensor) -> Tensor:
        width = self.embedding_dim
        rates = SLOWEST ** (-torch.arange(0, width, 2, device=codes.device) / width)
        phase = torch.arange(codes.shape[1], device=codes.device)[:, None] * rates
        positions = torch.stack([phase.sin(), phase.cos()], 2).flatten(1)[:, :width]
        # Words are drawn with this deviation: neither drowns the other.
        result: Tensor = super().forward(codes) + width**-0.5 * positions
        return result


class SetInputs(NamedTuple):
    """Sets of vectors: values (b, k, numbers), standardised; mask (b, k), true at real elements."""

    values: Tensor
    mask: Tensor


@ENCODERS.register("set")
class SetEncoder(AttentionEncoder):
    """A Transformer over the elements, without positions; one more token stands for the whole."""

    reads = ("set",)
    owning = True

    def __init__(self, numbers: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__(numbers, width, layers, heads, dropout)
        self.numbers = numbers
        self.element = nn.Sequential(Linear(numbers, width), nn.GELU(), Linear(width, width))
        self.whole = nn.Parameter(torch.randn(width) / width**0.5)
        self.layers = encoder_layers(width, layers, heads, dropout)

    def forward(self, inputs: SetInputs) -> Tokens:
        """-> tokens (b, 1 + k, width): the whole, then the elements in their order."""
        values, mask = inputs
        if values.ndim != 3 or values.shape[2] != self.numbers:
            raise ValueError(f"values must have shape (b, k, {self.numbers}), got {tuple(values.shape)}")
        whole = self.whole.expand(len(values), 1, -1)
        tokens = torch.cat([whole, self.element(values)], 1)
        real = nn.functional.pad(mask, (1, 0), value=True)
        # Attention without a mask is faster, and sets of one size need none.
        needed = real if mask.is_meta or not bool(mask.all()) else None
        # Every element may be a node; the whole is nobody's.
        return Tokens(self.layers(tokens, needed), needed, nn.functional.pad(mask, (1, 0), value=False))


NAMED = {"picture": "cnn", "bits": "fingerprint"}
"""Kinds of inputs whose encoder has another name."""


def own_encoder(kind: str) -> str:
    """The name of the encoder that reads a kind of inputs where nobody chooses another."""
    return NAMED.get(kind, kind)


@ENCODERS.register("columns")
class ColumnsEncoder:
    """Not an encoder but the choice of one: that of a table's own kind of input, once the table has been read."""

    # Pictures, bits and spectra are also the inputs of other tasks, which have no columns to choose by.
    reads = ("vector", "tokens", "set", "several")
    attends = True
    owning = False

    @staticmethod
    def build(form: InputForm, model: Model) -> nn.Module:
        return ENCODERS[own_encoder(form.kind)].build(form, model)
