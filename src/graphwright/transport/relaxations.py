"""The three relaxations of graph matching, J (Gromov-Wasserstein), J_a and J_b, for any plan and mask; and the
discrepancies of edges d(prediction, target) that they sum.

Every d here is f1(a) + f2(b) - sum_c h1_c(a) h2_c(b), which is what makes the Gromov-Wasserstein objective
an O(n^3) computation (Peyre et al. 2016). Cross-entropy is written on logits, so nothing is ever clamped.

Notation of the docstrings: T (b, n, n) plan, rows are predicted slots and columns target positions; w mask,
m its sum; B_w = B * (w w'); r = T w; c = T' 1. Sums are over all pairs, (i, i) among them, as in the paper: that
is what charges a plan for spreading one slot over two nodes. With self-loops excluded the diagonal is left out on
both sides, and Proposition 3.2 (no spurious minima) does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from graphwright.transport.checks import (
    check_finite,
    check_interval,
    check_like,
    check_plan,
    check_shape,
    refuse,
)


class Divergence(StrEnum):
    """How a predicted pair is compared with a target pair."""

    SQUARED = "squared"
    """(a - b)^2 on values, summed over channels."""
    CROSS_ENTROPY = "cross_entropy"
    """softplus(z) - z b on edge logits, or LSE(y) - <y, e> on class logits."""
    KL = "kl"
    """Cross-entropy minus the entropy of the target: 0 where prediction and soft target agree."""


@dataclass(frozen=True, eq=False)
class Factors:
    """d(A_ik, B_jl) = prediction_cost_ik + target_cost_jl - sum_c left_cik right_cjl.

    prediction_cost: (b, n, n). target_cost: (b, n, n), or None where it is zero.
    left, right: (b, channels, n, n).
    """

    prediction_cost: Tensor
    target_cost: Tensor | None
    left: Tensor
    right: Tensor


def factorise(divergence: Divergence, prediction: Tensor, target: Tensor) -> Factors:
    """The factors of a divergence.

    prediction: (b, n, n) values or edge logits, or (b, classes, n, n) values or class logits.
    target: the same shape; for cross-entropy and KL, probabilities of the edge or of each class.
    """
    divergence = _checked(divergence, prediction, target)
    a, b = _channels(prediction), _channels(target)
    if divergence is Divergence.SQUARED:
        return Factors(a.square().sum(1), b.square().sum(1), 2 * a, b)
    entropy = None if divergence is Divergence.CROSS_ENTROPY else -target_entropy(target)
    if prediction.ndim == 3:
        return Factors(softplus(prediction), entropy, a, b)
    # Class probabilities sum to one, so logits relative to class 0 need no channel for it.
    relative = a[:, 1:] - a[:, :1]
    return Factors(a.logsumexp(1) - a[:, 0], entropy, relative, b[:, 1:])


def pair_divergence(divergence: Divergence, prediction: Tensor, target: Tensor) -> Tensor:
    """(b, n, n) d(A_ik, B_ik), pair by pair. Shapes as in `factorise`."""
    divergence = _checked(divergence, prediction, target)
    if divergence is Divergence.SQUARED:
        difference = (prediction - target).square()
        return difference.sum(1) if prediction.ndim == 4 else difference
    labels = class_probabilities(target)
    cost = -(labels * class_log_probabilities(prediction)).sum(1)
    return cost if divergence is Divergence.CROSS_ENTROPY else cost - target_entropy(target)


def class_log_probabilities(logits: Tensor) -> Tensor:
    """(b, classes, n, n) log-probabilities; an edge logit counts as the classes (none, edge)."""
    if logits.ndim == 3:
        return torch.stack([logsigmoid(-logits), logsigmoid(logits)], 1)
    return logits.log_softmax(1)


def class_probabilities(target: Tensor) -> Tensor:
    """(b, classes, n, n) target probabilities; an edge probability counts as the classes (none, edge)."""
    return torch.stack([1 - target, target], 1) if target.ndim == 3 else target


def target_entropy(target: Tensor) -> Tensor:
    """(b, n, n) entropy of each soft target; 0 for hard ones."""
    labels = class_probabilities(target)
    return -(labels * safe_log(labels)).sum(1)


def safe_log(value: Tensor) -> Tensor:
    """log, with 0 read as the smallest normal number so that 0 log 0 and its gradient are finite."""
    return value.clamp_min(torch.finfo(value.dtype).tiny).log()


def _checked(divergence: Divergence, prediction: Tensor, target: Tensor) -> Divergence:
    check_shape("prediction", prediction, (-1, -1, -1), (-1, -1, -1, -1))
    check_shape("target", target, tuple(prediction.shape))
    return Divergence(divergence)


def _channels(tensor: Tensor) -> Tensor:
    return tensor[:, None] if tensor.ndim == 3 else tensor


class Objective(StrEnum):
    """Which relaxation of the matching objective (paper, section 2)."""

    J = "J"
    J_A = "J_a"
    J_B = "J_b"


class Order(StrEnum):
    """Which graph is the first argument of the objective."""

    PREDICTION_FIRST = "prediction_first"
    TARGET_FIRST = "target_first"
    """J(T'; A*, f): the plan is transposed (the swapped rows of Table 2)."""


class Reading(StrEnum):
    """What swapping does to the roles inside the divergence; the paper does not say."""

    LITERAL = "literal"
    """The target stands inside the logarithm, clamped at `clamp`."""
    ROLE_PRESERVING = "role_preserving"
    """The prediction stays inside the logarithm; only the averaging changes sides."""


class SelfLoops(StrEnum):
    """Whether pairs (i, i) count."""

    INCLUDED = "included"
    EXCLUDED = "excluded"


@dataclass(frozen=True)
class Relaxation:
    """One row of Table 2: objective, argument order, and how a swap is read. The default is the paper's J."""

    objective: Objective = Objective.J
    order: Order = Order.PREDICTION_FIRST
    reading: Reading = Reading.ROLE_PRESERVING
    clamp: float = 1e-6

    def __post_init__(self) -> None:
        # A plain string equals its member but is not it, and would silently choose another branch below.
        object.__setattr__(self, "objective", Objective(self.objective))
        object.__setattr__(self, "order", Order(self.order))
        object.__setattr__(self, "reading", Reading(self.reading))
        if not 0 < self.clamp < 1:
            raise ValueError(f"clamp must lie in (0, 1), got {self.clamp}")

    @property
    def is_quadratic(self) -> bool:
        """Whether the objective is J itself, quadratic in the plan."""
        swapped_literally = self.order is Order.TARGET_FIRST and self.reading is Reading.LITERAL
        return self.objective is Objective.J and not swapped_literally


@dataclass(frozen=True, eq=False)
class EdgeTerm:
    """One comparison of predicted with target pairs.

    prediction: (b, n, n) values or edge logits, or (b, classes, n, n) values or class logits.
    target: the same shape, values or probabilities.
    """

    prediction: Tensor
    target: Tensor
    divergence: Divergence = Divergence.CROSS_ENTROPY
    weight: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "divergence", Divergence(self.divergence))


def relaxed_objective(
    plan: Tensor, term: EdgeTerm, mask: Tensor, self_loops: SelfLoops, relaxation: Relaxation
) -> Tensor:
    """(b,) value of one edge term, unweighted, over m^2. Differentiable in plan, prediction and target.

    plan: (b, n, n), any non-negative matrix. mask: (b, n).
    """
    check_shape("plan", plan, (-1, -1, -1))
    b, n, _ = plan.shape
    check_plan("plan", plan, (b, n, n), "plan", plan)
    check_mask(mask, "plan", plan)
    check_term("term", term, "plan", plan)
    return unchecked_objective(plan, term, mask, SelfLoops(self_loops), relaxation)


def unchecked_objective(
    plan: Tensor, term: EdgeTerm, mask: Tensor, self_loops: SelfLoops, relaxation: Relaxation
) -> Tensor:
    """`relaxed_objective` for callers that have checked its arguments."""
    swapped = relaxation.order is Order.TARGET_FIRST
    literal = swapped and relaxation.reading is Reading.LITERAL
    view = _View(plan, mask, self_loops)
    if relaxation.objective is Objective.J and not literal:
        value = _gromov_wasserstein(view, term)
    elif relaxation.objective is Objective.J_A and not literal:
        value = _one_sided(view, _transposed(term) if swapped else term)
    elif relaxation.objective is Objective.J_B and not swapped:
        value = _pulled_back(view, term)
    elif relaxation.objective is Objective.J_B and not literal:
        value = _pushed_forward(view, term)
    else:
        value = _literally_swapped(view, term, relaxation)
    # Every one of these is non-negative in exact arithmetic.
    return _not_negative(value) / mask.sum(1).clamp_min(1).square()


class _View:
    """The masses that every relaxation weighs by."""

    def __init__(self, plan: Tensor, mask: Tensor, self_loops: SelfLoops) -> None:
        self.plan = plan
        self.mask = mask
        self.excluded = self_loops is SelfLoops.EXCLUDED
        self.masked_plan = plan * mask[:, None, :]
        self.slot_mass = self.masked_plan.sum(2)  # r
        self.node_mass = plan.sum(1)  # c
        self.pairs = self.off_diagonal(mask[:, :, None] * mask[:, None, :])  # w w'

    def off_diagonal(self, matrix: Tensor) -> Tensor:
        """The matrix, (..., n, n), with a zero diagonal when self-loops are excluded."""
        if not self.excluded:
            return matrix
        return matrix * (1 - torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device))

    def slot_pair_mass(self) -> Tensor:
        """(b, n, n) target-pair mass on each slot pair: r r', without j = l when excluded."""
        mass = self.slot_mass[:, :, None] * self.slot_mass[:, None, :]
        if self.excluded:
            mass = mass - self.masked_plan @ self.masked_plan.mT
        return self.off_diagonal(_not_negative(mass))

    def node_pair_mass(self) -> Tensor:
        """(b, n, n) slot-pair mass on each target pair: c c', without i = k when excluded."""
        mass = self.node_mass[:, :, None] * self.node_mass[:, None, :]
        if self.excluded:
            mass = mass - self.plan.mT @ self.plan
        return self.off_diagonal(_not_negative(mass))

    def mixed_masses(self) -> tuple[Tensor, Tensor]:
        """(b, n, n) each, at (slot i, node l): mass of nodes j on i, mass of slots k on l (j != l, k != i)."""
        rows = self.slot_mass[:, :, None].expand_as(self.plan)
        columns = self.node_mass[:, None, :].expand_as(self.plan)
        if self.excluded:
            rows, columns = _not_negative(rows - self.masked_plan), _not_negative(columns - self.plan)
        return rows, columns


def _gromov_wasserstein(view: _View, term: EdgeTerm) -> Tensor:
    """J = sum w_j w_l d(A_ik, B_jl) T_ij T_kl (eq. 2).

    For cross-entropy, affine in the target, this is J_b: each slot pair against its pulled-back target. Its
    terms are all non-negative, so no cancellation however large the logits; KL adds a constant of the target.
    """
    mass, pulled = view.slot_pair_mass(), _pull(view, term)
    if term.divergence is Divergence.SQUARED:
        prediction = _values(term.prediction)
        squares = view.pairs * _values(term.target).square().sum(1)
        value = (prediction.square().sum(1) * mass).sum((1, 2)) - 2 * (prediction * pulled).sum((1, 2, 3))
        return value + _on_node_pairs(view, squares)
    value = _cross_entropy(class_log_probabilities(term.prediction), _complete(pulled, mass))
    if term.divergence is Divergence.KL:
        value = value - _on_node_pairs(view, view.pairs * target_entropy(term.target))
    return value


def _on_node_pairs(view: _View, cost: Tensor) -> Tensor:
    return (cost * view.node_pair_mass()).sum((1, 2))


def _one_sided(view: _View, term: EdgeTerm) -> Tensor:
    """J_a = sum_il w_l c_l r_i d((A T)_il / c_l, (T B_w)_il / r_i) (eq. 3)."""
    rows, columns = view.mixed_masses()
    node_weight = view.mask[:, None, :] * columns
    target = view.masked_plan[:, None] @ view.off_diagonal(_target_channels(term))
    if term.divergence is Divergence.SQUARED:
        averaged = view.off_diagonal(_values(term.prediction)) @ view.plan[:, None]
        return _squared(averaged, columns, target, rows, view.mask[:, None, :])
    averaged = view.off_diagonal(class_log_probabilities(term.prediction).exp()) @ view.plan[:, None]
    log_averaged = safe_log(averaged) - safe_log(columns)[:, None]
    return _expected(term.divergence, log_averaged, _complete(target, rows), rows, node_weight)


def _pulled_back(view: _View, term: EdgeTerm) -> Tensor:
    """J_b = sum_ik r_i r_k d(A_ik, (T B_w T')_ik / (r_i r_k)) (eq. 3)."""
    mass, pulled = view.slot_pair_mass(), _pull(view, term)
    if term.divergence is Divergence.SQUARED:
        return _squared(_values(term.prediction), torch.ones_like(mass), pulled, mass, torch.ones_like(mass))
    log_prediction = class_log_probabilities(term.prediction)
    return _expected(term.divergence, log_prediction, _complete(pulled, mass), mass, torch.ones_like(mass))


def _pushed_forward(view: _View, term: EdgeTerm) -> Tensor:
    """J_b swapped, role-preserving: sum_jl w_j w_l c_j c_l d((T' A T)_jl / (c_j c_l), B_jl)."""
    mass = view.node_pair_mass()
    if term.divergence is Divergence.SQUARED:
        pushed = _push(view, _values(term.prediction))
        return _squared(pushed, mass, _values(term.target), torch.ones_like(mass), view.pairs)
    pushed = _push(view, class_log_probabilities(term.prediction).exp())
    log_pushed = safe_log(pushed) - safe_log(mass)[:, None]
    labels = class_probabilities(term.target)
    return _expected(term.divergence, log_pushed, labels, torch.ones_like(mass), view.pairs * mass)


def _pull(view: _View, term: EdgeTerm) -> Tensor:
    """(b, channels, n, n) T B_w T', channel by channel."""
    moved = view.masked_plan[:, None] @ view.off_diagonal(_target_channels(term))
    return view.off_diagonal(moved @ view.masked_plan.mT[:, None])


def _push(view: _View, channels: Tensor) -> Tensor:
    return view.off_diagonal(view.plan.mT[:, None] @ view.off_diagonal(channels) @ view.plan[:, None])


def _literally_swapped(view: _View, term: EdgeTerm, relaxation: Relaxation) -> Tensor:
    """J, J_a or J_b with the target inside the logarithm (clamped) and the prediction as the soft label."""
    if term.divergence is Divergence.SQUARED:  # symmetric in its arguments: no logarithm, no reading
        if relaxation.objective is Objective.J:
            return _gromov_wasserstein(view, term)
        swapped = _one_sided if relaxation.objective is Objective.J_A else _pushed_forward
        return swapped(view, _transposed(term) if relaxation.objective is Objective.J_A else term)
    probabilities = class_log_probabilities(term.prediction).exp()
    labels = class_probabilities(term.target)
    if relaxation.objective is Objective.J_A:
        rows, columns = view.mixed_masses()
        averaged = view.masked_plan[:, None] @ view.off_diagonal(_target_channels(term).mT)
        share = _complete(averaged, rows) / rows.clamp_min(torch.finfo(rows.dtype).tiny)[:, None]
        numerator = view.off_diagonal(probabilities.mT) @ view.plan[:, None]
        log_target = share.clamp_min(relaxation.clamp).log()
        return _expected(term.divergence, log_target, numerator, columns, rows * view.mask[:, None, :])
    mass, pushed = view.node_pair_mass(), _push(view, probabilities)
    log_target = labels.clamp_min(relaxation.clamp).log()
    if relaxation.objective is Objective.J_B:
        return _expected(term.divergence, log_target, pushed, mass, view.pairs)
    value = _expected(Divergence.CROSS_ENTROPY, log_target, pushed, mass, view.pairs)
    if term.divergence is Divergence.KL:
        value = value + (probabilities * safe_log(probabilities) * view.slot_pair_mass()[:, None]).sum((1, 2, 3))
    return value


def _target_channels(term: EdgeTerm) -> Tensor:
    """Target channels that a plan averages: classes but "none" for (cross-)entropies, values for squares."""
    channels = _values(term.target)
    binary_or_values = term.target.ndim == 3 or term.divergence is Divergence.SQUARED
    return channels if binary_or_values else channels[:, 1:]


def _complete(classes: Tensor, mass: Tensor) -> Tensor:
    """Put class "none" in front: what is left of the mass. (b, c, n, n) -> (b, c + 1, n, n)."""
    none = _not_negative(mass - classes.sum(1))
    return torch.cat([none[:, None], classes], 1)


def _cross_entropy(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    return -(labels * log_probabilities).sum((1, 2, 3))


def _expected(
    divergence: Divergence, log_first: Tensor, second: Tensor, second_mass: Tensor, weight: Tensor
) -> Tensor:
    """sum weight * mass * d(first, second / mass) for distributions over classes."""
    value = _cross_entropy(log_first, second * weight[:, None])
    if divergence is Divergence.KL:
        log_share = safe_log(second) - safe_log(second_mass)[:, None]
        value = value + (weight[:, None] * second * log_share).sum((1, 2, 3))
    return value


def _squared(first: Tensor, first_mass: Tensor, second: Tensor, second_mass: Tensor, weight: Tensor) -> Tensor:
    """sum weight * masses * (first / its mass - second / its mass)^2."""
    tiny = torch.finfo(first.dtype).tiny
    difference = first / first_mass.clamp_min(tiny)[:, None] - second / second_mass.clamp_min(tiny)[:, None]
    return (difference.square() * (weight * first_mass * second_mass)[:, None]).sum((1, 2, 3))


def _transposed(term: EdgeTerm) -> EdgeTerm:
    return EdgeTerm(term.prediction.mT, term.target.mT, term.divergence, term.weight)


def _values(tensor: Tensor) -> Tensor:
    return tensor[:, None] if tensor.ndim == 3 else tensor


def _not_negative(value: Tensor) -> Tensor:
    """Rounding below zero removed, the gradient untouched: it must reach the plan even at the boundary."""
    return torch.where(value < 0, value - value.detach(), value)


def check_mask(mask: Tensor, reference_name: str, reference: Tensor) -> None:
    """Raise unless the mask (b, n) fits the plans or costs (b, n, n) of reference and lies in [0, 1]."""
    check_shape("mask", mask, tuple(reference.shape[:2]))
    check_like("mask", mask, reference_name, reference)
    check_interval("mask", mask, 0, 1)


def check_term(name: str, term: EdgeTerm, reference_name: str, reference: Tensor) -> None:
    """Raise unless the term fits the plans or costs (b, n, n) of reference, naming the field and the sample."""
    b, n, _ = reference.shape
    for field in ("prediction", "target"):
        tensor = getattr(term, field)
        check_shape(f"{name}.{field}", tensor, (b, n, n), (b, -1, n, n))
        check_like(f"{name}.{field}", tensor, reference_name, reference)
        check_finite(f"{name}.{field}", tensor)
    if term.prediction.shape != term.target.shape:
        raise ValueError(
            f"{name}.target has shape {tuple(term.target.shape)}, prediction {tuple(term.prediction.shape)}"
        )
    if not 0 <= term.weight < float("inf"):
        raise ValueError(f"{name}.weight must be a non-negative number, got {term.weight}")
    if term.divergence is Divergence.SQUARED:
        return
    check_interval(f"{name}.target", term.target, 0, 1)
    if term.target.ndim == 4:
        total = term.target.detach().sum(1)
        refuse(f"{name}.target", (total - 1).abs() > 1e-4, "has class probabilities that do not sum to 1")
