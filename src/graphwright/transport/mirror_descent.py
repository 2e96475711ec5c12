"""Mirror descent in the Kullback-Leibler geometry (Algorithm 2), by projections onto the Birkhoff polytope."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphwright.transport.checks import check_count, check_finite, check_positive
from graphwright.transport.divergences import safe_log
from graphwright.transport.native import kernels_for
from graphwright.transport.native.library import Descent
from graphwright.transport.problem import MatchingProblem, Plan, QuadraticForm, marginal_errors, uniform_plan
from graphwright.transport.sinkhorn import log_domain_steps

SAFE_SCALING = 1e12
"""Scalings beyond this may have met an underflowed kernel entry; such samples are redone in the log domain."""


@dataclass(frozen=True, eq=False)
class Projection:
    """diag(u) K diag(v), its logarithm, log u and log v. Shapes (b, n, n), (b, n, n), (b, n), (b, n)."""

    matrix: Tensor
    log_matrix: Tensor
    log_row: Tensor
    log_column: Tensor


def project(log_kernel: Tensor, iterations: int) -> Projection:
    """Sinkhorn (Algorithm 1) on the kernels exp(log_kernel), (b, n, n), without gradient.

    By products with the kernel, which cost a twentieth of log-sum-exps; the samples whose scalings leave the
    safe range are done again in the log domain.
    """
    shift = log_kernel.amax(2, keepdim=True)
    check_finite("log_kernel", shift)  # a kernel entry may be 0, a whole row of it may not
    kernel = (log_kernel - shift).exp_()
    transposed = kernel.mT.contiguous()
    # A row vector times a matrix is the fast way round in batched products.
    column = kernel.new_ones(kernel.shape[0], 1, kernel.shape[1])
    for _ in range(iterations):
        row = torch.bmm(column, transposed).reciprocal_()
        column = torch.bmm(row, kernel).reciprocal_()
    row = torch.bmm(column, transposed).reciprocal_().add_(row).div_(2)
    largest = torch.maximum(row.amax(2), column.amax(2))[:, 0]
    log_row, log_column = row[:, 0].log() - shift[:, :, 0], column[:, 0].log()
    matrix = kernel.mul_(row.mT).mul_(column)
    log_matrix = log_kernel + log_row[:, :, None] + log_column[:, None, :]
    unsafe = (~(largest < SAFE_SCALING)).nonzero()[:, 0]
    if len(unsafe):
        steps = log_domain_steps(log_kernel[unsafe], iterations)
        log_row[unsafe], log_column[unsafe] = steps.averaged_row(), steps.columns[-1]
        exact = log_kernel[unsafe] + log_row[unsafe, :, None] + log_column[unsafe, None, :]
        log_matrix[unsafe] = exact.clamp_max_(0)  # an entry is at most 1; more is rounding
        matrix[unsafe] = exact.exp()
    return Projection(matrix, log_matrix, log_row, log_column)


MARGINAL_TOLERANCE = 0.01
"""A plan that no longer moves has converged only if its sums are right too; more `inner` steps mend them."""


@torch.no_grad()
def mirror_descent(
    problem: MatchingProblem,
    start: Tensor | None = None,
    tau: float = 0.1,
    outer: int = 20,
    inner: int = 20,
    tolerance: float = 1e-5,
) -> Plan:
    """T_{k+1} = Sinkhorn(n grad F(T_k) - tau log T_k; tau, inner), F the whole labelled objective (eq. 7, 8).

    Step size: the gradient is that of F scaled by n, i.e. with respect to the plan of mass one (the convention
    of Any2Graph and of POT), so that `tau` means the same at every n. Log-plans are carried along, never taken
    from an underflowed plan. A sample freezes once a step moves less than `tolerance` of its mass; a frozen
    sample costs nothing more, and no sample depends on the others of its batch. start: (b, n, n), default
    uniform. Works for J, J_a and J_b.
    """
    check_positive("tau", tau)
    check_count("outer", outer)
    check_count("inner", inner)
    check_positive("tolerance", tolerance)
    b, n = problem.batch, problem.capacity
    if start is not None:
        problem.check_plan("start", start)
    first = uniform_plan(b, n, problem.linear) if start is None else start.detach().clone()

    log_first = safe_log(first)
    # Folded once; a freezing sample only takes its rows out.
    active = problem.quadratic_form() if problem.relaxation.is_quadratic else problem
    kernels = kernels_for(first)
    if kernels is not None and isinstance(active, QuadraticForm):
        done = kernels.mirror_descent(
            active, first, log_first, step_size=n / tau, outer=int(outer), inner=int(inner), tolerance=tolerance
        )
        check_finite("log_kernel", done.plan)  # a plan has no other way to become NaN
    else:
        done = _descend(active, first, log_first, tau, outer, inner, tolerance)
    row_error, column_error = marginal_errors(done.plan)
    converged = done.frozen & (torch.maximum(row_error, column_error) < MARGINAL_TOLERANCE)
    objective = problem.objective(done.plan)
    rows, columns = tau * done.rows, tau * done.columns
    return Plan(done.plan, rows, columns, row_error, column_error, objective, done.taken, converged)


def _descend(
    active: MatchingProblem | QuadraticForm,
    first: Tensor,
    log_first: Tensor,
    tau: float,
    outer: int,
    inner: int,
    tolerance: float,
) -> Descent:
    """The steps by torch, on the samples that still move."""
    b, n, _ = first.shape
    matrix, log_matrix = first, log_first
    result = matrix.clone()
    rows, columns = torch.zeros_like(first[:, 0]), torch.zeros_like(first[:, 0])
    taken = torch.full((b,), outer, dtype=torch.int64, device=first.device)
    converged = torch.zeros(b, dtype=torch.bool, device=first.device)
    samples = torch.arange(b, device=first.device)
    for step in range(1, outer + 1):
        log_kernel = log_matrix.add_(active.gradient(matrix), alpha=-n / tau)
        projected = project(log_kernel, inner)
        moved = (projected.matrix - matrix).abs_().sum((1, 2)) / n
        matrix, log_matrix = projected.matrix, projected.log_matrix
        frozen = moved < tolerance
        done = frozen if step < outer else torch.ones_like(frozen)
        if done.any():
            result[samples[done]] = matrix[done]
            rows[samples[done]] = projected.log_row[done]
            columns[samples[done]] = projected.log_column[done]
            taken[samples[done]] = step
            converged[samples[frozen]] = True
            keep = (~done).nonzero()[:, 0]
            if not len(keep):
                break
            samples, matrix, log_matrix, active = samples[keep], matrix[keep], log_matrix[keep], active.take(keep)
    return Descent(result, rows, columns, taken, converged)
