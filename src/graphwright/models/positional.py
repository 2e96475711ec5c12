"""Laplacian positional encodings of real subgraphs."""

from __future__ import annotations

import torch
from torch import Tensor

PADDING_EIGENVALUE = 10.0
"""Beyond the spectrum of a normalised Laplacian, [0, 2]: padding's eigenvectors come last, the real ones unmixed."""


@torch.no_grad()
def laplacian_encoding(adjacency: Tensor, mask: Tensor, dimension: int) -> Tensor:
    """(b, n, dimension): eigenvectors 1.. of the normalised Laplacian of the real subgraph, zero at padding.

    adjacency: (b, n, n) 0/1. mask: (b, n) bool. The constant eigenvector 0 is left out; where a graph has fewer
    eigenvectors the rest are zero. Scaled so that an entry is of order one; the largest entry is positive.
    """
    b, n, _ = adjacency.shape
    w = mask.to(adjacency.dtype)
    degree = adjacency.sum(2)
    scale = torch.where(degree > 0, degree, 1).rsqrt()
    diagonal = torch.where(mask, (degree > 0).to(w), PADDING_EIGENVALUE)
    laplacian = torch.diag_embed(diagonal) - scale[:, :, None] * adjacency * scale[:, None, :]
    vectors = torch.linalg.eigh(laplacian).eigenvectors[:, :, 1 : dimension + 1]
    vectors = torch.nn.functional.pad(vectors, (0, dimension - vectors.shape[2]))
    # Eigenvector k of a graph with m nodes is real for k < m; later ones belong to padding.
    real = torch.arange(1, dimension + 1, device=w.device) < w.sum(1)[:, None]
    vectors = vectors * real[:, None, :] * w[:, :, None] * w.sum(1).sqrt()[:, None, None]
    heaviest = vectors.gather(1, vectors.abs().argmax(1, keepdim=True))
    return vectors * torch.where(heaviest < 0, -1.0, 1.0).to(w)


def flip_signs(encoding: Tensor) -> Tensor:
    """The encoding (b, n, k) with the sign of every eigenvector drawn at random."""
    signs = torch.randint(0, 2, (encoding.shape[0], 1, encoding.shape[2]), device=encoding.device)
    return encoding * (2 * signs - 1)
