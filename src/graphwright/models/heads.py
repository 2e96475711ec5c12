"""From slot states to logits of a graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphwright.graphs import Prediction, Vocabulary
from graphwright.models.arithmetic import Linear, at_least_float32


class GraphHead(nn.Module):
    """MLPs for presence, node labels, attributes, optional diffusion, and edges from x_i + x_j, symmetric.

    With `product` pairs are also told W x_i * W x_j: whether two slots agree is a sum's sign pattern only through
    many hidden units, and one product.
    """

    def __init__(self, width: int, hidden: int, vocabulary: Vocabulary, *, diffusion: bool, product: bool) -> None:
        super().__init__()
        labels, classes = len(vocabulary.nodes), len(vocabulary.edges)
        self.presence = mlp(width, hidden, 1)
        self.labels = mlp(width, hidden, labels) if labels > 1 else None
        self.diffusion = mlp(width, hidden, labels) if diffusion else None
        numbers = len(vocabulary.attributes)
        self.attributes = mlp(width, hidden, numbers) if numbers else None
        # The first layer is linear in x_i + x_j, so it is applied before the sum, n times instead of n^2.
        self.pair_input = Linear(width, hidden)
        self.pair_factor = Linear(width, hidden) if product else None
        # One logit says whether there is an edge; with several labels, one logit per class.
        self.pair_output = nn.Sequential(
            nn.GELU(), Linear(hidden, hidden), nn.GELU(), Linear(hidden, classes if classes > 2 else 1)
        )

    def forward(self, states: Tensor) -> Prediction:
        """states (b, n, width) -> logits, in float32 under mixed precision; the edge logits' diagonal is zero."""
        ends = self.pair_input(states)
        n = states.shape[1]
        first, second = torch.triu_indices(n, n, 1, device=states.device)
        pairs = ends[:, first] + ends[:, second]
        if self.pair_factor is not None:
            factors = self.pair_factor(states)
            pairs = pairs + factors[:, first] * factors[:, second]
        upper = at_least_float32(self.pair_output(pairs))
        edges = upper.new_zeros(states.shape[0], n, n, upper.shape[2])
        edges[:, first, second] = upper
        edges[:, second, first] = upper
        return Prediction(
            presence=at_least_float32(self.presence(states)[:, :, 0]),
            edges=edges[..., 0] if edges.shape[3] == 1 else edges.permute(0, 3, 1, 2),
            node_labels=None if self.labels is None else at_least_float32(self.labels(states)),
            diffusion=None if self.diffusion is None else at_least_float32(self.diffusion(states)),
            attributes=None if self.attributes is None else at_least_float32(self.attributes(states)),
        )


def mlp(width: int, hidden: int, outputs: int) -> nn.Sequential:
    """One hidden layer."""
    return nn.Sequential(Linear(width, hidden), nn.GELU(), Linear(hidden, outputs))
