"""The Sinkhorn that one writes first: log domain, whole batch, differentiated by autograd through every step."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def eager_sinkhorn(cost: Tensor, epsilon: float, iterations: int) -> Tensor:
    """(b, n, n) plans of costs (b, n, n): what `transport.sinkhorn` computes, averaged last half step included."""
    kernel = -cost / epsilon
    column = torch.zeros_like(kernel[:, 0])
    for _ in range(iterations):
        row = -torch.logsumexp(kernel + column[:, None, :], 2)
        column = -torch.logsumexp(kernel + row[:, :, None], 1)
    last_row = -torch.logsumexp(kernel + column[:, None, :], 2)
    averaged = torch.logaddexp(row, last_row) - math.log(2)
    return torch.exp(kernel + averaged[:, :, None] + column[:, None, :])
