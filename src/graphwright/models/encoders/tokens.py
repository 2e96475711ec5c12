"""What every encoder makes of its inputs."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


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
