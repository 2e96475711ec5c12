"""From logits to graphs, slot by slot: what is more likely than not, and the likeliest label."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphwright.graphs import Graph, Prediction, Vocabulary


@dataclass(frozen=True, eq=False)
class Slots:
    """Hard decisions of a predictor on b graphs with n slots each, absent slots included.

    presence: (b, n) bool, whether the slot is a node.
    node_labels: (b, n) int64 codes.
    edge_labels: (b, n, n) int64 codes, symmetric, 0 where there is no edge and on the diagonal.
    """

    presence: Tensor
    node_labels: Tensor
    edge_labels: Tensor

    def __post_init__(self) -> None:
        if self.presence.ndim != 2:
            raise ValueError(f"presence must have shape (b, n), got {tuple(self.presence.shape)}")
        b, n = self.presence.shape
        for name, tensor, dtype, shape in (
            ("presence", self.presence, torch.bool, (b, n)),
            ("node_labels", self.node_labels, torch.int64, (b, n)),
            ("edge_labels", self.edge_labels, torch.int64, (b, n, n)),
        ):
            if tuple(tensor.shape) != shape or tensor.dtype != dtype:
                raise ValueError(
                    f"{name} must be {dtype} of shape {shape}, got {tensor.dtype} {tuple(tensor.shape)}"
                )
        loops = self.edge_labels.diagonal(dim1=1, dim2=2) != 0
        uneven = self.edge_labels != self.edge_labels.mT
        for wrong, what in ((loops, "0 on the diagonal"), (uneven, "symmetric")):
            if wrong.any():
                sample = int(wrong.flatten(1).any(1).nonzero()[0])
                raise ValueError(f"edge_labels must be {what} (sample {sample})")

    def __len__(self) -> int:
        return self.presence.shape[0]

    @property
    def capacity(self) -> int:
        """Number of slots, n."""
        return self.presence.shape[1]

    def graphs(self, vocabulary: Vocabulary) -> list[Graph]:
        """The graphs on the slots that are present, in their order."""
        presence, labels = self.presence.cpu().numpy(), self.node_labels.cpu().numpy()
        edges = self.edge_labels.cpu().numpy()
        return [
            Graph.from_matrix(label[here], matrix[here][:, here], vocabulary)
            for here, label, matrix in zip(presence, labels, edges, strict=True)
        ]


def decode(prediction: Prediction, vocabulary: Vocabulary) -> list[Graph]:
    """The predicted graphs, without a look at any target: `harden`, then the slots present."""
    return harden(prediction, vocabulary).graphs(vocabulary)


def harden(prediction: Prediction, vocabulary: Vocabulary) -> Slots:
    """Hard decisions from logits: presence with sigmoid(u) > 1/2, labels and edges by the largest logit.

    Edge logits are symmetrised first, (Y + Y') / 2, and the diagonal is never an edge. Where the prediction is
    Z alone, `Y = (0, Z)`. Of equal logits the first class wins, so an undecided pair is not joined.
    """
    with torch.no_grad():
        edges = edge_logits(prediction, vocabulary)
        labels = label_logits(prediction, vocabulary)
        for name, logits in (("presence", prediction.presence), ("node_labels", labels), ("edges", edges)):
            missing = logits.isnan()
            if missing.any():
                raise ValueError(f"{name} has a NaN (sample {int(missing.flatten(1).any(1).nonzero()[0])})")
        codes = edges.argmax(1)
        codes.diagonal(dim1=1, dim2=2).zero_()
        return Slots(prediction.presence > 0, labels.argmax(2), codes)


def edge_logits(prediction: Prediction, vocabulary: Vocabulary) -> Tensor:
    """(b, classes, n, n) symmetric logits, "none" first."""
    edges = prediction.edges
    if edges.ndim == 3:
        edges = torch.stack([torch.zeros_like(edges), edges], dim=1)
    if edges.shape[1] != len(vocabulary.edges):
        raise ValueError(f"edges has {edges.shape[1]} classes, the vocabulary {len(vocabulary.edges)}")
    return (edges + edges.mT) / 2


def label_logits(prediction: Prediction, vocabulary: Vocabulary) -> Tensor:
    """(b, n, labels); without node labels a single one."""
    labels = prediction.node_labels
    if labels is None:
        labels = torch.zeros_like(prediction.presence)[:, :, None]
    if labels.shape[2] != len(vocabulary.nodes):
        raise ValueError(f"node_labels has {labels.shape[2]} labels, the vocabulary {len(vocabulary.nodes)}")
    return labels
