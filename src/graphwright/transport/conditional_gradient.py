"""Conditional gradient (Frank-Wolfe) for Gromov-Wasserstein, the solver of Any2Graph."""

from __future__ import annotations

import torch
from torch import Tensor

from graphwright.transport.assignment import assign, assignment_potentials, permutation_matrix
from graphwright.transport.checks import check_count, check_finite, check_positive
from graphwright.transport.native import kernels_for
from graphwright.transport.native.library import Descent
from graphwright.transport.problem import MatchingProblem, Plan, QuadraticForm, marginal_errors, uniform_plan


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
        done = _descend(form, first, iterations, tolerance)
    else:
        done = kernels.conditional_gradient(form, first, iterations=int(iterations), tolerance=float(tolerance))
        if not done.taken.all():
            check_finite("cost", form.gradient(first))
            raise ValueError("the gradient is not finite after some steps")
    row_error, column_error = marginal_errors(done.plan)
    objective = problem.objective(done.plan)
    return Plan(done.plan, done.rows, done.columns, row_error, column_error, objective, done.taken, done.frozen)


def _descend(form: QuadraticForm, first: Tensor, iterations: int, tolerance: float) -> Descent:
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
