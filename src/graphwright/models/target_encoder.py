"""Node states of a target graph, for the matcher: h of eq. 11."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from graphwright.graphs import GraphBatch, Vocabulary
from graphwright.models.neighbours import Neighbours
from graphwright.models.positional import flip_signs, laplacian_encoding


class NodeEncoder(nn.Module, ABC):
    """Whatever has a state for every node of a target."""

    @abstractmethod
    def nodes(self, target: GraphBatch) -> Tensor:
        """(m, width) states of the m real nodes of all graphs, one after another: padding costs nothing."""


class TargetEncoder(NodeEncoder):
    """Relational GIN: x <- x + MLP((1 + e) y + sum over labels c of A_c W_c y), y = norm(x).

    x starts as the node's label plus, where `positions` > 0, its Laplacian encoding. Without it the encoder is
    permutation equivariant: nodes that an automorphism exchanges get the same state. The encoding breaks that
    symmetry (appendix B.2).
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
        self.place = nn.Linear(positions, width, bias=False) if positions else None
        self.layers = nn.ModuleList(
            _Layer(width, relations=len(vocabulary.edges) - 1, dropout=dropout) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, target: GraphBatch) -> Tensor:
        """(b, n, width) node states, zero at padding."""
        return target.padded(self.nodes(target))

    def nodes(self, target: GraphBatch) -> Tensor:
        """(m, width) of real nodes."""
        dtype, places = self.labels.weight.dtype, target.places
        states: Tensor = self.labels(target.node_labels.flatten()[places])
        if self.place is not None:
            encoding = laplacian_encoding(target.adjacency(dtype), target.mask, self.positions)
            if self.training and self.random_signs:
                encoding = flip_signs(encoding)
            states = states + self.place(encoding.flatten(0, 1)[places])
        received = Neighbours.of(target).received
        for layer in self.layers:
            states = layer(states, received)
        result: Tensor = self.norm(states)
        return result


class _Layer(nn.Module):
    def __init__(self, width: int, relations: int, dropout: float) -> None:
        super().__init__()
        self.messages = nn.Linear(width, relations * width, bias=False)
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.norm = nn.LayerNorm(width)
        self.update = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * width, width)
        )

    def forward(self, states: Tensor, received: Callable[[Tensor], Tensor]) -> Tensor:
        """states (..., width) -> (..., width); received: what nodes send, (..., relations * width), to sums."""
        normed = self.norm(states)
        arriving = received(self.messages(normed))
        result: Tensor = states + self.update((1 + self.epsilon) * normed + arriving)
        return result
