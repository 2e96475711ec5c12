"""Edge discrepancies d(prediction, target) and their factorisation.

Every d here is f1(a) + f2(b) - sum_c h1_c(a) h2_c(b), which is what makes the Gromov-Wasserstein objective
an O(n^3) computation (Peyre et al. 2016). Cross-entropy is written on logits, so nothing is ever clamped.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from graphwright.transport.checks import check_shape


class Divergence(StrEnum):
    """How a predicted pair is compared with a target pair."""

    SQUARED = "squared"
    """(a - b)^2 on values, summed over channels."""
    CROSS_ENTROPY = "cross_entropy"
    """softplus(z) - z b on edge logits, or LSE(y) - <y, e> on class logits."""
    KL = "kl"
    """Cross-entropy minus the entropy of the target: 0 where prediction and soft target agree."""


@dataclass(frozen=True, eq=False)
class Factors:
    """d(A_ik, B_jl) = prediction_cost_ik + target_cost_jl - sum_c left_cik right_cjl.

    prediction_cost: (b, n, n). target_cost: (b, n, n), or None where it is zero.
    left, right: (b, channels, n, n).
    """

    prediction_cost: Tensor
    target_cost: Tensor | None
    left: Tensor
    right: Tensor


def factorise(divergence: Divergence, prediction: Tensor, target: Tensor) -> Factors:
    """The factors of a divergence.

    prediction: (b, n, n) values or edge logits, or (b, classes, n, n) values or class logits.
    target: the same shape; for cross-entropy and KL, probabilities of the edge or of each class.
    """
    divergence = _checked(divergence, prediction, target)
    a, b = _channels(prediction), _channels(target)
    if divergence is Divergence.SQUARED:
        return Factors(a.square().sum(1), b.square().sum(1), 2 * a, b)
    entropy = None if divergence is Divergence.CROSS_ENTROPY else -target_entropy(target)
    if prediction.ndim == 3:
        return Factors(softplus(prediction), entropy, a, b)
    # Class probabilities sum to one, so logits relative to class 0 need no channel for it.
    relative = a[:, 1:] - a[:, :1]
    return Factors(a.logsumexp(1) - a[:, 0], entropy, relative, b[:, 1:])


def pair_divergence(divergence: Divergence, prediction: Tensor, target: Tensor) -> Tensor:
    """(b, n, n) d(A_ik, B_ik), pair by pair. Shapes as in `factorise`."""
    divergence = _checked(divergence, prediction, target)
    if divergence is Divergence.SQUARED:
        difference = (prediction - target).square()
        return difference.sum(1) if prediction.ndim == 4 else difference
    labels = class_probabilities(target)
    cost = -(labels * class_log_probabilities(prediction)).sum(1)
    return cost if divergence is Divergence.CROSS_ENTROPY else cost - target_entropy(target)


def class_log_probabilities(logits: Tensor) -> Tensor:
    """(b, classes, n, n) log-probabilities; an edge logit counts as the classes (none, edge)."""
    if logits.ndim == 3:
        return torch.stack([logsigmoid(-logits), logsigmoid(logits)], 1)
    return logits.log_softmax(1)


def class_probabilities(target: Tensor) -> Tensor:
    """(b, classes, n, n) target probabilities; an edge probability counts as the classes (none, edge)."""
    return torch.stack([1 - target, target], 1) if target.ndim == 3 else target


def target_entropy(target: Tensor) -> Tensor:
    """(b, n, n) entropy of each soft target; 0 for hard ones."""
    labels = class_probabilities(target)
    return -(labels * safe_log(labels)).sum(1)


def safe_log(value: Tensor) -> Tensor:
    """log, with 0 read as the smallest normal number so that 0 log 0 and its gradient are finite."""
    return value.clamp_min(torch.finfo(value.dtype).tiny).log()


def _checked(divergence: Divergence, prediction: Tensor, target: Tensor) -> Divergence:
    check_shape("prediction", prediction, (-1, -1, -1), (-1, -1, -1, -1))
    check_shape("target", target, tuple(prediction.shape))
    return Divergence(divergence)


def _channels(tensor: Tensor) -> Tensor:
    return tensor[:, None] if tensor.ndim == 3 else tensor
