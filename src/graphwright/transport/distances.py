"""Pairwise distances of embeddings."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphwright.transport.checks import check_like, check_shape
from graphwright.transport.native import kernels_for


def pairwise_l1(x: Tensor, y: Tensor, counts: Tensor | None = None) -> Tensor:
    """(b, n, m) sums |x_i - y_j| of (b, n, d) and (b, m, d), without a (b, n, m, d) intermediate.

    counts: (b,) how many y of a sample there are (default: all); the distance to the others is 0, and they cost
    nothing.
    """
    check_shape("x", x, (-1, -1, -1))
    check_shape("y", y, (x.shape[0], -1, x.shape[2]))
    check_like("y", y, "x", x)
    b, m, _ = y.shape
    if counts is None:
        counts = torch.full((b,), m, device=x.device)
    check_shape("counts", counts, (b,))
    if b and not 0 <= int(counts.min()) <= int(counts.max()) <= m:
        raise ValueError(f"counts must lie between 0 and {m}, got {int(counts.min())} to {int(counts.max())}")
    if kernels_for(x) is None or kernels_for(y) is None:
        beyond = torch.arange(m, device=x.device) >= counts[:, None]
        return torch.cdist(x, y, p=1).masked_fill(beyond[:, None, :], 0.0)
    distances: Tensor = _PairwiseL1.apply(x, y, counts.long())  # type: ignore[no-untyped-call]
    return distances


class _PairwiseL1(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, counts: Tensor) -> Tensor:
        kernels = kernels_for(x)
        assert kernels is not None
        x, y, counts = x.contiguous(), y.contiguous(), counts.contiguous()
        ctx.save_for_backward(x, y, counts)
        ctx.kernels = kernels
        return kernels.l1_forward(x, y, counts)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        x, y, counts = ctx.saved_tensors
        return *ctx.kernels.l1_backward(x, y, counts, gradient), None
