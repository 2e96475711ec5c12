"""Relationformer's decoder and head (Shit et al. 2022) for plain labelled graphs: no boxes, no coordinates."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphwright.graphs import Prediction, Vocabulary
from graphwright.models.arithmetic import Linear, at_least_float32
from graphwright.models.decoder import NodeDecoder


class RelationDecoder(NodeDecoder):
    """A query per slot and one more, the relation token, which may gather what all pairs have in common."""

    def __init__(self, slots: int, width: int, layers: int, heads: int, dropout: float, memory_width: int) -> None:
        super().__init__(slots, width, layers, heads, dropout, memory_width)
        self.relation = nn.Parameter(torch.randn(1, width) / width**0.5)

    def forward(self, tokens: Tensor, token_mask: Tensor | None) -> Tensor:
        """tokens (b, k, memory width) -> states (b, n + 1, width), the relation token's last."""
        queries = torch.cat([self.queries, self.relation]).expand(tokens.shape[0], -1, -1)
        result: Tensor = self.layers(queries, self.memory(tokens), token_mask)
        return result


class RelationHead(nn.Module):
    """A softmax over {none, labels} for each slot; relations of (x_i, x_j, relation token), both orders averaged.

    `Prediction` has presence and labels apart: labels are the logits c_1.., presence is max(c_1..) - c_none, which
    is positive where the argmax is a label. `losses.relation_loss.class_logits` gets c back, exactly.
    """

    def __init__(self, width: int, hidden: int, vocabulary: Vocabulary) -> None:
        super().__init__()
        labels, relations = len(vocabulary.nodes), len(vocabulary.edges)
        self.classes = nn.Sequential(Linear(width, hidden), nn.GELU(), Linear(hidden, 1 + labels))
        # The first layer is linear in the concatenation, so its parts are applied before the pairs are formed.
        self.first = Linear(width, hidden, bias=False)
        self.second = Linear(width, hidden, bias=False)
        self.relation = Linear(width, hidden)
        # Of two relations, none and edge, only the difference of the logits counts.
        self.pair_output = nn.Sequential(
            nn.GELU(), Linear(hidden, hidden), nn.GELU(), Linear(hidden, relations if relations > 2 else 1)
        )

    def forward(self, states: Tensor) -> Prediction:
        """states (b, n + 1, width) -> logits, in float32 under mixed precision; the edges' diagonal is zero."""
        slots, token = states[:, :-1], states[:, -1:]
        classes = at_least_float32(self.classes(slots))
        none, labels = classes[:, :, 0], classes[:, :, 1:]
        first, second = self.first(slots) + self.relation(token), self.second(slots)
        n = slots.shape[1]
        rows, columns = torch.triu_indices(n, n, 1, device=states.device)
        orders = torch.stack([first[:, rows] + second[:, columns], first[:, columns] + second[:, rows]])
        upper = at_least_float32(self.pair_output(orders)).mean(0)
        edges = upper.new_zeros(len(upper), n, n, upper.shape[2])
        edges[:, rows, columns] = upper
        edges[:, columns, rows] = upper
        return Prediction(
            presence=labels.amax(2) - none,
            edges=edges[..., 0] if edges.shape[3] == 1 else edges.permute(0, 3, 1, 2),
            node_labels=labels if labels.shape[2] > 1 else None,
        )
