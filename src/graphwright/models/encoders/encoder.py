"""What every encoder is, and what it makes of its inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from graphwright.settings import ENCODERS, InputForm, Model


class Tokens(NamedTuple):
    """values (b, k, width); mask (b, k), true at real tokens, or None where all of them are.

    owning: (b, k), true at real tokens that may stand for a node; None where tokens own nothing.
    """

    values: Tensor
    mask: Tensor | None = None
    owning: Tensor | None = None

    def mean(self) -> Tensor:
        """(b, width) of the real tokens."""
        if self.mask is None:
            return self.values.mean(1)
        weights = self.mask[:, :, None].to(self.values.dtype)
        return (self.values * weights).sum(1) / weights.sum(1).clamp_min(1)

    def and_one_more(self, value: Tensor) -> Tokens:
        """With a real token (b, width) after the others."""
        mask = None if self.mask is None else torch.nn.functional.pad(self.mask, (0, 1), value=True)
        owning = None if self.owning is None else torch.nn.functional.pad(self.owning, (0, 1), value=False)
        return Tokens(torch.cat([self.values, value[:, None]], 1), mask, owning)


class Encoder(nn.Module, ABC):
    """Inputs (b, ...) to tokens (b, k, width), or to `Tokens` where some are padding or stand for nodes.

    `ENCODERS.register` gives a subclass the name that `model.encoder` chooses it by. What it promises,
    `graphwright.testing.check_encoder` checks.
    """

    reads: ClassVar[tuple[str, ...]]
    """Kinds of inputs, as `InputForm` names them."""
    attends: ClassVar[bool] = False
    """Whether its width is divided among attention heads."""
    owning: ClassVar[bool] = False
    """Whether its tokens may stand for nodes."""

    @classmethod
    @abstractmethod
    def build(cls, form: InputForm, model: Model) -> Self:
        """A fresh one for inputs of this form, as wide and deep as the settings say."""


class AttentionEncoder(Encoder):
    """A Transformer over what the input is made of."""

    attends = True

    @abstractmethod
    def __init__(self, size: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()

    @classmethod
    def build(cls, form: InputForm, model: Model) -> Self:
        return cls(form.size, model.encoder_width, model.encoder_layers, model.encoder_heads, model.dropout)


def build_encoder(form: InputForm, model: Model) -> nn.Module:
    """The encoder that the settings name, for inputs of this form."""
    chosen = ENCODERS[model.encoder]
    if form.kind not in chosen.reads:
        raise ValueError(
            f"model.encoder {model.encoder} cannot read {form.described or form.kind}; it takes {form.kind}"
        )
    return chosen.build(form, model)
