"""The loss of a predicted graph under a plan, term by term (eq. 16 of the paper, docs/method.md).

Each node term is <cost, T>, linear in the plan, the cost of putting slot i on target position j; written from
non-negative entries, so the term is non-negative for every plan, and the same matrices are the linear part of the
problem that solvers minimise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import torch
from torch import Tensor
from torch.nn.functional import softplus

from graphwright.graphs import GraphBatch, Prediction
from graphwright.graphs.batch import without_self_loops
from graphwright.transport import (
    Divergence,
    EdgeTerm,
    MatchingProblem,
    Relaxation,
    SelfLoops,
)
from graphwright.transport.checks import check_finite, check_plan, check_shape
from graphwright.transport.relaxations import unchecked_objective


def presence_cost(presence: Tensor, mask: Tensor) -> Tensor:
    """(1/n) d_h(u_i, w_j): binary cross-entropy of the slot's presence logit. (b, n), (b, n) -> (b, n, n)."""
    present, absent = softplus(-presence)[:, :, None], softplus(presence)[:, :, None]
    w = mask[:, None, :]
    return (present * w + absent * (1 - w)) / mask.shape[1]


def label_cost(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """(1/m) w_j d_F(V_i, F_j): cross-entropy of the slot's label. (b, n, l) logits, (b, n) codes -> (b, n, n)."""
    n = labels.shape[1]
    chosen = labels[:, None, :].expand(-1, n, -1)
    return -logits.log_softmax(2).gather(2, chosen) * _per_node(mask)


def diffusion_cost(predicted: Tensor, diffused: Tensor, mask: Tensor) -> Tensor:
    """(1/m) w_j |G_i - D_j|^2, squared error of the neighbours' labels. (b, n, l), (b, n, l) -> (b, n, n)."""
    squares = predicted.square().sum(2)[:, :, None] + diffused.square().sum(2)[:, None, :]
    distance = squares - 2 * predicted @ diffused.mT
    return distance.clamp_min(0) * _per_node(mask)


def _per_node(mask: Tensor) -> Tensor:
    """w_j / m, (b, 1, n); zero for a graph without nodes."""
    return mask[:, None, :] / mask.sum(1).clamp_min(1)[:, None, None]


FLOOR = 1e-6
"""Below this a marginal's logarithm is continued by its tangent: value and gradient stay finite down to 0."""


class PenaltyDirection(StrEnum):
    """Which argument of the Kullback-Leibler divergence the marginal is."""

    FORWARD = "forward"
    """KL(p | 1) = sum p log p - p + 1, the paper's (eq. 13), generalised so that T = 0 is penalised."""
    REVERSE = "reverse"
    """KL(1 | p) = sum p - log p - 1, steep near 0."""


def marginal_penalty(plan: Tensor, direction: PenaltyDirection = PenaltyDirection.FORWARD) -> Tensor:
    """(b,) generalised KL of the row sums and of the column sums from 1 (eq. 13). plan: (b, n, n)."""
    check_shape("plan", plan, (-1, -1, -1))
    check_plan("plan", plan, tuple(plan.shape), "plan", plan)
    sums = torch.cat([plan.sum(2), plan.sum(1)], 1)
    log_sums = _log_with_tangent(sums)
    if PenaltyDirection(direction) is PenaltyDirection.FORWARD:
        return (sums * log_sums - sums + 1).sum(1)
    return (sums - log_sums - 1).sum(1)


def _log_with_tangent(value: Tensor) -> Tensor:
    inside = value.clamp_min(FLOOR)
    return inside.log() + (value - inside) / FLOOR


@dataclass(frozen=True)
class LossSettings:
    """Weights of the terms (the paper's by default) and how edges are compared.

    self_loops: whether pairs (i, i) count, as in the paper's sums. Without them a plan that spreads a slot over
    two nodes is not charged for their pair, and the uniform plan beats permutations of undecided predictions.
    """

    presence: float = 1.0
    node_labels: float = 1.0
    edge_labels: float = 0.2
    adjacency: float = 0.5
    marginals: float = 1.0
    diffusion: float = 1.0
    divergence: Divergence = Divergence.CROSS_ENTROPY
    relaxation: Relaxation = Relaxation()
    penalty: PenaltyDirection = PenaltyDirection.FORWARD
    self_loops: SelfLoops = SelfLoops.INCLUDED

    def __post_init__(self) -> None:
        object.__setattr__(self, "self_loops", SelfLoops(self.self_loops))
        object.__setattr__(self, "divergence", Divergence(self.divergence))
        object.__setattr__(self, "penalty", PenaltyDirection(self.penalty))
        for name in ("presence", "node_labels", "edge_labels", "adjacency", "marginals", "diffusion"):
            weight = getattr(self, name)
            if not 0 <= weight < float("inf"):
                raise ValueError(f"{name} must be a non-negative weight, got {weight}")
        if self.divergence is Divergence.SQUARED:
            raise ValueError("divergence must be cross_entropy or kl: predicted edges are logits")


@dataclass(frozen=True, eq=False)
class GraphLoss:
    """Per-sample values, (b,) each: the weighted total and every term before its weight.

    A term that the graphs do not have (labels of unlabelled edges, diffusion that is not predicted) is zero.
    """

    total: Tensor
    presence: Tensor
    node_labels: Tensor
    edge_labels: Tensor
    adjacency: Tensor
    diffusion: Tensor
    marginals: Tensor


@dataclass(frozen=True, eq=False)
class _Costs:
    """The linear costs (b, n, n) and edge terms of a prediction; None where the graphs have no such thing."""

    presence: Tensor
    node_labels: Tensor | None
    diffusion: Tensor | None
    adjacency: EdgeTerm
    edge_labels: EdgeTerm | None
    mask: Tensor


def graph_loss(
    prediction: Prediction, target: GraphBatch, plan: Tensor, settings: LossSettings | None = None
) -> GraphLoss:
    """Loss of predictions under plans (b, n, n), rows slots, columns target positions.

    Valid for any non-negative plan, converged or not, and never negative beyond rounding. Differentiable in the
    prediction and in the plan.
    """
    settings = settings or LossSettings()
    costs = _costs(prediction, target, settings)
    check_plan("plan", plan, tuple(costs.presence.shape), "prediction.presence", prediction.presence)

    def linear(cost: Tensor | None) -> Tensor:
        return plan.new_zeros(len(prediction)) if cost is None else (cost * plan).sum((1, 2))

    def edges(term: EdgeTerm | None) -> Tensor:
        if term is None:
            return plan.new_zeros(len(prediction))
        return unchecked_objective(plan, term, costs.mask, settings.self_loops, settings.relaxation)

    presence, node_labels, diffusion = (
        linear(cost) for cost in (costs.presence, costs.node_labels, costs.diffusion)
    )
    adjacency, edge_labels = edges(costs.adjacency), edges(costs.edge_labels)
    marginals = marginal_penalty(plan, settings.penalty)
    total = (
        settings.presence * presence
        + settings.node_labels * node_labels
        + settings.diffusion * diffusion
        + settings.adjacency * adjacency
        + settings.edge_labels * edge_labels
        + settings.marginals * marginals
    )
    return GraphLoss(total, presence, node_labels, edge_labels, adjacency, diffusion, marginals)


def matching_problem(
    prediction: Prediction,
    target: GraphBatch,
    settings: LossSettings | None = None,
    prior: Tensor | None = None,
) -> MatchingProblem:
    """The problem that solvers minimise: its objective is `graph_loss` without the marginal penalty.

    prior: (b, n, n), what a task says beforehand against a slot for a node; one more linear cost of the plan, and
    none of the loss.
    """
    settings = settings or LossSettings()
    costs = _costs(prediction, target, settings)
    linear = settings.presence * costs.presence
    if costs.node_labels is not None:
        linear = linear + settings.node_labels * costs.node_labels
    if costs.diffusion is not None:
        linear = linear + settings.diffusion * costs.diffusion
    if prior is not None:
        linear = linear + prior
    terms = tuple(term for term in (costs.adjacency, costs.edge_labels) if term is not None)
    return MatchingProblem(linear, terms, costs.mask, settings.self_loops, settings.relaxation)


def _costs(prediction: Prediction, target: GraphBatch, settings: LossSettings) -> _Costs:
    _check(prediction, target)
    prediction = replace(prediction, edges=without_self_loops(prediction.edges))
    dtype = prediction.presence.dtype
    mask = target.node_mask(dtype)
    diffused = None
    if prediction.diffusion is not None:
        diffused = diffusion_cost(prediction.diffusion, target.diffused_labels(dtype), mask)
    labels = None
    if prediction.node_labels is not None:
        labels = label_cost(prediction.node_labels, target.node_labels, mask)
    edge_labels = None
    if prediction.edges.ndim == 4 and len(target.vocabulary.edges) > 2:
        one_hot = target.edge_one_hot(dtype)
        edge_labels = EdgeTerm(prediction.edges, one_hot, settings.divergence, settings.edge_labels)
    adjacency = EdgeTerm(prediction.adjacency, target.adjacency(dtype), settings.divergence, settings.adjacency)
    return _Costs(presence_cost(prediction.presence, mask), labels, diffused, adjacency, edge_labels, mask)


def _check(prediction: Prediction, target: GraphBatch) -> None:
    if (len(prediction), prediction.capacity) != (len(target), target.capacity):
        raise ValueError(
            f"prediction has {len(prediction)} graphs of {prediction.capacity} slots, "
            f"target {len(target)} of {target.capacity}"
        )
    if prediction.presence.device != target.mask.device:
        raise ValueError(f"prediction is on {prediction.presence.device}, target on {target.mask.device}")
    nodes, edges = len(target.vocabulary.nodes), len(target.vocabulary.edges)
    if prediction.edges.ndim == 3 and edges > 2:
        raise ValueError(f"prediction.edges has no classes, the target's vocabulary has {edges}")
    if prediction.node_labels is None and nodes > 1:
        raise ValueError(f"prediction.node_labels is missing, the target's vocabulary has {nodes} labels")
    for name, tensor, axis, classes in (
        ("presence", prediction.presence, 1, prediction.capacity),
        ("edges", prediction.edges, 1, edges if prediction.edges.ndim == 4 else prediction.capacity),
        ("node_labels", prediction.node_labels, 2, nodes),
        ("diffusion", prediction.diffusion, 2, nodes),
    ):
        if tensor is None:
            continue
        if tensor.shape[axis] != classes:
            raise ValueError(
                f"prediction.{name} has {tensor.shape[axis]} classes, the target's vocabulary {classes}"
            )
        check_finite(f"prediction.{name}", tensor)
