"""Definitions, written as plainly as possible, that the library is compared with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from graphwright.transport import Divergence, SelfLoops


def scalar_divergence(divergence: Divergence, prediction: Tensor, target: Tensor) -> float:
    """d of one pair: scalars for edges, vectors for classes; from probabilities and logarithms alone."""
    a, b = np.atleast_1d(prediction.numpy()), np.atleast_1d(target.numpy())
    if divergence is Divergence.SQUARED:
        return float(((a - b) ** 2).sum())
    if prediction.ndim == 0:
        p = 1 / (1 + np.exp(-a[0]))
        a, b = np.log([1 - p, p]), np.array([1 - b[0], b[0]])
    else:
        a = a - np.log(np.exp(a).sum())
    cross_entropy = -(b * a).sum()
    if divergence is Divergence.CROSS_ENTROPY:
        return float(cross_entropy)
    positive = b[b > 0]
    return float(cross_entropy + (positive * np.log(positive)).sum())


def quartic_objective(
    plan: Tensor,
    prediction: Tensor,
    target: Tensor,
    mask: Tensor,
    divergence: Divergence,
    self_loops: SelfLoops = SelfLoops.INCLUDED,
) -> Tensor:
    """(b,) J by its definition, four nested sums: sum w_j w_l d(A_ik, B_jl) T_ij T_kl / m^2."""
    n = plan.shape[1]
    values = []
    for sample in range(len(plan)):
        total = 0.0
        for i, k, j, other in itertools.product(range(n), repeat=4):
            if self_loops is SelfLoops.EXCLUDED and (i == k or j == other):
                continue
            weight = mask[sample, j] * mask[sample, other] * plan[sample, i, j] * plan[sample, k, other]
            pair = scalar_divergence(divergence, prediction[sample, ..., i, k], target[sample, ..., j, other])
            total += float(weight) * pair
        values.append(total / max(float(mask[sample].sum()), 1.0) ** 2)
    return torch.tensor(values, dtype=plan.dtype)


def permutations(n: int) -> Iterator[Tensor]:
    """Every (n, n) permutation matrix, float64."""
    for order in itertools.permutations(range(n)):
        yield torch.eye(n, dtype=torch.float64)[list(order)]


def bistochastic(generator: torch.Generator, *shape: int) -> Tensor:
    """Random float64 bistochastic matrices: mixtures of permutations, exact in both marginals."""
    *batch, n = shape
    result = torch.zeros(*batch, n, n, dtype=torch.float64)
    weights = torch.rand(4, generator=generator, dtype=torch.float64)
    for weight in weights / weights.sum():
        order = torch.rand(*batch, n, generator=generator).argsort(-1)
        result += weight * torch.eye(n, dtype=torch.float64)[order]
    return result
