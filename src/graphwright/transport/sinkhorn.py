"""Log-domain Sinkhorn with an averaged last half step (Algorithm 1), differentiated exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphwright.transport.checks import check_count, check_finite, check_like, check_positive, check_shape
from graphwright.transport.native import kernels_for
from graphwright.transport.native.library import SinkhornSteps
from graphwright.transport.problem import Plan, marginal_errors


def sinkhorn(cost: Tensor, epsilon: float, iterations: int, tolerance: float = 1e-3) -> Plan:
    """Entropic optimal transport, `iterations` steps of it: min over T of <C, T> - epsilon H(T).

    cost: (b, n, n), finite. The plan is the arithmetic mean of the row-exact and the column-exact plan of the
    last step, so for every epsilon > 0 and any cost, converged or not: entries lie in [0, 1], the total mass is
    n, and no row or column sum falls below 1/2 (each to rounding). `converged` says whether both marginal
    errors are below `tolerance`. `plan.matrix` is differentiable in `cost`, exactly for the steps taken
    (not implicitly, as if they had converged), in O(iterations n) memory per sample. `objective` is <C, T>, the
    transport cost without the entropy.
    """
    check_shape("cost", cost, (-1, -1, -1))
    b, n, _ = cost.shape
    if n == 0:
        raise ValueError("cost must have at least one row, got n = 0")
    check_shape("cost", cost, (b, n, n))
    check_like("cost", cost, "cost", cost)
    check_positive("epsilon", epsilon)
    check_count("iterations", iterations)
    result = _UnrolledSinkhorn.apply(cost, float(epsilon), int(iterations))  # type: ignore[no-untyped-call]
    matrix, row, column, figures = result
    if not math.isfinite(float(figures.sum())):
        check_finite("cost", cost)
        check_finite(f"cost / epsilon (epsilon = {epsilon:g})", log_kernel_of(cost.detach(), epsilon))
    row_error, column_error, objective, _ = figures.unbind(1)
    return Plan(
        matrix=matrix,
        row_potential=row,
        column_potential=column,
        row_error=row_error,
        column_error=column_error,
        objective=objective,
        iterations=torch.full((b,), iterations, device=cost.device),
        converged=torch.maximum(row_error, column_error) < tolerance,
    )


def log_kernel_of(cost: Tensor, epsilon: float) -> Tensor:
    """(b, n, n) L = (least of the row - cost) / epsilon.

    A plan does not change when a constant is added to a row: the row normalisation takes it up. Starting each row
    at 0 keeps the digits for what matters.
    """
    return (cost.amin(2, keepdim=True) - cost) / epsilon


@dataclass(frozen=True, eq=False)
class LogSteps:
    """Potentials of every step, (b, n) each: rows 1..K, columns 0..K (0 first), and the extra last row."""

    rows: list[Tensor]
    columns: list[Tensor]
    last_row: Tensor

    def averaged_row(self) -> Tensor:
        """(b, n) log of the mean of the last two row scalings."""
        return torch.logaddexp(self.rows[-1], self.last_row) - math.log(2)


def log_domain_steps(log_kernel: Tensor, iterations: int) -> LogSteps:
    """Row and column normalisations of the kernels exp(log_kernel), (b, n, n), in the log domain."""
    transposed = log_kernel.mT.contiguous()  # reductions run over the last, contiguous dimension
    rows, columns = [], [torch.zeros_like(log_kernel[:, 0])]
    for _ in range(iterations):
        rows.append(-(log_kernel + columns[-1][:, None, :]).logsumexp(2))
        columns.append(-(transposed + rows[-1][:, None, :]).logsumexp(2))
    return LogSteps(rows, columns, -(log_kernel + columns[-1][:, None, :]).logsumexp(2))


class _UnrolledSinkhorn(torch.autograd.Function):
    """K steps on costs, keeping only the potentials; the backward pass redoes each kernel from them."""

    @staticmethod
    def forward(ctx: Any, cost: Tensor, epsilon: float, iterations: int) -> tuple[Tensor, ...]:
        cost = cost.contiguous()
        kernels = kernels_for(cost)
        run = _forward if kernels is None else kernels.sinkhorn_forward
        steps = run(cost, epsilon, iterations)
        ctx.save_for_backward(cost, steps.rows, steps.columns)
        ctx.epsilon = epsilon
        described = (steps.row_potential, steps.column_potential, steps.figures)
        ctx.mark_non_differentiable(*described)
        ctx.set_materialize_grads(False)
        return steps.plan, *described

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, None, None]:
        if gradients[0] is None:
            return None, None, None
        cost, rows, columns = ctx.saved_tensors
        kernels = kernels_for(cost)
        run = _backward if kernels is None else kernels.sinkhorn_backward
        return run(cost, ctx.epsilon, rows, columns, gradients[0]), None, None


def _forward(cost: Tensor, epsilon: float, iterations: int) -> SinkhornSteps:
    """The steps by torch."""
    log_kernel = log_kernel_of(cost, epsilon)
    steps = log_domain_steps(log_kernel, iterations)
    # As softmaxes, the two plans have unit sums whatever the potentials' rounding.
    exact = _row_exact(log_kernel, steps.columns[-1]) + _column_exact(log_kernel, steps.rows[-1])
    plan, rows, columns = exact / 2, torch.stack(steps.rows, 1), torch.stack(steps.columns, 1)
    row_potential = epsilon * steps.averaged_row() + cost.amin(2)
    objective, total = (plan * cost).sum((1, 2)), log_kernel.sum((1, 2))
    figures = torch.stack([*marginal_errors(plan), objective, total], 1)
    return SinkhornSteps(plan, rows, columns, row_potential, epsilon * columns[:, -1], figures)


def _backward(cost: Tensor, epsilon: float, rows: Tensor, columns: Tensor, gradient: Tensor) -> Tensor:
    """(b, n, n) gradient in the cost of the steps with these potentials, by torch."""
    log_kernel = log_kernel_of(cost, epsilon)
    steps = rows.shape[1]
    half = gradient / 2
    # Last, averaged step: T = (P_r + P_c) / 2 with P_r = exp(L + f' + g), P_c = exp(L + f + g).
    row_exact = _row_exact(log_kernel, columns[:, steps])
    column_exact = _column_exact(log_kernel, rows[:, steps - 1])
    weighted = half * row_exact
    row_gradient = weighted.sum(2)
    result = weighted
    column_gradient = weighted.sum(1)
    weighted = half * column_exact
    result += weighted
    column_gradient += weighted.sum(1)
    pending_row = weighted.sum(2)
    # f' = -LSE_j(L + g): its derivative in L_ij and in g_j is -P_r.
    weighted = row_exact * row_gradient[:, :, None]
    result -= weighted
    column_gradient -= weighted.sum(1)
    for step in range(steps - 1, -1, -1):
        if step < steps - 1:
            column_exact = _column_exact(log_kernel, rows[:, step])
        weighted = column_exact.mul_(column_gradient[:, None, :])
        result -= weighted
        row_gradient = pending_row - weighted.sum(2)
        weighted = _row_exact(log_kernel, columns[:, step]).mul_(row_gradient[:, :, None])
        result -= weighted
        column_gradient = -weighted.sum(1)
        pending_row = torch.zeros_like(pending_row)
    return result / -epsilon


def _row_exact(log_kernel: Tensor, column: Tensor) -> Tensor:
    """exp(L + f + g) with f = -LSE_j(L + g): a softmax, so that its rows sum to 1 whatever f's rounding.

    The backward pass multiplies by 2K of these; sums only a little above 1 would grow without bound.
    """
    return (log_kernel + column[:, None, :]).softmax(2)


def _column_exact(log_kernel: Tensor, row: Tensor) -> Tensor:
    """exp(L + f + g) with g = -LSE_i(L + f): its columns sum to 1."""
    return (log_kernel + row[:, :, None]).softmax(1)
