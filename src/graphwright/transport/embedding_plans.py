"""Plans from embeddings of both sides: a cost, divided by its sum, and Sinkhorn's steps on it (eq. 11, 12)."""

from __future__ import annotations

import math
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphwright.transport.checks import (
    NotFiniteError,
    check_count,
    check_finite,
    check_like,
    check_positive,
    check_shape,
)
from graphwright.transport.native import kernels_for
from graphwright.transport.native.library import Embeddings
from graphwright.transport.sinkhorn import sinkhorn

LEAST_TOTAL = 1e-6
"""Costs that sum to less are all the same; divided by less, their rounding errors would be read as differences."""


class EmbeddingPlan(Protocol):
    """(b, n, n) plans of slots (b, n, d) and nodes (m, d), those of one sample after those of another.

    Sample i has counts[i] of the nodes; `padding` (d,) stands for each that it has less than slots. further:
    (b, n, n) costs added to those of the embeddings before they are divided by their sum; they get no gradient,
    and all columns of a sample's padding must be alike.
    """

    def __call__(
        self,
        slots: Tensor,
        nodes: Tensor,
        counts: Tensor,
        padding: Tensor,
        epsilon: float,
        iterations: int,
        further: Tensor | None = None,
    ) -> Tensor:
        """Plans with gradient."""


def l1_plan(
    slots: Tensor,
    nodes: Tensor,
    counts: Tensor,
    padding: Tensor,
    epsilon: float,
    iterations: int,
    further: Tensor | None = None,
) -> Tensor:
    """Sinkhorn(C / sum C; epsilon, iterations) with C_ij = |x_i - y_j|_1; see `EmbeddingPlan`.

    On the processor distances, steps and gradients of a sample are one pass over what fits into its cache, and a
    sample costs its own size: its padding is one column that stands for all of it.
    """
    further = _check(slots, nodes, counts, padding, epsilon, iterations, further)
    if all(kernels_for(tensor) for tensor in (slots, nodes, padding)):
        given = (slots, nodes, counts, padding, float(epsilon), int(iterations), further)
        plan: Tensor = _FusedL1Plan.apply(*given)  # type: ignore[no-untyped-call]
        return plan
    cost = torch.cdist(slots, _padded(nodes, counts, padding, slots.shape[1]), p=1)
    return _plan(cost, further, epsilon, iterations)


def inner_product_plan(
    slots: Tensor,
    nodes: Tensor,
    counts: Tensor,
    padding: Tensor,
    epsilon: float,
    iterations: int,
    further: Tensor | None = None,
) -> Tensor:
    """The same with C_ij = -<x_i, y_j>, shifted to start at 0: the sum that normalises it must be positive."""
    further = _check(slots, nodes, counts, padding, epsilon, iterations, further)
    cost = -slots @ _padded(nodes, counts, padding, slots.shape[1]).mT
    return _plan(cost - cost.amin((1, 2), keepdim=True), further, epsilon, iterations)


def _check(
    slots: Tensor,
    nodes: Tensor,
    counts: Tensor,
    padding: Tensor,
    epsilon: float,
    iterations: int,
    further: Tensor | None,
) -> Tensor | None:
    """Raise unless everything fits; the further costs, detached."""
    check_shape("slots", slots, (-1, -1, -1))
    b, n, d = slots.shape
    if n == 0:
        raise ValueError("slots must have at least one row, got n = 0")
    check_shape("nodes", nodes, (-1, d))
    check_like("nodes", nodes, "slots", slots)
    check_shape("padding", padding, (d,))
    check_like("padding", padding, "slots", slots)
    check_shape("counts", counts, (b,))
    if counts.dtype != torch.int64 or counts.device != slots.device:
        raise ValueError(f"counts must be int64 on {slots.device}, got {counts.dtype} on {counts.device}")
    check_positive("epsilon", epsilon)
    check_count("iterations", iterations)
    sizes = counts.tolist()  # checked as a list: three small tensors would cost more
    if b and not 0 <= min(sizes) <= max(sizes) <= n:
        raise ValueError(f"counts must lie between 0 and {n}, got {min(sizes)} to {max(sizes)}")
    if sum(sizes) != len(nodes):
        raise ValueError(f"counts sum to {sum(sizes)}, and there are {len(nodes)} nodes")
    if further is None:
        return None
    check_shape("further", further, (b, n, n))
    check_like("further", further, "slots", slots)
    check_finite("further", further)
    return further.detach()


def _padded(nodes: Tensor, counts: Tensor, padding: Tensor, n: int) -> Tensor:
    """(b, n, d) the nodes of each sample, and then `padding`."""
    real = torch.arange(n, device=nodes.device) < counts[:, None]
    room = padding.expand(len(counts) * n, -1)
    return room.index_copy(0, real.flatten().nonzero()[:, 0], nodes).view(len(counts), n, len(padding))


def _plan(cost: Tensor, further: Tensor | None, epsilon: float, iterations: int) -> Tensor:
    if further is not None:
        cost = cost + further
    total = cost.sum((1, 2), keepdim=True).clamp_min(LEAST_TOTAL)
    # Of an infinite sum every cost is no part at all; the difference makes it NaN, which is refused below.
    return sinkhorn(cost / total + (total - total), epsilon, iterations).matrix


class _FusedL1Plan(torch.autograd.Function):
    """The compiled kernel; it keeps the cost and the potentials of the steps."""

    @staticmethod
    def forward(
        ctx: Any,
        slots: Tensor,
        nodes: Tensor,
        counts: Tensor,
        padding: Tensor,
        epsilon: float,
        iterations: int,
        further: Tensor | None,
    ) -> Tensor:
        kernels = kernels_for(slots)
        assert kernels is not None
        counts = counts.contiguous()
        starts = counts.cumsum(0) - counts
        further = None if further is None else further.contiguous()
        given = Embeddings(slots.contiguous(), nodes.contiguous(), counts, starts, padding.contiguous(), further)
        steps = kernels.l1_plan_forward(given, epsilon, LEAST_TOTAL, iterations)
        if not math.isfinite(float(steps.mass.sum())):
            for name, tensor in (("slots", slots), ("nodes", nodes), ("padding", padding)):
                if not torch.isfinite(tensor).all():
                    raise NotFiniteError(f"{name} must be finite")
            raise NotFiniteError(f"distances, or distances over epsilon = {epsilon:g}, are too large to be finite")
        # The costs hold what was added to them; backwards it is no longer looked at.
        ctx.save_for_backward(*given[:5], steps.cost, steps.totals, steps.rows, steps.columns)
        ctx.kernels, ctx.epsilon = kernels, epsilon
        return steps.plan

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        slots, nodes, counts, starts, padding, *steps = ctx.saved_tensors
        given = Embeddings(slots, nodes, counts, starts, padding, None)
        gradients = ctx.kernels.l1_plan_backward(given, ctx.epsilon, LEAST_TOTAL, *steps, gradient)
        return gradients.slots, gradients.nodes, None, gradients.padding.sum(0), None, None, None
