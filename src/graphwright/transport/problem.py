"""What every solver takes and returns: a labelled matching problem, what a plan costs, and plans."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphwright.transport.checks import check_finite, check_like, check_plan, check_shape
from graphwright.transport.relaxations import (
    EdgeTerm,
    Relaxation,
    SelfLoops,
    check_mask,
    check_term,
    factorise,
    unchecked_objective,
)


@dataclass(frozen=True, eq=False)
class MatchingProblem:
    """minimise over T: <linear, T> + sum_t weight_t J(T; prediction_t, target_t) (eq. 16 of the paper).

    linear: (b, n, n) cost of putting slot i on target position j; every node term of the loss is of this form.
    terms: edge comparisons, sharing the mask. mask: (b, n), 1 at real target nodes.
    """

    linear: Tensor
    terms: tuple[EdgeTerm, ...]
    mask: Tensor
    self_loops: SelfLoops = SelfLoops.INCLUDED
    relaxation: Relaxation = Relaxation()

    def __post_init__(self) -> None:
        check_shape("linear", self.linear, (-1, -1, -1))
        b, n, _ = self.linear.shape
        if n == 0:
            raise ValueError("linear must have room for at least one node, got n = 0")
        check_shape("linear", self.linear, (b, n, n))
        check_like("linear", self.linear, "linear", self.linear)
        check_finite("linear", self.linear)
        check_mask(self.mask, "linear", self.linear)
        for at, term in enumerate(self.terms):
            check_term(f"terms[{at}]", term, "linear", self.linear)
        object.__setattr__(self, "self_loops", SelfLoops(self.self_loops))

    @property
    def batch(self) -> int:
        """Number of problems, b."""
        return self.linear.shape[0]

    @property
    def capacity(self) -> int:
        """Number of slots, n."""
        return self.linear.shape[1]

    def check_plan(self, name: str, plan: Tensor) -> None:
        """Raise unless the plans fit the problems."""
        check_plan(name, plan, tuple(self.linear.shape), "linear", self.linear)

    def objective(self, plan: Tensor) -> Tensor:
        """(b,) what the plans (b, n, n) cost. Differentiable; never negative for non-negative `linear`."""
        self.check_plan("plan", plan)
        value = (self.linear * plan).sum((1, 2))
        for term in self.terms:
            edges = unchecked_objective(plan, term, self.mask, self.self_loops, self.relaxation)
            value = value + term.weight * edges
        return value

    def gradient(self, plan: Tensor) -> Tensor:
        """(b, n, n) gradient of the objective in the plan: closed form for J, automatic for J_a and J_b."""
        self.check_plan("plan", plan)
        if self.relaxation.is_quadratic:
            return self.quadratic_form().gradient(plan)
        with torch.enable_grad():
            variable = plan.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(self.objective(variable).sum(), variable)
        return gradient.detach()

    def quadratic_form(self) -> QuadraticForm:
        """J with all edge terms folded into one; detached, since solvers do not differentiate through it."""
        if not self.relaxation.is_quadratic:
            raise ValueError(f"{self.relaxation.objective.value} is not quadratic in the plan")
        return fold(self)

    def take(self, samples: Tensor) -> MatchingProblem:
        """The problems of some samples."""
        terms = tuple(
            replace(term, prediction=term.prediction[samples], target=term.target[samples]) for term in self.terms
        )
        return replace(self, linear=self.linear[samples], terms=terms, mask=self.mask[samples])


@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """<linear, T> + (1/2) <Q(T), T> with, on masked and normalised matrices,

    Q(T) = pair_cost r w' - pair_cost T diag(w^2) + 1 (target_cost c)' - T target_cost - sum_c left_c T right_c,
    the terms in T alone present only without self-loops (docs/method.md).

    pair_cost, target_cost: (b, n, n), symmetric. left: (b, n, channels * n), the channels side by side, so that
    all labels cost one product. right: (b, channels, n, n).
    """

    linear: Tensor
    mask: Tensor
    pair_cost: Tensor
    target_cost: Tensor | None
    left: Tensor
    right: Tensor
    self_loops: SelfLoops

    def operator(self, plan: Tensor) -> Tensor:
        """(b, n, n) Q(T)."""
        b, channels, n, _ = self.right.shape
        slot_mass = (plan * self.mask[:, None, :]).sum(2)
        # pair_cost is symmetric, and a row vector times a matrix is the fast way round in batched products.
        result = torch.bmm(slot_mass[:, None, :], self.pair_cost).mT * self.mask[:, None, :]
        if channels == 1:
            moved = torch.bmm(plan, self.right[:, 0])
        else:
            moved = torch.matmul(plan[:, None], self.right).view(b, channels * n, n)
        result = result.baddbmm_(self.left, moved, alpha=-1)
        if self.self_loops is SelfLoops.EXCLUDED:
            result -= torch.bmm(self.pair_cost, plan).mul_(self.mask.square()[:, None, :])
        if self.target_cost is not None:
            result += torch.bmm(plan.sum(1, keepdim=True), self.target_cost)
            if self.self_loops is SelfLoops.EXCLUDED:
                result.baddbmm_(plan, self.target_cost, alpha=-1)
        return result

    def gradient(self, plan: Tensor) -> Tensor:
        """(b, n, n) linear + Q(T)."""
        return self.operator(plan).add_(self.linear)

    def take(self, samples: Tensor) -> QuadraticForm:
        """The forms of some samples."""
        return replace(
            self,
            linear=self.linear[samples],
            mask=self.mask[samples],
            pair_cost=self.pair_cost[samples],
            target_cost=None if self.target_cost is None else self.target_cost[samples],
            left=self.left[samples],
            right=self.right[samples],
        )


def fold(problem: MatchingProblem) -> QuadraticForm:
    """All edge terms of a problem in one quadratic form."""
    b, n, _ = problem.linear.shape
    w = problem.mask.detach()
    excluded = problem.self_loops is SelfLoops.EXCLUDED
    pairs = w[:, :, None] * w[:, None, :] / w.sum(1).clamp_min(1).square()[:, None, None]
    outside = 1 - torch.eye(n, dtype=w.dtype, device=w.device) if excluded else w.new_ones(())
    # The normaliser 1/m^2 sits on the slot side of r w' and on the target side elsewhere.
    scale = 1 / w.sum(1).clamp_min(1).square()[:, None, None]
    pair_cost = torch.zeros_like(problem.linear)
    target_cost: Tensor | None = None
    lefts, rights = [], []
    for term in problem.terms:
        factors = factorise(term.divergence, term.prediction.detach(), term.target.detach())
        pair_cost = pair_cost + term.weight * _twice_symmetric(factors.prediction_cost * outside * scale)
        if factors.target_cost is not None:
            cost = term.weight * _twice_symmetric(factors.target_cost * outside * pairs)
            target_cost = cost if target_cost is None else target_cost + cost
        left = term.weight * factors.left * outside
        right = factors.right * (outside * pairs)[:, None]
        if torch.equal(right, right.mT):
            # A symmetric target sees only the symmetric part of the prediction.
            lefts.append(_twice_symmetric(left))
            rights.append(right)
        else:
            lefts += [left, left.mT]
            rights += [right.mT, right]
    if not lefts:
        lefts, rights = [torch.zeros(b, 1, n, n).to(w)], [torch.zeros(b, 1, n, n).to(w)]
    left, right = torch.cat(lefts, 1), torch.cat(rights, 1)
    side_by_side = left.permute(0, 2, 1, 3).flatten(2)
    return QuadraticForm(
        problem.linear.detach(),
        w,
        pair_cost,
        target_cost,
        side_by_side,
        right.contiguous(),
        problem.self_loops,
    )


def _twice_symmetric(matrix: Tensor) -> Tensor:
    return matrix + matrix.mT


@dataclass(frozen=True, eq=False)
class Plan:
    """Transport plans of a batch, and how they came about.

    matrix: (b, n, n), rows are predicted slots, columns target positions; ideally unit row and column sums.
    row_potential, column_potential: (b, n), the dual variables of the last linear problem solved.
    row_error, column_error: (b,), largest distance of a row or column sum from 1.
    objective: (b,), the value that the solver minimised, at `matrix`.
    iterations: (b,) int64, steps taken. converged: (b,) bool.
    """

    matrix: Tensor
    row_potential: Tensor
    column_potential: Tensor
    row_error: Tensor
    column_error: Tensor
    objective: Tensor
    iterations: Tensor
    converged: Tensor


def marginal_errors(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """(b,) and (b,): largest |row sum - 1| and |column sum - 1|."""
    value = matrix.detach()
    return (value.sum(2) - 1).abs().amax(1), (value.sum(1) - 1).abs().amax(1)


def uniform_plan(batch: int, n: int, like: Tensor) -> Tensor:
    """(batch, n, n) plan that joins everything with everything equally."""
    return torch.full((batch, n, n), 1 / n, dtype=like.dtype, device=like.device)
