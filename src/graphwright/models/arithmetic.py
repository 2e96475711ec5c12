"""The arithmetic of all networks: products by oneDNN, sums of rows, and where half precision ends.

Torch gives the products of linear layers to MKL and convolutions to oneDNN. On processors that are not Intel's
MKL takes a path of half the speed: an AMD EPYC (Zen 5) does 100 to 110 GFLOP/s a core with it, with oneDNN 200 to
260 forward and 110 to 200 for the gradient of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.nn.functional import embedding_bag


def at_least_float32(tensor: Tensor) -> Tensor:
    """The tensor in at least float32."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def without_autocast(device: torch.device) -> torch.autocast:
    """A context in which products stay in the precision of their factors."""
    return torch.autocast(device.type, enabled=False)


WORTH_IT = 1_000_000
"""Multiplications below which a product is over before the detour has begun."""
_THERE = hasattr(torch.ops.mkldnn, "_linear_pointwise")
"""Whether this build of torch has the operation, which torch's compiler uses and which has no public name."""


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """rows (..., k) times weight (n, k) transposed plus bias (n,): (..., n)."""
    if not _onednn_can(rows, weight):
        return functional.linear(rows, weight, bias)
    if torch.is_grad_enabled():
        result: Tensor = _Product.apply(rows, weight, bias)  # type: ignore[no-untyped-call]
        return result
    return _product(rows, weight, bias)


class Linear(nn.Linear):
    """`nn.Linear`, the products as above."""

    def forward(self, input: Tensor) -> Tensor:
        """(..., k) -> (..., n)."""
        return linear(input, self.weight, self.bias)


def _onednn_can(rows: Tensor, weight: Tensor) -> bool:
    return (
        _THERE
        and rows.device.type == "cpu"
        and rows.dtype is weight.dtype is torch.float32
        and rows.numel() * len(weight) >= WORTH_IT
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
        and torch._C._get_mkldnn_enabled()
    )


def _product(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """rows (..., k) times weight (n, k) transposed: (..., n)."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return result


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, weight)
        ctx.biased = bias is not None
        return _product(rows, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        rows, weight = ctx.saved_tensors
        of_rows, of_weight, of_bias = ctx.needs_input_grad
        flat = gradient.reshape(-1, gradient.shape[-1])
        return (
            _product(gradient.contiguous(), weight.t().contiguous(), None) if of_rows else None,
            _product(flat.t(), rows.reshape(-1, rows.shape[-1]).t(), None) if of_weight else None,
            flat.sum(0) if of_bias and ctx.biased else None,
        )


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
