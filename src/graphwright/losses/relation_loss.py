"""Relationformer's loss for plain labelled graphs: slots against {none, labels}, relations of matched pairs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from graphwright.graphs import GraphBatch, Prediction
from graphwright.losses.graph_loss import BUILT_IN, GraphLoss, LossSettings
from graphwright.transport.checks import check_plan


def class_logits(prediction: Prediction) -> Tensor:
    """(b, n, 1 + labels) logits of the one softmax over {none, labels} that presence and labels were made of."""
    labels = prediction.node_labels
    if labels is None:
        labels = torch.zeros_like(prediction.presence)[:, :, None]
    return torch.cat([labels.amax(2, keepdim=True) - prediction.presence[:, :, None], labels], 2)


def node_classes(target: GraphBatch) -> Tensor:
    """(b, n) int64 classes of target positions: 0, none, at padding, else 1 + label."""
    return torch.where(target.mask, target.node_labels + 1, 0)


def relation_loss(
    prediction: Prediction, target: GraphBatch, plan: Tensor, settings: LossSettings | None = None
) -> GraphLoss:
    """Loss under permutations (b, n, n), rows slots, columns target positions.

    node_labels: cross-entropy over {none, labels}, the mean over slots with `none_weight` for those of no node.
    adjacency: cross-entropy over {none, edge labels}, the mean over all edges and `negatives` times as many other
    pairs of nodes, drawn by torch's generator, whose state checkpoints hold. The other terms are zero.
    """
    settings = settings or LossSettings()
    b, n = prediction.presence.shape
    logits, relation_logits = class_logits(prediction), _relation_logits(prediction)
    if (len(target), target.capacity) != (b, n):
        raise ValueError(f"prediction has {b} graphs of {n} slots, target {len(target)} of {target.capacity}")
    vocabulary = target.vocabulary
    if vocabulary.attributes:
        raise ValueError("Relationformer predicts no attributes of nodes, and the target has some")
    for name, given, known in (
        ("node_labels", logits.shape[2] - 1, len(vocabulary.nodes)),
        ("edges", relation_logits.shape[1], len(vocabulary.edges)),
    ):
        if given != known:
            raise ValueError(f"prediction.{name} has {given} classes, the target's vocabulary {known}")
    check_plan("plan", plan, (b, n, n), "prediction.presence", prediction.presence)
    columns = plan.argmax(2)
    nodes = _node_term(logits, node_classes(target).gather(1, columns), settings.none_weight)
    relations = _relation_term(relation_logits, target, columns, settings.negatives)
    zero = torch.zeros_like(nodes)
    total = settings.node_labels * nodes + settings.adjacency * relations
    return GraphLoss(total, dict.fromkeys(BUILT_IN, zero) | {"node_labels": nodes, "adjacency": relations})


def _node_term(logits: Tensor, classes: Tensor, none_weight: float) -> Tensor:
    """(b,) weighted mean over slots, by sample, so that a batch's size changes nothing."""
    loss = cross_entropy(logits.mT, classes, reduction="none")
    weights = torch.where(classes == 0, none_weight, 1.0).to(loss.dtype)
    return (loss * weights).sum(1) / weights.sum(1).clamp_min(torch.finfo(loss.dtype).tiny)


def _relation_logits(prediction: Prediction) -> Tensor:
    """(b, classes, n, n), none first."""
    edges = prediction.edges
    return torch.stack([torch.zeros_like(edges), edges], 1) if edges.ndim == 3 else edges


def _relation_term(logits: Tensor, target: GraphBatch, columns: Tensor, negatives: int) -> Tensor:
    """(b,) mean over the edges and the drawn pairs of each graph; 0 for a graph without pairs."""
    n = columns.shape[1]
    first, second = torch.triu_indices(n, n, 1, device=columns.device)
    at_first, at_second = columns[:, first], columns[:, second]
    sample = torch.arange(len(columns), device=columns.device)[:, None]
    codes = target.edge_labels[sample, at_first, at_second]
    real = target.mask.gather(1, at_first) & target.mask.gather(1, at_second)
    chosen = (codes > 0) | drawn_negatives(codes > 0, real, negatives)
    loss = cross_entropy(logits[:, :, first, second], codes, reduction="none")
    return (loss * chosen).sum(1) / chosen.sum(1).clamp_min(1)


def drawn_negatives(edges: Tensor, real: Tensor, negatives: int) -> Tensor:
    """(b, p) bool: of the pairs that are real and no edge, `negatives` for each edge (of a graph without edges as
    for one), or all of them where there are fewer. edges, real: (b, p) bool over pairs of slots."""
    candidates = real & ~edges
    # One number for every pair of slots, whatever the target: its order of nodes cannot change the draw.
    noise = torch.rand(edges.shape, device=edges.device).masked_fill(~candidates, 2.0)
    rank: Tensor = noise.argsort(1).argsort(1)
    wanted = negatives * edges.sum(1, keepdim=True).clamp_min(1)
    return candidates & rank.lt(wanted)
