"""Any2Graph's way to a plan: conditional gradient with POT's exact transport, sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphwright.bench.case import Case
from graphwright.graphs.prediction import without_self_loops
from graphwright.transport import EdgeTerm, MatchingProblem, QuadraticForm

STEPS = 20
TOLERANCE = 1e-5
"""Any2Graph's own: steps at most, and the relative decrease below which it stops."""


def cross_entropy_problem(case: Case, sharpness: float) -> MatchingProblem:
    """The targets of a case with edge logits in place of probabilities, as a predictor makes them.

    sharpness 0: logits of noise alone, an untrained predictor; larger: the more they say of the target.
    """
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(case.prediction.shape, generator=generator)
    logits = without_self_loops(sharpness * (2 * case.prediction - 1) + noise + noise.mT)
    return MatchingProblem(case.problem.linear, (EdgeTerm(logits, case.target),), case.problem.mask)


def emd_conditional_gradient(ot: Any, problem: MatchingProblem) -> Tensor:
    """(b, n, n) unit-marginal plans: uniform start, `ot.emd` for the direction, exact line search."""
    form = problem.quadratic_form()
    plans = [_descend(ot, form.take(torch.tensor([at]))) for at in range(problem.batch)]
    return torch.from_numpy(np.stack(plans))


def _descend(ot: Any, form: QuadraticForm) -> Any:
    linear, pair_cost, mask = (part[0].double().numpy() for part in (form.linear, form.pair_cost, form.mask))
    left, right = form.left[0].double().numpy(), form.right[0, 0].double().numpy()
    n = len(mask)

    def operator(plan: Any) -> Any:
        return np.outer(pair_cost @ (plan @ mask), mask) - left @ (plan @ right)

    ones = np.ones(n)
    plan = np.full((n, n), 1 / n)
    applied = operator(plan)
    value = (linear * plan).sum() + (applied * plan).sum() / 2
    for _ in range(STEPS):
        gradient = linear + applied
        direction = ot.emd(ones, ones, gradient) - plan
        turned = operator(direction)
        slope, curvature = (gradient * direction).sum(), (turned * direction).sum()
        step = min(1.0, max(0.0, -slope / curvature)) if curvature > 0 else float(slope + curvature / 2 < 0)
        plan, applied = plan + step * direction, applied + step * turned
        change = step * slope + step**2 * curvature / 2
        value += change
        if abs(change) <= TOLERANCE * abs(value):
            break
    return plan
