"""Who provides the plan: the one protocol, and plans that are computed, not learned.

The latter are detached, so the loss differentiates in the prediction alone (eq. 9).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from graphwright.graphs import GraphBatch, Prediction, Vocabulary
from graphwright.losses import LossSettings, matching_problem
from graphwright.losses.relation_loss import class_logits, node_classes
from graphwright.models.arithmetic import without_autocast
from graphwright.settings import MATCHINGS, Run, SlotKind
from graphwright.settings.schema import ModelKind
from graphwright.transport import (
    MatchingProblem,
    Solver,
    assign,
    conditional_gradient,
    mirror_descent,
    multi_start,
    permutation_matrix,
)


@dataclass(frozen=True, eq=False)
class Match:
    """Plans for a batch, and what the matcher wants to learn besides the loss under them.

    plan: (b, n, n), with gradient where the matcher learns through it. auxiliary: (b,), added to the loss.
    health: named scalars for the log.
    """

    plan: Tensor
    auxiliary: Tensor
    health: dict[str, float] = field(default_factory=dict)


class Matcher(nn.Module):
    """Provides plans between predicted slots and target nodes.

    `MATCHINGS.register` gives a subclass the name that `matching.kind` chooses it by.
    """

    keeps_order: ClassVar[bool] = False
    """Whether slot i always stands for node i, so that a task must put them into an order."""
    reads: ClassVar[frozenset[str] | None] = None
    """Settings of `matching` that its plans depend on, beside its kind; None: any of them may count."""

    @classmethod
    def check(cls, run: Run) -> None:
        """Refuse, with a ValueError that names the settings by their keys, a run that it does not go with."""

    @classmethod
    def build(cls, run: Run, vocabulary: Vocabulary, slots: int) -> Matcher:
        """A fresh one for graphs of this vocabulary on so many slots, as the run's settings say."""
        raise NotImplementedError

    def forward(
        self, states: Tensor, prediction: Prediction, target: GraphBatch, prior: Tensor | None = None
    ) -> Match:
        """states (b, n, width) of the predictor, its logits, padded targets -> plans.

        prior: (b, n, n), a task's further linear cost of the plan.
        """
        raise NotImplementedError


def identity_plan(problem: MatchingProblem) -> Tensor:
    """(b, n, n) identities: slot i stands for node i of the target, in the order that the data gives."""
    return torch.eye(problem.capacity, dtype=problem.linear.dtype, device=problem.linear.device).repeat(
        problem.batch, 1, 1
    )


class SolverMatcher(Matcher):
    """A numerical solver on the labelled objective (mirror descent, Any2Graph's conditional gradient), or none."""

    def __init__(self, solve: Callable[[MatchingProblem], Tensor], loss: LossSettings) -> None:
        super().__init__()
        self.solve = solve
        self.loss = loss

    @torch.no_grad()
    def forward(
        self, states: Tensor, prediction: Prediction, target: GraphBatch, prior: Tensor | None = None
    ) -> Match:
        """Plans of the solver."""
        with without_autocast(states.device):
            plan = self.solve(matching_problem(prediction, target, self.loss, prior))
        return Match(plan, plan.new_zeros(len(plan)))


def from_starts(solver: Solver, starts: int) -> Callable[[MatchingProblem], Tensor]:
    """The plan of a solver from the best of so many starts."""

    def solve(problem: MatchingProblem) -> Tensor:
        # Random starts are drawn where dropout is, so that a resumed run draws the same.
        return multi_start(problem, solver, starts, torch.default_generator).matrix

    return solve


@MATCHINGS.register("mirror")
class MirrorMatcher(SolverMatcher):
    """Mirror descent, from one start or several: a plan that starts uniform keeps every symmetry of the target."""

    reads = frozenset({"tau", "outer", "inner", "starts"})

    @classmethod
    def build(cls, run: Run, vocabulary: Vocabulary, slots: int) -> Self:  # noqa: ARG003
        matching = run.matching
        solver = partial(mirror_descent, tau=matching.tau, outer=matching.outer, inner=matching.inner)
        return cls(from_starts(solver, matching.starts), run.loss)


@MATCHINGS.register("conditional_gradient")
class ConditionalGradientMatcher(SolverMatcher):
    """Any2Graph's solver, from one start or several."""

    reads = frozenset({"steps", "starts"})

    @classmethod
    def check(cls, run: Run) -> None:
        loss = run.loss
        if not loss.relaxation.is_quadratic:
            given = f"{loss.objective}, {loss.order}, {loss.reading}"
            raise ValueError(
                f"matching.kind {run.matching.kind} needs loss.objective J, not swapped literally, got {given}"
            )

    @classmethod
    def build(cls, run: Run, vocabulary: Vocabulary, slots: int) -> Self:  # noqa: ARG003
        matching = run.matching
        solver = partial(conditional_gradient, iterations=matching.steps)
        return cls(from_starts(solver, matching.starts), run.loss)


@MATCHINGS.register("labels")
class LabelMatcher(Matcher):
    """Exact assignment on presence and node labels alone; edges do not count."""

    reads = frozenset()

    def __init__(self, loss: LossSettings) -> None:
        super().__init__()
        self.loss = loss

    @classmethod
    def build(cls, run: Run, vocabulary: Vocabulary, slots: int) -> Matcher:  # noqa: ARG003
        return LabelProbabilityMatcher() if run.model.kind is ModelKind.RELATIONFORMER else cls(run.loss)

    @torch.no_grad()
    def forward(
        self, states: Tensor, prediction: Prediction, target: GraphBatch, prior: Tensor | None = None
    ) -> Match:
        # Diffused labels are left out: they count neighbours, so they depend on the edges.
        with without_autocast(states.device):
            cost = matching_problem(replace(prediction, diffusion=None), target, self.loss, prior).linear
        plan = permutation_matrix(assign(cost), cost)
        return Match(plan, plan.new_zeros(len(plan)))


class LabelProbabilityMatcher(Matcher):
    """Exact assignment of target nodes to slots with the largest sum of label probabilities; edges do not count.

    There is no geometry to tell nodes of one label apart, so among their slots the choice is free.
    """

    @torch.no_grad()
    def forward(
        self, states: Tensor, prediction: Prediction, target: GraphBatch, prior: Tensor | None = None
    ) -> Match:
        """Permutations; the slots that are left take the padding, which costs the same everywhere."""
        with without_autocast(states.device):
            probabilities = class_logits(prediction).softmax(2)
            classes = node_classes(target)[:, None, :].expand(-1, prediction.capacity, -1)
            cost = -probabilities.gather(2, classes) * target.mask[:, None, :]
            if prior is not None:
                cost = cost + prior
        plan = permutation_matrix(assign(cost), cost)
        return Match(plan, plan.new_zeros(len(plan)))


@MATCHINGS.register("order")
class OrderMatcher(SolverMatcher):
    """No matching at all: the data's own order."""

    keeps_order = True
    reads = frozenset()

    @classmethod
    def check(cls, run: Run) -> None:
        if run.model.slots is not SlotKind.LEARNED:
            raise ValueError(
                f"model.slots {run.model.slots} have no order that nodes could follow: matching.kind must not be "
                f"{run.matching.kind}"
            )

    @classmethod
    def build(cls, run: Run, vocabulary: Vocabulary, slots: int) -> Self:  # noqa: ARG003
        return cls(identity_plan, run.loss)
