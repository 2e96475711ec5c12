"""Sums of rows, bag by bag."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag


@dataclass(frozen=True, eq=False)
class Bags:
    """Rows to be added up: bag i is rows[starts[i]] up to the next start; all are below `height`."""

    rows: Tensor
    starts: Tensor
    height: int

    @classmethod
    def of(cls, keys: Tensor, rows: Tensor, bags: int, height: int) -> Bags:
        """rows (e,) by the bag of each, keys (e,) in ascending order, below `bags`."""
        counts = torch.bincount(keys, minlength=bags)
        return cls(rows, counts.cumsum(0) - counts, height)

    @classmethod
    def single(cls, bags: int) -> Bags:
        return cls(torch.arange(bags), torch.arange(bags), bags)

    def sums(self, values: Tensor) -> Tensor:
        """(bags, width) of values (height, width)."""
        return embedding_bag(self.rows, values, self.starts, mode="sum")

    def counts(self) -> Tensor:
        """(bags,) how many rows each has."""
        return torch.diff(self.starts, append=self.starts.new_tensor([len(self.rows)]))
