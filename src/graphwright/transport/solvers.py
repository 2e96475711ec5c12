"""Solvers of the matching problem: exact assignment, conditional gradient, mirror descent, several starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from graphwright.transport.checks import NotFiniteError, check_count, check_finite, check_positive, check_shape
from graphwright.transport.native import kernels_for
from graphwright.transport.native.library import Descent
from graphwright.transport.problem import MatchingProblem, Plan, QuadraticForm, marginal_errors, uniform_plan
from graphwright.transport.relaxations import SelfLoops, safe_log
from graphwright.transport.sinkhorn import log_domain_steps, sinkhorn


def assign(cost: Tensor) -> Tensor:
    """(b, n) int64 column of each row in the cheapest one-to-one assignment. cost: (b, n, n)."""
    check_shape("cost", cost, (-1, -1, -1))
    check_shape("cost", cost, (cost.shape[0], cost.shape[1], cost.shape[1]))
    check_finite("cost", cost)
    if cost.shape[1] == 0:
        return torch.zeros(cost.shape[:2], dtype=torch.int64, device=cost.device)
    matrices = cost.detach().cpu().double().numpy()
    # Reduced rows and columns leave the same optimum and a third less search.
    matrices = matrices - matrices.min(2, keepdims=True)
    matrices -= matrices.min(1, keepdims=True)
    columns = np.empty(matrices.shape[:2], np.int64)
    for at, matrix in enumerate(matrices):
        columns[at] = linear_sum_assignment(matrix)[1]
    return torch.from_numpy(columns).to(cost.device)


def permutation_matrix(columns: Tensor, like: Tensor) -> Tensor:
    """(b, n, n) plans that put row i on column `columns[:, i]`, in the dtype of `like`."""
    b, n = columns.shape
    matrix = torch.zeros(b, n, n, dtype=like.dtype, device=columns.device)
    return matrix.scatter_(2, columns[:, :, None], 1)


def round_to_permutation(plan: Tensor) -> Tensor:
    """(b, n) int64 target position of each slot, carrying the most mass of the plan (b, n, n)."""
    check_shape("plan", plan, (-1, -1, -1))
    check_finite("plan", plan)
    return assign(-plan)


def assignment_potentials(cost: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Dual potentials f, g (b, n) of an optimal assignment: f_i + g_j <= C_ij, equal where i is put on j.

    Shortest paths in the residual graph (Bellman-Ford, at most n rounds over the whole batch), where going from
    column s(i) to column j through row i costs C_ij - C_is(i); an optimal assignment has no negative cycle.
    """
    n = cost.shape[1]
    matched = cost.gather(2, columns[:, :, None])
    step = cost - matched
    column_potential = torch.zeros_like(cost[:, 0])
    for _ in range(n):
        through = column_potential.gather(1, columns)[:, :, None] + step
        shorter = torch.minimum(column_potential, through.amin(1))
        if torch.equal(shorter, column_potential):
            break
        column_potential = shorter
    row_potential = (cost - column_potential[:, None, :]).amin(2)
    return row_potential, column_potential


@torch.no_grad()
def conditional_gradient(
    problem: MatchingProblem, start: Tensor | None = None, iterations: int = 20, tolerance: float = 1e-5
) -> Plan:
    """Minimise J over the Birkhoff polytope by exact assignments and exact line searches.

    Each step moves towards the permutation that minimises the linearised objective, as far as is best; it stops
    for a sample once a step improves its objective by less than `tolerance` relatively. start: (b, n, n),
    default uniform. The potentials are the duals of the last assignment: they certify how far the linearised
    objective could still fall.
    """
    check_count("iterations", iterations)
    check_positive("tolerance", tolerance)
    form = problem.quadratic_form()
    b, n = problem.batch, problem.capacity
    if start is not None:
        problem.check_plan("start", start)
    first = uniform_plan(b, n, problem.linear) if start is None else start.detach()
    kernels = kernels_for(first)
    if kernels is None:
        done = _descend_conditionally(form, first, iterations, tolerance)
    else:
        done = kernels.conditional_gradient(form, first, iterations=int(iterations), tolerance=float(tolerance))
        if not done.taken.all():
            check_finite("cost", form.gradient(first))
            raise NotFiniteError("the gradient is not finite after some steps")
    row_error, column_error = marginal_errors(done.plan)
    objective = problem.objective(done.plan)
    return Plan(done.plan, done.rows, done.columns, row_error, column_error, objective, done.taken, done.frozen)


def _descend_conditionally(form: QuadraticForm, first: Tensor, iterations: int, tolerance: float) -> Descent:
    """The steps by torch and scipy, on the samples that still gain."""
    b = len(first)
    plan, result = first.clone(), first.clone()
    curvature = form.operator(plan)  # Q is linear: kept up to date without another product
    taken = torch.full((b,), iterations, dtype=torch.int64, device=plan.device)
    converged = torch.zeros(b, dtype=torch.bool, device=plan.device)
    rows, columns = torch.zeros_like(plan[:, 0]), torch.zeros_like(plan[:, 0])
    samples = torch.arange(b, device=plan.device)
    for count in range(1, iterations + 1):
        gradient = form.linear + curvature
        assigned = assign(gradient)
        direction = permutation_matrix(assigned, plan)
        turn = form.operator(direction).sub_(curvature)
        direction.sub_(plan)
        before = _inner(form.linear, plan) + _inner(curvature, plan) / 2
        linear, quadratic = _inner(gradient, direction), _inner(turn, direction) / 2
        step = _exact_step(linear, quadratic)
        plan = plan.addcmul_(step[:, None, None], direction)
        curvature.addcmul_(step[:, None, None], turn)
        gain = -(step * linear + step.square() * quadratic)
        finished = gain <= tolerance * before.abs().clamp_min(tolerance)
        done = finished if count < iterations else torch.ones_like(finished)
        if done.any():
            who, converged[samples[finished]] = samples[done], True
            result[who], taken[who] = plan[done], count
            rows[who], columns[who] = assignment_potentials(gradient[done], assigned[done])
            keep = (~done).nonzero()[:, 0]
            if not len(keep):
                break
            samples, plan, curvature, form = samples[keep], plan[keep], curvature[keep], form.take(keep)
    return Descent(result, rows, columns, taken, converged)


def _inner(first: Tensor, second: Tensor) -> Tensor:
    """(b,) <first, second>, as one product per sample."""
    return torch.bmm(first.flatten(1)[:, None, :], second.flatten(1)[:, :, None])[:, 0, 0]


def _exact_step(linear: Tensor, quadratic: Tensor) -> Tensor:
    """(b,) argmin over s in [0, 1] of linear s + quadratic s^2."""
    inside = (-linear / (2 * quadratic)).clamp(0, 1)
    ends = ((linear + quadratic) < 0).to(linear.dtype)
    return torch.where(quadratic > 0, inside, ends)


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
        done = _descend_by_mirror(active, first, log_first, tau, outer, inner, tolerance)
    row_error, column_error = marginal_errors(done.plan)
    converged = done.frozen & (torch.maximum(row_error, column_error) < MARGINAL_TOLERANCE)
    objective = problem.objective(done.plan)
    rows, columns = tau * done.rows, tau * done.columns
    return Plan(done.plan, rows, columns, row_error, column_error, objective, done.taken, converged)


def _descend_by_mirror(
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


Solver = Callable[[MatchingProblem, Tensor], Plan]
"""A problem and a start (b, n, n) to a plan: `mirror_descent`, `conditional_gradient`, or a partial of them."""


@torch.no_grad()
def multi_start(problem: MatchingProblem, solver: Solver, starts: int, generator: torch.Generator) -> Plan:
    """Run a solver from the uniform plan and from `starts - 1` random ones; keep each sample's lowest objective.

    The random starts are bistochastic and centred on the uniform plan, and the same for every sample, so that no
    sample depends on the others of its batch. `generator` makes them reproducible.
    """
    check_count("starts", starts)
    uniform = uniform_plan(problem.batch, problem.capacity, problem.linear)
    best = solver(problem, uniform)
    for _ in range(starts - 1):
        noise = torch.randn(
            1, *uniform.shape[1:], generator=generator, dtype=uniform.dtype, device=generator.device
        )
        start = sinkhorn(noise.to(uniform.device), epsilon=1.0, iterations=20).matrix
        best = _better(best, solver(problem, start.expand_as(uniform).contiguous()))
    return best


@torch.no_grad()
def aligning_plan(problem: MatchingProblem, starts: int = 1) -> Plan:
    """A plan that is to be rounded: conditional gradient on J from the best of a few starts.

    The starts are followed without self-loops, which agrees on permutations and lets a plan stay spread until it
    must decide: with them four starts lose half of the hexagons on 24 slots that are predicted exactly.
    """
    lenient = replace(problem, self_loops=SelfLoops.EXCLUDED)
    generator = torch.Generator().manual_seed(0)
    return conditional_gradient(problem, multi_start(lenient, conditional_gradient, starts, generator).matrix)


def _better(first: Plan, second: Plan) -> Plan:
    wins = second.objective < first.objective
    chosen = {}
    for field in fields(Plan):
        old, new = getattr(first, field.name), getattr(second, field.name)
        chosen[field.name] = torch.where(wins.view(-1, *[1] * (old.ndim - 1)), new, old)
    return replace(first, **chosen)
