"""Exact linear assignment, its dual potentials, and rounding of plans to permutations."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from graphwright.transport.checks import check_finite, check_shape


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
