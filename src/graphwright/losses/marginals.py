"""The penalty that keeps an unconverged plan from dropping mass."""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor

from graphwright.transport.checks import check_plan, check_shape

FLOOR = 1e-6
"""Below this a marginal's logarithm is continued by its tangent: value and gradient stay finite down to 0."""


class PenaltyDirection(StrEnum):
    """Which argument of the Kullback-Leibler divergence the marginal is."""

    FORWARD = "forward"
    """KL(p | 1) = sum p log p - p + 1, the paper's (eq. 13), generalised so that T = 0 is penalised."""
    REVERSE = "reverse"
    """KL(1 | p) = sum p - log p - 1, steep near 0."""


def marginal_penalty(plan: Tensor, direction: PenaltyDirection = PenaltyDirection.FORWARD) -> Tensor:
    """(b,) generalised KL of the row sums and of the column sums from 1 (eq. 13). plan: (b, n, n)."""
    check_shape("plan", plan, (-1, -1, -1))
    check_plan("plan", plan, tuple(plan.shape), "plan", plan)
    sums = torch.cat([plan.sum(2), plan.sum(1)], 1)
    log_sums = _log_with_tangent(sums)
    if PenaltyDirection(direction) is PenaltyDirection.FORWARD:
        return (sums * log_sums - sums + 1).sum(1)
    return (sums - log_sums - 1).sum(1)


def _log_with_tangent(value: Tensor) -> Tensor:
    inside = value.clamp_min(FLOOR)
    return inside.log() + (value - inside) / FLOOR
