"""Which nodes and edges of a target a prediction got right, under an alignment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphwright.graphs import Graph
from graphwright.graphs.graph import IntArray


@dataclass(frozen=True)
class Agreement:
    """Shares, 0 to 1, of what agrees between a predicted graph and its target.

    node_accuracy: target nodes that meet a predicted node of the same label, of all target nodes.
    edge_precision: predicted edges that meet a target edge of the same label, of all predicted edges.
    edge_recall: the same edges, of all target edges.

    A share of nothing is 1 if the other graph has none either (no nodes, no edges), and 0 if it has some.
    """

    node_accuracy: float
    edge_precision: float
    edge_recall: float

    @classmethod
    def of(cls, predicted: Graph, target: Graph, alignment: IntArray) -> Agreement:
        """What agrees when predicted node i meets target node alignment[i]; (max(size),) as in `EditDistance`."""
        n = len(alignment)
        labels = np.full(n, -1)
        labels[: target.size] = target.node_labels
        matrix = np.zeros((n, n), np.int64)
        matrix[: target.size, : target.size] = target.edge_matrix()
        nodes = int((labels[alignment[: predicted.size]] == predicted.node_labels).sum())
        ends = alignment[predicted.edges]
        edges = int((matrix[ends[:, 0], ends[:, 1]] == predicted.edge_labels).sum())
        return cls(
            node_accuracy=_share(nodes, target.size, predicted.size),
            edge_precision=_share(edges, len(predicted.edges), len(target.edges)),
            edge_recall=_share(edges, len(target.edges), len(predicted.edges)),
        )


def _share(part: int, whole: int, other: int) -> float:
    return part / whole if whole else float(other == 0)
