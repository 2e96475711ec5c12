"""Pairwise distances of embeddings."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphwright.transport.checks import check_like, check_shape
from graphwright.transport.native import kernels_for


def pairwise_l1(x: Tensor, y: Tensor) -> Tensor:
    """(b, n, m) sums |x_i - y_j| of (b, n, d) and (b, m, d), without a (b, n, m, d) intermediate."""
    check_shape("x", x, (-1, -1, -1))
    check_shape("y", y, (x.shape[0], -1, x.shape[2]))
    check_like("y", y, "x", x)
    if kernels_for(x) is None or kernels_for(y) is None:
        return torch.cdist(x, y, p=1)
    distances: Tensor = _PairwiseL1.apply(x, y)  # type: ignore[no-untyped-call]
    return distances


class _PairwiseL1(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        kernels = kernels_for(x)
        assert kernels is not None
        x, y = x.contiguous(), y.contiguous()
        ctx.save_for_backward(x, y)
        ctx.kernels = kernels
        return kernels.l1_forward(x, y)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return ctx.kernels.l1_backward(x, y, gradient)  # type: ignore[no-any-return]
