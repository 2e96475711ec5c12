"""Plans that are computed, not learned: detached, so the loss differentiates in the prediction alone (eq. 9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from graphwright.graphs import GraphBatch, Prediction
from graphwright.losses import LossSettings, matching_problem
from graphwright.matching.matcher import Match, Matcher
from graphwright.models.precision import without_autocast
from graphwright.transport import MatchingProblem, assign, permutation_matrix


def in_order(problem: MatchingProblem) -> Tensor:
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


class LabelMatcher(Matcher):
    """Exact assignment on presence and node labels alone; edges do not count."""

    def __init__(self, loss: LossSettings) -> None:
        super().__init__()
        self.loss = loss

    @torch.no_grad()
    def forward(
        self, states: Tensor, prediction: Prediction, target: GraphBatch, prior: Tensor | None = None
    ) -> Match:
        """Permutations."""
        # Diffused labels are left out: they count neighbours, so they depend on the edges.
        with without_autocast(states.device):
            cost = matching_problem(replace(prediction, diffusion=None), target, self.loss, prior).linear
        plan = permutation_matrix(assign(cost), cost)
        return Match(plan, plan.new_zeros(len(plan)))
