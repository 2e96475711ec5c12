"""Node states of a target graph, for the matcher: h of eq. 11."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from graphwright.graphs import GraphBatch, Vocabulary
from graphwright.models.arithmetic import Bags, Linear

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


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The edges of all graphs of a batch among their m real nodes, by receiver and by sender."""

    by_receiver: Bags
    by_sender: Bags
    relations: int

    @classmethod
    def of(cls, target: GraphBatch) -> Neighbours:
        """Every edge both ways; its label, from 1, is its relation."""
        relations, labels = len(target.vocabulary.edges) - 1, target.edge_labels
        nodes, sizes = len(target.node_rows), target.sizes
        graph, first, second = labels.nonzero().unbind(1)
        label = labels[graph, first, second]
        before = (sizes.cumsum(0) - sizes)[graph]
        receiver, sent = before + first, (before + second) * relations + label - 1
        order = sent.argsort(stable=True)
        return cls(
            Bags.of(receiver, sent, nodes, nodes * relations),
            Bags.of(sent[order], receiver[order], nodes * relations, nodes),
            relations,
        )

    def received(self, sent: Tensor) -> Tensor:
        """(m, width): of what nodes send, (m, relations * width), what their neighbours do by the edge between."""
        values: Tensor = _NeighbourSums.apply(
            sent.view(len(sent) * self.relations, sent.shape[1] // self.relations), self
        )  # type: ignore[no-untyped-call]
        return values


class _NeighbourSums(torch.autograd.Function):
    """Both ways are sums of bags: torch's own way back would add row by row."""

    @staticmethod
    def forward(ctx: Any, sent: Tensor, neighbours: Neighbours) -> Tensor:
        ctx.neighbours = neighbours
        return neighbours.by_receiver.sums(sent)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.neighbours.by_sender.sums(gradient.contiguous()), None


class NodeEncoder(nn.Module, ABC):
    """Whatever has a state for every node of a target."""

    @abstractmethod
    def nodes(self, target: GraphBatch) -> Tensor:
        """(m, width) states of the m real nodes of all graphs, one after another: padding costs nothing."""


class TargetEncoder(NodeEncoder):
    """Relational GIN: x <- x + MLP((1 + e) y + sum over labels c of A_c W_c y), y = norm(x).

    x starts as the node's label and attributes plus, where `positions` > 0, its Laplacian encoding. Without it the
    encoder is permutation equivariant: nodes that an automorphism exchanges get the same state. The encoding
    breaks that symmetry (appendix B.2).
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        width: int,
        layers: int,
        positions: int,
        *,
        random_signs: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.labels = nn.Embedding(len(vocabulary.nodes), width)
        self.positions = positions
        self.random_signs = random_signs
        self.place = Linear(positions, width, bias=False) if positions else None
        numbers = len(vocabulary.attributes)
        self.attributes = Linear(numbers, width, bias=False) if numbers else None
        self.layers = nn.ModuleList(
            _Layer(width, relations=len(vocabulary.edges) - 1, dropout=dropout) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, target: GraphBatch) -> Tensor:
        """(b, n, width) node states, zero at padding."""
        return target.padded(self.nodes(target))

    def nodes(self, target: GraphBatch) -> Tensor:
        """(m, width) of real nodes."""
        dtype, rows = self.labels.weight.dtype, target.node_rows
        states: Tensor = self.labels(target.node_labels.flatten()[rows])
        if self.place is not None:
            encoding = laplacian_encoding(target.adjacency(dtype), target.mask, self.positions)
            if self.training and self.random_signs:
                encoding = flip_signs(encoding)
            states = states + self.place(encoding.flatten(0, 1)[rows])
        if self.attributes is not None:
            if target.attributes is None:
                raise ValueError("the target's attributes are missing")
            states = states + self.attributes(target.attributes.to(dtype).flatten(0, 1)[rows])
        received = Neighbours.of(target).received
        for layer in self.layers:
            states = layer(states, received)
        result: Tensor = self.norm(states)
        return result


class _Layer(nn.Module):
    def __init__(self, width: int, relations: int, dropout: float) -> None:
        super().__init__()
        self.messages = Linear(width, relations * width, bias=False)
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.norm = nn.LayerNorm(width)
        self.update = nn.Sequential(
            Linear(width, 2 * width), nn.GELU(), nn.Dropout(dropout), Linear(2 * width, width)
        )

    def forward(self, states: Tensor, received: Callable[[Tensor], Tensor]) -> Tensor:
        """states (..., width) -> (..., width); received: what nodes send, (..., relations * width), to sums."""
        normed = self.norm(states)
        arriving = received(self.messages(normed))
        result: Tensor = states + self.update((1 + self.epsilon) * normed + arriving)
        return result
