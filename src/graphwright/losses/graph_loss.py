"""The loss of a predicted graph under a plan, term by term (eq. 16 of the paper, docs/method.md).

Each node term is <cost, T>, linear in the plan, the cost of putting slot i on target position j; written from
non-negative entries, so the term is non-negative for every plan, and the same matrices are the linear part of the
problem that solvers minimise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, reduce
from operator import add
from typing import Annotated, Any, get_type_hints

import torch
from torch import Tensor
from torch.nn.functional import softplus

from graphwright.graphs import GraphBatch, Prediction
from graphwright.graphs.batch import without_self_loops
from graphwright.registry import Registry
from graphwright.transport import (
    Divergence,
    EdgeTerm,
    MatchingProblem,
    Objective,
    Order,
    Reading,
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


def squared_error_cost(predicted: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """(1/m) w_j |G_i - D_j|^2, of the neighbours' labels or of attributes. (b, n, l), (b, n, l) -> (b, n, n)."""
    squares = predicted.square().sum(2)[:, :, None] + target.square().sum(2)[:, None, :]
    distance = squares - 2 * predicted @ target.mT
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
class Bound:
    """Annotates a number with its least value, or the value that it must exceed.

    `LossSettings` checks it, and so does pydantic where settings are read, which needs no import of it here.
    """

    least: float | None = None
    above: float | None = None

    def check(self, name: str, value: float) -> None:
        """Refuse a value out of bounds."""
        if self.above is not None and not self.above < value < math.inf:
            raise ValueError(f"{name} must be above {self.above:g}, got {value}")
        if self.least is not None and not self.least <= value < math.inf:
            what = "a non-negative weight" if self.least == 0 else f"at least {self.least:g}"
            raise ValueError(f"{name} must be {what}, got {value}")

    def __get_pydantic_core_schema__(
        self, source: Any, handler: Callable[[Any], dict[str, Any]]
    ) -> dict[str, Any]:
        schema = handler(source)
        limits = {"ge": self.least, "gt": self.above}
        finite = {"allow_inf_nan": False} if schema["type"] == "float" else {}
        return schema | finite | {name: limit for name, limit in limits.items() if limit is not None}


Weight = Annotated[float, Bound(least=0)]


@dataclass(frozen=True)
class LossSettings:
    """Weights of the terms, and how edges are compared."""

    # Read by pydantic where a run's settings are: unknown names are errors, and the texts below fields are help.
    __pydantic_config__ = {"extra": "forbid", "use_attribute_docstrings": True}  # noqa: RUF012

    presence: Weight = 1.0
    """Weight of whether a node is there."""
    node_labels: Weight = 1.0
    """Weight of the node labels."""
    edge_labels: Weight = 0.2
    """Weight of the edge labels, where edges have labels."""
    adjacency: Weight = 0.5
    """Weight of whether an edge is there."""
    marginals: Weight = 1.0
    """Weight of the penalty on the plan's marginals; 0 turns it off."""
    diffusion: Weight = 1.0
    """Weight of the neighbours' summed labels, where the task predicts them."""
    attributes: Weight = 1.0
    """Weight of the squared error of nodes' numbers, in deviations, where nodes have any."""
    recognition: Weight = 0.0
    """Weight of which training graph it is as a whole, where graphs come again and again; 0: not asked."""
    divergence: Divergence = Divergence.CROSS_ENTROPY
    """How a predicted edge is compared with a target edge."""
    objective: Objective = Objective.J
    """The relaxation: J, or the averages J_a and J_b."""
    order: Order = Order.PREDICTION_FIRST
    """Which graph the plan transports."""
    reading: Reading = Reading.ROLE_PRESERVING
    """Which side stands inside the logarithm when the order is swapped."""
    penalty: PenaltyDirection = PenaltyDirection.FORWARD
    """Direction of the divergence that penalises wrong marginals."""
    # Without them a plan that spreads a slot over two nodes is not charged for their pair, and the uniform plan
    # beats permutations of undecided predictions.
    self_loops: SelfLoops = SelfLoops.INCLUDED
    """Whether pairs (i, i) count, as in the paper's sums."""
    none_weight: Annotated[float, Bound(above=0)] = 0.1
    """Relationformer: weight of a slot that stands for no node, against 1 for one that does."""
    negatives: Annotated[int, Bound(least=1)] = 3
    """Relationformer: pairs without an edge drawn for every edge."""
    further: Mapping[str, Weight] = field(default_factory=dict, hash=False)
    """Weights of the terms that other packages have registered, by their names."""

    def __post_init__(self) -> None:
        kinds = (
            ("self_loops", SelfLoops),
            ("divergence", Divergence),
            ("penalty", PenaltyDirection),
            ("objective", Objective),
            ("order", Order),
            ("reading", Reading),
        )
        for name, kind in kinds:
            object.__setattr__(self, name, kind(getattr(self, name)))
        for name, bound in _bounds().items():
            bound.check(name, getattr(self, name))
        for name, weight in self.further.items():
            Bound(least=0).check(name, weight)
        if self.divergence is Divergence.SQUARED:
            raise ValueError("divergence must be cross_entropy or kl: predicted edges are logits")

    @property
    def relaxation(self) -> Relaxation:
        """Objective, order and reading."""
        return Relaxation(self.objective, self.order, self.reading)

    def weight(self, term: str) -> float:
        """The weight of a term by its name."""
        return float(self.further[term] if term in self.further else getattr(self, term))

    def terms(self) -> dict[str, LossTerm]:
        """The terms of the loss, by name: all built-in ones, and those of other packages that have a weight."""
        return BUILT_IN | {name: LOSS_TERMS[name] for name, weight in self.further.items() if weight}


@cache
def _bounds() -> dict[str, Bound]:
    hints = get_type_hints(LossSettings, include_extras=True)
    parts = ((name, part) for name, hint in hints.items() for part in getattr(hint, "__metadata__", ()))
    return {name: part for name, part in parts if isinstance(part, Bound)}


@dataclass(frozen=True, eq=False)
class GraphLoss:
    """Per-sample values, (b,) each: the weighted total and every term before its weight, by name.

    A term that the graphs do not have (labels of unlabelled edges, diffusion that is not predicted) is zero. Each
    is also an attribute, as in `loss.adjacency`.
    """

    total: Tensor
    terms: Mapping[str, Tensor]

    def __getattr__(self, name: str) -> Tensor:
        try:
            return self.__dict__["terms"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(name) from None


Cost = Tensor | EdgeTerm | Callable[[Tensor], Tensor] | None
"""What a term charges a plan (b, n, n): <cost, plan> of a matrix (b, n, n); a comparison of pairs; or any other
function of the plan to (b,), which solvers do not see. None where the graphs have no such thing."""
LossTerm = Callable[[Prediction, GraphBatch, LossSettings], Cost]
"""A term of the loss; `LOSS_TERMS.register` gives it its name. The weight of another package's is `loss.NAME` of
the settings, 0 if nobody gives it, and the docstring's first line is its help. Edges come without self-loops."""

LOSS_TERMS: Registry[LossTerm] = Registry("loss term")
"""The terms by name."""


@LOSS_TERMS.register("presence")
def _presence(prediction: Prediction, target: GraphBatch, _: LossSettings) -> Cost:
    return presence_cost(prediction.presence, target.node_mask(prediction.presence.dtype))


@LOSS_TERMS.register("node_labels")
def _node_labels(prediction: Prediction, target: GraphBatch, _: LossSettings) -> Cost:
    if prediction.node_labels is None:
        return None
    return label_cost(prediction.node_labels, target.node_labels, target.node_mask(prediction.presence.dtype))


@LOSS_TERMS.register("diffusion")
def _diffusion(prediction: Prediction, target: GraphBatch, _: LossSettings) -> Cost:
    if prediction.diffusion is None:
        return None
    dtype = prediction.presence.dtype
    return squared_error_cost(prediction.diffusion, target.diffused_labels(dtype), target.node_mask(dtype))


@LOSS_TERMS.register("attributes")
def _attributes(prediction: Prediction, target: GraphBatch, _: LossSettings) -> Cost:
    if prediction.attributes is None or target.attributes is None:
        return None
    dtype = prediction.presence.dtype
    return squared_error_cost(prediction.attributes, target.attributes.to(dtype), target.node_mask(dtype))


@LOSS_TERMS.register("adjacency")
def _adjacency(prediction: Prediction, target: GraphBatch, settings: LossSettings) -> Cost:
    dtype = prediction.presence.dtype
    return EdgeTerm(prediction.adjacency, target.adjacency(dtype), settings.divergence)


@LOSS_TERMS.register("edge_labels")
def _edge_labels(prediction: Prediction, target: GraphBatch, settings: LossSettings) -> Cost:
    if prediction.edges.ndim == 3 or len(target.vocabulary.edges) <= 2:
        return None
    dtype = prediction.presence.dtype
    return EdgeTerm(prediction.edges, target.edge_one_hot(dtype), settings.divergence)


@LOSS_TERMS.register("marginals")
def _marginals(_: Prediction, __: GraphBatch, settings: LossSettings) -> Cost:
    return lambda plan: marginal_penalty(plan, settings.penalty)


BUILT_IN = LOSS_TERMS.registered()


def graph_loss(
    prediction: Prediction, target: GraphBatch, plan: Tensor, settings: LossSettings | None = None
) -> GraphLoss:
    """Loss of predictions under plans (b, n, n), rows slots, columns target positions.

    Valid for any non-negative plan, converged or not, and never negative but for rounding. Differentiable in the
    prediction and in the plan.
    """
    settings = settings or LossSettings()
    costs = _costs(prediction, target, settings)
    b, n = prediction.presence.shape
    check_plan("plan", plan, (b, n, n), "prediction.presence", prediction.presence)
    mask = target.node_mask(prediction.presence.dtype)

    def value(cost: Cost) -> Tensor:
        if cost is None:
            return plan.new_zeros(b)
        if isinstance(cost, Tensor):
            return (cost * plan).sum((1, 2))
        if isinstance(cost, EdgeTerm):
            return unchecked_objective(plan, cost, mask, settings.self_loops, settings.relaxation)
        return cost(plan)

    terms = {name: value(cost) for name, cost in costs.items()}
    weighted = [settings.weight(name) * term for name, term in terms.items()]
    return GraphLoss(reduce(add, weighted), terms)


def matching_problem(
    prediction: Prediction,
    target: GraphBatch,
    settings: LossSettings | None = None,
    prior: Tensor | None = None,
) -> MatchingProblem:
    """The problem that solvers minimise: its objective is `graph_loss` without what only the loss charges.

    That is the marginal penalty, among the built-in terms. prior: (b, n, n), what a task says beforehand against a
    slot for a node; one more linear cost of the plan, and none of the loss.
    """
    settings = settings or LossSettings()
    costs = _costs(prediction, target, settings)
    linear = [settings.weight(name) * cost for name, cost in costs.items() if isinstance(cost, Tensor)]
    terms = tuple(
        replace(cost, weight=settings.weight(name)) for name, cost in costs.items() if isinstance(cost, EdgeTerm)
    )
    mask = target.node_mask(prediction.presence.dtype)
    whole = reduce(add, linear if prior is None else [*linear, prior])
    return MatchingProblem(whole, terms, mask, settings.self_loops, settings.relaxation)


def _costs(prediction: Prediction, target: GraphBatch, settings: LossSettings) -> dict[str, Cost]:
    _check(prediction, target)
    prediction = replace(prediction, edges=without_self_loops(prediction.edges))
    return {name: term(prediction, target, settings) for name, term in settings.terms().items()}


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
    if prediction.attributes is None and target.attributes is not None:
        raise ValueError(f"prediction.attributes is missing, the target has {target.attributes.shape[2]}")
    for name, tensor, axis, classes in (
        ("presence", prediction.presence, 1, prediction.capacity),
        ("edges", prediction.edges, 1, edges if prediction.edges.ndim == 4 else prediction.capacity),
        ("node_labels", prediction.node_labels, 2, nodes),
        ("diffusion", prediction.diffusion, 2, nodes),
        ("attributes", prediction.attributes, 2, len(target.vocabulary.attributes)),
    ):
        if tensor is None:
            continue
        if tensor.shape[axis] != classes:
            raise ValueError(
                f"prediction.{name} has {tensor.shape[axis]} classes, the target's vocabulary {classes}"
            )
        check_finite(f"prediction.{name}", tensor)
