"""The taught matcher: it imitates a solver until it can replace it (SPEC section 2)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from graphwright.graphs import GraphBatch, Prediction
from graphwright.losses import LossSettings, marginal_penalty, matching_problem
from graphwright.matching.learned import SMALLEST, LearnedMatcher, detached, row_entropy
from graphwright.matching.matcher import Match, Matcher
from graphwright.models.precision import without_autocast
from graphwright.transport import MatchingProblem

MEMORY = 0.9
"""How much of the running gap one probe leaves while every step is one."""
RARE_MEMORY = 0.5
"""The same while the solver is off and probes are rare."""


class TaughtMatcher(Matcher):
    """A solver's plan trains the predictor while the learned matcher imitates it; then the matcher alone.

    The solver is mirror descent, whose plans are spread out where nodes are alike; or conditional gradient, whose
    plans decide: on many slots a predictor that knows little yet learns little from the first; or none at all: the
    order of the target's nodes, where it means something. An order gives a predictor that knows nothing something
    to learn, which no solver can, and the matcher that has learnt it is free to find better.

    Imitation alone leaves the matcher undecided between nodes that the solver tells apart by chance (two like
    leaves of one node): it averages over the solver's choices. So it also minimises the objective under its own
    plan, which is least where the plan decides. The switch is earned, not timed: the solver goes once the
    objective under the learned plan stays within `gap` of the objective under the solver's, and comes back if a
    probe finds the gap above `reopened_gap`. The matcher reads detached predictor states throughout: imitation
    through them would hurt the predictor.
    """

    running_gap: Tensor
    taught: Tensor
    probes: Tensor

    def __init__(
        self,
        learned: LearnedMatcher,
        solve: Callable[[MatchingProblem], Tensor],
        loss: LossSettings,
        *,
        imitation: float,
        objective: float,
        gap: float,
        reopened_gap: float,
        probe_every: int,
    ) -> None:
        super().__init__()
        if not learned.detach_states:
            raise ValueError("a taught matcher must read detached states")
        if reopened_gap < gap:
            raise ValueError(f"reopened_gap must be at least gap, {gap:g}, got {reopened_gap:g}")
        self.learned = learned
        self.solve = solve
        self.loss = loss
        self.imitation, self.objective = imitation, objective
        self.gap, self.reopened_gap, self.probe_every = gap, reopened_gap, probe_every
        # In the state dict, so that a resumed run goes on in the same phase.
        self.register_buffer("running_gap", torch.ones(()))
        self.register_buffer("taught", torch.ones((), dtype=torch.bool))
        self.register_buffer("probes", torch.zeros((), dtype=torch.int64))

    def forward(self, states: Tensor, prediction: Prediction, target: GraphBatch) -> Match:
        """The solver's plans while teaching, then the learned ones."""
        plan = self.learned.plan(states, target, prediction)
        health = {"row_entropy": row_entropy(plan, target), "solver": float(self.taught)}
        nothing = plan.new_zeros(len(plan))
        if not self.training:
            return Match(plan, nothing, health)
        self.probes += 1
        teaching = bool(self.taught)
        if not teaching and self.probes % self.probe_every:
            return Match(plan, nothing, health)
        with without_autocast(states.device):
            problem = matching_problem(detached(prediction), target, self.loss)
            solved = self.solve(problem)
            uniform = torch.full_like(plan, 1 / plan.shape[1]).detach()
            costs = [self._cost(problem, each) for each in (plan.detach(), solved, uniform)]
            health["gap"] = self._probe(*costs)
            if not teaching:
                return Match(plan, nothing, health)
            penalty = self.loss.marginals * marginal_penalty(plan, self.loss.penalty)
            imitation = self.imitation * imitation_loss(plan, solved, target)
            own = self.objective * problem.objective(plan)
        return Match(solved, imitation + own + penalty, health)

    def _cost(self, problem: MatchingProblem, plan: Tensor) -> Tensor:
        """(b,) the objective and the penalty on the marginals: without it a plan that misses its sums wins."""
        return problem.objective(plan) + self.loss.marginals * marginal_penalty(plan, self.loss.penalty)

    def _probe(self, learned: Tensor, solved: Tensor, uniform: Tensor) -> float:
        """Update the running gap, and the phase by it; returns this batch's gap, over all processes.

        From batch sums of the costs of the learned, the solver's and the uniform plan, the larger of
        (learned - solved) / solved and (learned - solved) / (uniform - solved): before a predictor says
        anything all plans cost nearly the same, and the first alone would call any of them as good as solved.
        A plan that costs more than the uniform one, as an order that is not yet learnt may, says nothing: 1.
        """
        sums = torch.stack([learned.sum(), solved.sum(), uniform.sum()])
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(sums)
        excess = sums[0] - sums[1]
        advantage = sums[2] - sums[1]
        gap = torch.maximum(excess / sums[1].clamp_min(1e-12), excess / advantage.clamp_min(1e-12))
        gap = torch.where(advantage > 0, gap, gap.clamp_min(1.0))
        memory = MEMORY if bool(self.taught) else RARE_MEMORY
        self.running_gap.mul_(memory).add_((1 - memory) * gap.to(self.running_gap))
        limit = self.gap if bool(self.taught) else self.reopened_gap
        self.taught.fill_(bool(self.running_gap > limit))
        return float(gap)


def imitation_loss(plan: Tensor, solved: Tensor, target: GraphBatch) -> Tensor:
    """(b,) cross-entropy of the learned plan's columns against the solver's, mean over real target nodes."""
    log_share = plan.clamp_min(SMALLEST).log() - plan.sum(1, keepdim=True).clamp_min(SMALLEST).log()
    entropies = -(solved * log_share).sum(1)
    w = target.node_mask(plan.dtype)
    return (entropies * w).sum(1) / w.sum(1).clamp_min(1)
