"""Laplacian positional encodings of real subgraphs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

PADDING_EIGENVALUE = 10.0
"""Beyond the spectrum of a normalised Laplacian, [0, 2]: padding's eigenvectors come after all real ones."""
TILT = 1e-7
"""Weight of the node order in the Laplacian: it picks the eigenvectors where an eigenvalue repeats."""
MOST_GROUPS, NODES_PER_GROUP = 4, 10
"""Graphs of like size are decomposed together; one more group for every so many nodes of capacity."""
TIE = 1e-4
"""Entries this close to an eigenvector's largest one tie with it; the first of them decides the sign."""


@torch.no_grad()
def laplacian_encoding(adjacency: Tensor, mask: Tensor, dimension: int) -> Tensor:
    """(b, n, dimension): eigenvectors 1.. of the normalised Laplacian of the real subgraph, zero at padding.

    adjacency: (b, n, n) 0/1, symmetric. mask: (b, n) bool. Isolated nodes have eigenvalue 0. Eigenvector 0, the
    square root of the degrees, is left out; where a graph has fewer eigenvectors the rest are zero. Scaled so
    that an entry is of order one; the largest entry is positive. A repeated eigenvalue has no eigenvectors of its
    own, only a space of them: the order of the nodes picks a basis, so that neither the padding nor the rest of
    the batch nor the linear algebra library does.
    """
    n = adjacency.shape[1]
    if n == 0:
        return adjacency.new_zeros(len(adjacency), 0, dimension)
    real = mask.double()
    joined = adjacency.double() * real[:, :, None] * real[:, None, :]
    degree = joined.sum(2)
    scale = torch.where(degree > 0, degree, 1).rsqrt()
    # Square roots are linearly independent: no symmetry of a graph survives them.
    tilt = TILT * torch.arange(1, n + 1, dtype=real.dtype, device=real.device).sqrt()
    diagonal = torch.where(mask, (degree > 0) + tilt, PADDING_EIGENVALUE)
    laplacian = torch.diag_embed(diagonal) - scale[:, :, None] * joined * scale[:, None, :]
    size = real.sum(1)
    vectors = _eigenvectors(laplacian, size)[:, :, 1 : dimension + 1]
    vectors = functional.pad(vectors, (0, dimension - vectors.shape[2]))
    # Eigenvector k of a graph with m nodes is real for k < m; later ones belong to padding.
    kept = torch.arange(1, dimension + 1, device=real.device) < size[:, None]
    vectors = vectors * kept[:, None, :] * real[:, :, None] * size.sqrt()[:, None, None]
    height = vectors.abs()
    ties = height >= (1 - TIE) * height.amax(1, keepdim=True)
    first = vectors.gather(1, ties.to(torch.uint8).argmax(1, keepdim=True))
    return (vectors * torch.where(first < 0, -1.0, 1.0)).to(adjacency.dtype)


def _eigenvectors(matrices: Tensor, sizes: Tensor) -> Tensor:
    """(b, n, n) by ascending eigenvalue, where rows and columns from `sizes` (b,) on are no matter."""
    b, n, _ = matrices.shape
    groups = min(MOST_GROUPS, n // NODES_PER_GROUP)
    if groups < 2 or b < groups:
        whole: Tensor = torch.linalg.eigh(matrices).eigenvectors
        return whole
    order = sizes.argsort(stable=True)
    vectors = torch.zeros_like(matrices)
    for group in order.chunk(groups):
        m = int(sizes[group[-1]])
        vectors[group, :m, :m] = torch.linalg.eigh(matrices[group, :m, :m]).eigenvectors
    return vectors


def flip_signs(encoding: Tensor) -> Tensor:
    """The encoding (b, n, k) with the sign of every eigenvector drawn at random."""
    signs = torch.randint(0, 2, (encoding.shape[0], 1, encoding.shape[2]), device=encoding.device)
    return encoding * (2 * signs - 1)
