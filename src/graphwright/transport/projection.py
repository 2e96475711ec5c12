"""Kullback-Leibler projection of kernels onto the Birkhoff polytope, fast and without gradient."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphwright.transport.checks import check_finite
from graphwright.transport.sinkhorn import log_domain_steps

SAFE_SCALING = 1e12
"""Scalings beyond this may have met an underflowed kernel entry; such samples are redone in the log domain."""


@dataclass(frozen=True, eq=False)
class Projection:
    """diag(u) K diag(v), its logarithm, log u and log v. Shapes (b, n, n), (b, n, n), (b, n), (b, n)."""

    matrix: Tensor
    log_matrix: Tensor
    log_row: Tensor
    log_column: Tensor


def project(log_kernel: Tensor, iterations: int) -> Projection:
    """Sinkhorn (Algorithm 1) on the kernels exp(log_kernel), (b, n, n), without gradient.

    By products with the kernel, which cost a twentieth of log-sum-exps; the samples whose scalings leave the
    safe range are done again in the log domain.
    """
    shift = log_kernel.amax(2, keepdim=True)
    check_finite("log_kernel", shift)  # a kernel entry may be 0, a whole row of it may not
    kernel = (log_kernel - shift).exp_()
    transposed = kernel.mT.contiguous()
    # A row vector times a matrix is the fast way round in batched products.
    column = kernel.new_ones(kernel.shape[0], 1, kernel.shape[1])
    for _ in range(iterations):
        row = torch.bmm(column, transposed).reciprocal_()
        column = torch.bmm(row, kernel).reciprocal_()
    row = torch.bmm(column, transposed).reciprocal_().add_(row).div_(2)
    largest = torch.maximum(row.amax(2), column.amax(2))[:, 0]
    log_row, log_column = row[:, 0].log() - shift[:, :, 0], column[:, 0].log()
    matrix = kernel.mul_(row.mT).mul_(column)
    log_matrix = log_kernel + log_row[:, :, None] + log_column[:, None, :]
    unsafe = (~(largest < SAFE_SCALING)).nonzero()[:, 0]
    if len(unsafe):
        steps = log_domain_steps(log_kernel[unsafe], iterations)
        log_row[unsafe], log_column[unsafe] = steps.averaged_row(), steps.columns[-1]
        exact = log_kernel[unsafe] + log_row[unsafe, :, None] + log_column[unsafe, None, :]
        log_matrix[unsafe] = exact.clamp_max_(0)  # an entry is at most 1; more is rounding
        matrix[unsafe] = exact.exp()
    return Projection(matrix, log_matrix, log_row, log_column)
