"""What agrees and what is wrong under one alignment of a prediction and its target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphwright.decoding import Slots
from graphwright.graphs import Graph, GraphBatch
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


@dataclass(frozen=True, eq=False)
class AlignedErrors:
    """Errors of b predictions under one alignment each, all (b,) int64.

    presence: slots present where the target has padding, or absent where it has a node.
    labels: real target nodes whose slot has another label, be it present or not.
    edges: pairs of real target nodes, each once, whose slots are joined otherwise, be they present or not.
    unseen: edges that the decoded graph has wrong and the three above do not look at: between present slots of
        which one meets padding, and between target nodes of which one has an absent slot.
    attributes: (b,) float64, root mean squared error of the real target nodes' attributes, in deviations of the
        training data; a node whose slot is absent counts as if the mean had been predicted. None without any.

    Of the graph decoded from the slots present, `exact` implies that it is isomorphic to the target, and its
    edit distance is at most `edit + unseen`, since this alignment costs no more than that. It is at most `edit`
    where `presence` is 0; elsewhere it need not be, because the paper's figure leaves out the unseen edges.
    """

    presence: Tensor
    labels: Tensor
    edges: Tensor
    unseen: Tensor
    attributes: Tensor | None = None

    @property
    def edit(self) -> Tensor:
        """(b,) `aligned_edit`, all errors."""
        return self.presence + self.labels + self.edges

    @property
    def exact(self) -> Tensor:
        """(b,) bool, `aligned_exact`: no error."""
        return self.edit == 0


@dataclass(frozen=True, eq=False)
class AlignedSlots:
    """Predicted slots with an alignment to the target's positions.

    slots: b predictions of n slots.
    assignment: (b, n) int64, the slot that each target position gets (padding too): a permutation per sample.
    """

    slots: Slots
    assignment: Tensor

    def __post_init__(self) -> None:
        shape = tuple(self.slots.presence.shape)
        if tuple(self.assignment.shape) != shape or self.assignment.dtype != torch.int64:
            raise ValueError(
                f"assignment must be int64 of shape {shape}, "
                f"got {self.assignment.dtype} {tuple(self.assignment.shape)}"
            )
        slots = torch.arange(self.slots.capacity, device=self.assignment.device)
        wrong = (self.assignment.sort(1).values != slots).any(1)
        if wrong.any():
            raise ValueError(f"assignment must permute the slots (sample {int(wrong.nonzero()[0])})")

    def __len__(self) -> int:
        return len(self.slots)


def aligned_errors(aligned: AlignedSlots, targets: GraphBatch) -> AlignedErrors:
    """Errors of every prediction against its target, (b,) each, under the alignment given."""
    if targets.mask.shape != aligned.assignment.shape:
        raise ValueError(
            f"targets must have shape {tuple(aligned.assignment.shape)} as the slots have, "
            f"got {tuple(targets.mask.shape)}"
        )
    slots, order = aligned.slots, aligned.assignment
    n = slots.capacity
    presence, labels = slots.presence.gather(1, order), slots.node_labels.gather(1, order)
    rows, columns = order[:, :, None].expand(-1, -1, n), order[:, None, :].expand(-1, n, -1)
    edges = slots.edge_labels.gather(1, rows).gather(2, columns)
    real, both = targets.mask, _both(targets.mask)
    # What stands in the decoded graph, and in the target, on pairs where the slots present differ from the nodes.
    decoded = (edges > 0) & _both(presence) & ~both
    lost = (targets.edge_labels > 0) & ~_both(presence)
    return AlignedErrors(
        presence=(presence != real).sum(1),
        labels=((labels != targets.node_labels) & real).sum(1),
        edges=((edges != targets.edge_labels) & both).sum((1, 2)) // 2,
        unseen=(decoded | lost).sum((1, 2)) // 2,
        attributes=_attribute_error(slots, order, presence, targets),
    )


def _attribute_error(slots: Slots, order: Tensor, presence: Tensor, targets: GraphBatch) -> Tensor | None:
    if slots.attributes is None or targets.attributes is None:
        return None
    predicted = slots.attributes.gather(1, order[:, :, None].expand(-1, -1, slots.attributes.shape[2])).double()
    error = (predicted * presence[:, :, None] - targets.attributes).square().mean(2)
    return ((error * targets.mask).sum(1) / targets.sizes.clamp_min(1)).sqrt()


def decoded_alignments(aligned: AlignedSlots, sizes: list[int]) -> list[IntArray]:
    """For each sample the alignment as one of the decoded graph's nodes and the target's, (max(size),).

    sizes: numbers of nodes of the targets. Nodes that the alignment leaves alone meet in their order.
    """
    presence, assignment = aligned.slots.presence.cpu().numpy(), aligned.assignment.cpu().numpy()
    alignments = []
    for here, order, size in zip(presence, assignment, sizes, strict=True):
        node = np.cumsum(here) - 1
        n = max(int(here.sum()), size)
        met = np.flatnonzero(here[order[:size]])
        alignment = np.full(n, -1)
        alignment[node[order[met]]] = met
        alignment[alignment < 0] = np.setdiff1d(np.arange(n), met)
        alignments.append(alignment)
    return alignments


def _both(mask: Tensor) -> Tensor:
    """(b, n, n) whether both ends of a pair are in a mask (b, n)."""
    return mask[:, :, None] & mask[:, None, :]
