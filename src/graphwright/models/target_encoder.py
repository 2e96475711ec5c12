"""Node states of a target graph, for the matcher: h of eq. 11."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphwright.graphs import GraphBatch, Prediction, Vocabulary
from graphwright.models.positional import flip_signs, laplacian_encoding

MOST_GROUPS = 4
NODES_PER_GROUP = 10
"""One more group of like-sized graphs for every so many nodes of capacity: splitting small graphs costs more."""


class TargetEncoder(nn.Module):
    """Relational GIN: x <- x + MLP((1 + e) y + sum over labels c of A_c W_c y), y = norm(x).

    x starts as the node's label plus, where `positions` > 0, its Laplacian encoding, plus, where `places` > 0, a
    learned code of its place in the target. Without either it is permutation equivariant: nodes that an
    automorphism exchanges get the same state. The encodings break that symmetry (appendix B.2); the codes are for
    targets whose order means something, as that of canonical SMILES does.
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
        places: int = 0,
    ) -> None:
        super().__init__()
        self.labels = nn.Embedding(len(vocabulary.nodes), width)
        self.positions = positions
        self.random_signs = random_signs
        self.place = nn.Linear(positions, width, bias=False) if positions else None
        self.codes = nn.Parameter(torch.randn(places, width)) if places else None
        self.layers = nn.ModuleList(
            _Layer(width, relations=len(vocabulary.edges) - 1, dropout=dropout) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, target: GraphBatch) -> Tensor:
        """(b, n, width) node states, zero at padding."""
        if target.mask.is_meta:
            return self._encode(target)
        # Graphs of like size together: a group costs its largest member, not the capacity.
        order = target.sizes.argsort(stable=True)
        groups = order.chunk(min(MOST_GROUPS, max(1, target.capacity // NODES_PER_GROUP)))
        parts = [self._encode(target.select(group).unpad()) for group in groups]
        n = target.capacity
        sorted_states = torch.cat([functional.pad(part, (0, 0, 0, n - part.shape[1])) for part in parts])
        return sorted_states[order.argsort()]

    def soft(self, prediction: Prediction) -> Tensor:
        """(b, n, width) states of predicted slots, as of a graph whose nodes, labels and edges are probabilities.

        A prediction that is certain gets the states of its graph, encodings and codes of places apart.
        """
        here = prediction.presence.sigmoid()[:, :, None]
        if prediction.node_labels is None:
            states = self.labels.weight[0] * here
        else:
            states = prediction.node_labels.softmax(2) @ self.labels.weight * here
        edges = prediction.edges
        classes = edges.sigmoid()[:, None] if edges.ndim == 3 else edges.softmax(1)[:, 1:]
        apart = 1 - torch.eye(edges.shape[-1], dtype=edges.dtype, device=edges.device)
        joined = classes * (here * here.mT * apart)[:, None]
        relations = joined.transpose(1, 2).flatten(2)
        for layer in self.layers:
            states = layer(states, relations) * here
        result: Tensor = self.norm(states)
        return result

    def _encode(self, target: GraphBatch) -> Tensor:
        dtype = self.labels.weight.dtype
        mask = target.node_mask(dtype)[:, :, None]
        states: Tensor = self.labels(target.node_labels)
        if self.place is not None:
            encoding = laplacian_encoding(target.adjacency(dtype), target.mask, self.positions)
            if self.training and self.random_signs:
                encoding = flip_signs(encoding)
            states = states + self.place(encoding)
        if self.codes is not None:
            states = states + self.codes[: target.capacity]
        states = states * mask
        # Side by side, so that the messages of all labels cost one product.
        relations = target.edge_one_hot(dtype)[:, 1:].transpose(1, 2).flatten(2)
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
        """states (b, n, width), relations (b, n, c * n) -> (b, n, width)."""
        b, n, width = states.shape
        normed = self.norm(states)
        sent = self.messages(normed).view(b, n, self.relations, width).transpose(1, 2).flatten(1, 2)
        received = torch.bmm(relations, sent)
        result: Tensor = states + self.update((1 + self.epsilon) * normed + received)
        return result
