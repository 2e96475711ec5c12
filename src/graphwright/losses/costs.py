"""Node terms of the loss as costs of putting slot i on target position j.

Each node term of eq. 16 is <cost, T>, linear in the plan; written from non-negative entries, so the term is
non-negative for every plan, and the same matrices are the linear part of the problem that solvers minimise.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus


def presence_cost(presence: Tensor, mask: Tensor) -> Tensor:
    """(1/n) d_h(u_i, w_j): binary cross-entropy of the slot's presence logit. (b, n), (b, n) -> (b, n, n)."""
    present, absent = softplus(-presence)[:, :, None], softplus(presence)[:, :, None]
    w = mask[:, None, :]
    return (present * w + absent * (1 - w)) / mask.shape[1]


def label_cost(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """(1/m) w_j d_F(V_i, F_j): cross-entropy of the slot's label. (b, n, l) logits, (b, n) codes -> (b, n, n)."""
    n = labels.shape[1]
    chosen = labels[:, None, :].expand(-1, n, -1)
    return -logits.log_softmax(2).gather(2, chosen) * _per_node(mask)


def diffusion_cost(predicted: Tensor, diffused: Tensor, mask: Tensor) -> Tensor:
    """(1/m) w_j |G_i - D_j|^2, squared error of the neighbours' labels. (b, n, l), (b, n, l) -> (b, n, n)."""
    squares = predicted.square().sum(2)[:, :, None] + diffused.square().sum(2)[:, None, :]
    distance = squares - 2 * predicted @ diffused.mT
    return distance.clamp_min(0) * _per_node(mask)


def _per_node(mask: Tensor) -> Tensor:
    """w_j / m, (b, 1, n); zero for a graph without nodes."""
    return mask[:, None, :] / mask.sum(1).clamp_min(1)[:, None, None]
