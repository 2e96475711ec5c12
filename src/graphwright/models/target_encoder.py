"""Node states of a target graph, for the matcher: h of eq. 11."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphwright.graphs import GraphBatch, Vocabulary
from graphwright.models.positional import flip_signs, laplacian_encoding


class TargetEncoder(nn.Module):
    """Relational GIN: x <- x + MLP((1 + e) y + sum over labels c of A_c W_c y), y = norm(x).

    x starts as the node's label plus, where `positions` > 0, its Laplacian encoding. Without the encodings it is
    permutation equivariant: nodes that an automorphism exchanges get the same state. The encodings break that
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
        dtype = self.labels.weight.dtype
        mask = target.node_mask(dtype)[:, :, None]
        states: Tensor = self.labels(target.node_labels)
        if self.place is not None:
            encoding = laplacian_encoding(target.adjacency(dtype), target.mask, self.positions)
            if self.training and self.random_signs:
                encoding = flip_signs(encoding)
            states = states + self.place(encoding)
        states = states * mask
        relations = target.edge_one_hot(dtype)[:, 1:]
        for layer in self.layers:
            states = layer(states, relations) * mask
        result: Tensor = self.norm(states) * mask
        return result


class _Layer(nn.Module):
    def __init__(self, width: int, relations: int, dropout: float) -> None:
        super().__init__()
        self.messages = nn.Linear(width, relations * width, bias=False)
        self.relations = relations
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.norm = nn.LayerNorm(width)
        self.update = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * width, width)
        )

    def forward(self, states: Tensor, relations: Tensor) -> Tensor:
        """states (b, n, width), relations (b, c, n, n) -> (b, n, width)."""
        b, n, width = states.shape
        normed = self.norm(states)
        sent = self.messages(normed).view(b, n, self.relations, width)
        received = sum(torch.bmm(relations[:, c], sent[:, :, c]) for c in range(self.relations))
        result: Tensor = states + self.update((1 + self.epsilon) * normed + received)
        return result
