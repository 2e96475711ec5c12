"""What every solver returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


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
