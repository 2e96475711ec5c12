"""Inputs of several kinds together, to tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn

from graphwright.models.encoders.encoder import Encoder, Tokens
from graphwright.models.encoders.generic import SetInputs, own_encoder
from graphwright.models.encoders.spectrum import SpectrumInputs
from graphwright.settings import ENCODERS, InputForm, Model

TUPLES: dict[str, type[SetInputs | SpectrumInputs]] = {"set": SetInputs, "spectrum": SpectrumInputs}
"""Kinds of inputs that are several tensors."""


@ENCODERS.register("several")
class SeveralEncoder(Encoder):
    """Inputs of several kinds together: an encoder for each, and all their tokens side by side."""

    reads = ("several",)
    attends = True
    owning = True

    def __init__(self, kinds: Sequence[str], encoders: Sequence[nn.Module], width: int) -> None:
        super().__init__()
        self.kinds = tuple(kinds)
        self.encoders = nn.ModuleList(encoders)
        # What a token is of: else a decoder must guess that from its values.
        self.origin = nn.Parameter(torch.randn(len(self.kinds), width) / width**0.5)

    @classmethod
    def build(cls, form: InputForm, model: Model) -> Self:
        encoders = [ENCODERS[own_encoder(part.kind)].build(part, model) for part in form.parts]
        return cls([part.kind for part in form.parts], encoders, model.encoder_width)

    def forward(self, inputs: tuple[Tensor, ...]) -> Tokens:
        """The tensors of all parts in a row -> tokens (b, k, width), part by part."""
        values, masks, owning = [], [], []
        at = 0
        for kind, encoder, origin in zip(self.kinds, self.encoders, self.origin, strict=True):
            joined = TUPLES.get(kind)
            taken = 1 if joined is None else len(joined._fields)
            given = inputs[at] if joined is None else joined(*inputs[at : at + taken])
            at += taken
            encoded = encoder(given)
            tokens = encoded if isinstance(encoded, Tokens) else Tokens(encoded)
            shape, device = tokens.values.shape[:2], tokens.values.device
            nothing = torch.zeros(shape, dtype=torch.bool, device=device)
            values.append(tokens.values + origin)
            masks.append(~nothing if tokens.mask is None else tokens.mask)
            owning.append(nothing if tokens.owning is None else tokens.owning)
        return Tokens(torch.cat(values, 1), torch.cat(masks, 1), torch.cat(owning, 1))
