"""The learned matcher: embeddings of both sides, a cost, a few Sinkhorn steps (eq. 11, 12)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Self

import torch
from torch import Tensor, nn

from graphwright.graphs import GraphBatch, Prediction, Vocabulary
from graphwright.losses import LossSettings, marginal_penalty, matching_problem
from graphwright.matching.matcher import Match, Matcher
from graphwright.models import NodeEncoder, TargetEncoder
from graphwright.models.arithmetic import Linear, at_least_float32, without_autocast
from graphwright.settings import MATCHINGS, CostKind, PlanKind, Run, SlotKind
from graphwright.transport import (
    EmbeddingPlan,
    MatchingProblem,
    conditional_gradient,
    inner_product_plan,
    l1_plan,
    permutation_matrix,
    round_to_permutation,
)
from graphwright.transport.problem import marginal_errors

REFERENCE_WIDTH = 256
"""Width of the embeddings at which a temperature is stated: the paper's."""


def epsilon_of(temperature: float, slots: int, dimension: int) -> float:
    """Entropic regularisation of a normalised cost, from epsilon N^2 at width 256.

    Relative contrasts of L1 distances shrink as 1/sqrt(d).
    """
    return temperature * math.sqrt(REFERENCE_WIDTH / dimension) / slots**2


@MATCHINGS.register("learned")
class LearnedMatcher(Matcher):
    """Plan = Sinkhorn(cost / sum of the cost; epsilon, K).

    Slot states (with a code of the slot, unless slots are tokens, whose index means nothing) and target states
    (padding replaced by one learned vector) are projected separately to `dimension`. Gradients flow through plan,
    cost and both encoders. With `linear_costs` what presence, labels, diffusion and a task's prior already say of
    a slot and a node is added to the distance of their embeddings, detached and in nats.

    A soft plan shows the predictor averages of several nodes. `rounded`, it learns from the nearest permutation
    instead, and the matcher from the objective of its own soft plan under the detached prediction.
    """

    probes: Tensor
    reads = frozenset(
        {
            "cost",
            "dimension",
            "iterations",
            "linear_costs",
            "plan",
            "positions",
            "probe_every",
            "random_signs",
            "target_layers",
            "target_width",
            "temperature",
        }
    )

    def __init__(
        self,
        target_encoder: NodeEncoder,
        *,
        slots: int,
        state_width: int,
        target_width: int,
        dimension: int,
        embedding_plan: EmbeddingPlan,
        epsilon: float,
        iterations: int,
        loss: LossSettings,
        linear_costs: float = 0.0,
        rounded: bool = False,
        probe_every: int = 50,
        slot_codes: bool = True,
    ) -> None:
        super().__init__()
        self.target_encoder = target_encoder
        self.slot_code = nn.Parameter(0.02 * torch.randn(slots, state_width)) if slot_codes else None
        self.padding = nn.Parameter(torch.randn(target_width))
        self.project_slots = nn.Sequential(nn.LayerNorm(state_width), Linear(state_width, dimension))
        self.project_nodes = Linear(target_width, dimension)
        self.embedding_plan = embedding_plan
        self.epsilon = epsilon
        self.iterations = iterations
        self.loss = loss
        self.linear_costs = linear_costs
        self.rounded = rounded
        self.probe_every = probe_every
        # In the state dict, so that a resumed run looks at the same steps.
        self.register_buffer("probes", torch.zeros((), dtype=torch.int64))

    @classmethod
    def check(cls, run: Run) -> None:
        if run.model.slots is not SlotKind.LEARNED and not run.matching.linear_costs:
            raise ValueError(
                f"model.slots {run.model.slots} needs matching.linear_costs above 0, by which a learned matcher "
                "hears which token can stand for which node"
            )

    @classmethod
    def build(cls, run: Run, vocabulary: Vocabulary, slots: int) -> Self:
        matching = run.matching
        encoder = TargetEncoder(
            vocabulary,
            matching.target_width,
            matching.target_layers,
            matching.positions,
            random_signs=matching.random_signs,
            dropout=run.model.dropout,
        )
        return cls(
            encoder,
            slots=slots,
            slot_codes=run.model.slots is SlotKind.LEARNED,
            state_width=run.model.width,
            target_width=matching.target_width,
            dimension=matching.dimension,
            embedding_plan=l1_plan if matching.cost is CostKind.L1 else inner_product_plan,
            epsilon=epsilon_of(matching.temperature, slots, matching.dimension),
            iterations=matching.iterations,
            loss=run.loss,
            linear_costs=matching.linear_costs,
            rounded=matching.plan is PlanKind.ROUNDED,
            probe_every=matching.probe_every,
        )

    def plan(self, states: Tensor, target: GraphBatch, linear: Tensor | None = None) -> Tensor:
        """(b, n, n) plans of slot states (b, n, width); linear: (b, n, n) detached costs of a matching problem."""
        slots = self.project_slots(states if self.slot_code is None else states + self.slot_code)
        nodes = self.project_nodes(self.target_encoder.nodes(target))
        padding = self.project_nodes(self.padding)
        further = None if linear is None else self.linear_costs * target.capacity * linear
        # At these temperatures half the digits are none.
        with without_autocast(states.device):
            given = (at_least_float32(slots), at_least_float32(nodes), target.sizes, at_least_float32(padding))
            return self.embedding_plan(*given, self.epsilon, self.iterations, further)

    def forward(
        self, states: Tensor, prediction: Prediction, target: GraphBatch, prior: Tensor | None = None
    ) -> Match:
        """Plans with gradient; or permutations, and the objective of the soft plans as the matcher's own loss."""
        probing = self.training and int(self.probes) % self.probe_every == 0
        rounding = self.training and self.rounded
        self.probes += self.training
        problem = None
        if probing or rounding or self.linear_costs:
            with without_autocast(states.device):
                problem = matching_problem(detached(prediction), target, self.loss, prior)
        plan = self.plan(states, target, problem.linear if problem is not None and self.linear_costs else None)
        health = {"plan_entropy": plan_entropy(plan, target), "marginal_error": largest_marginal_error(plan)}
        nothing = plan.new_zeros(len(plan))
        if problem is None or not (probing or rounding):
            return Match(plan, nothing, health)
        with without_autocast(states.device):
            if probing and problem.relaxation.is_quadratic:
                health["gap"] = self._gap(problem, plan.detach())
            if not rounding:
                return Match(plan, nothing, health)
            return Match(permutation_matrix(round_to_permutation(plan), plan), self._cost(problem, plan), health)

    def _cost(self, problem: MatchingProblem, plan: Tensor) -> Tensor:
        """(b,) the objective and the penalty on the marginals: without it a plan that misses its sums wins."""
        return problem.objective(plan) + self.loss.marginals * marginal_penalty(plan, self.loss.penalty)

    @torch.no_grad()
    def _gap(self, problem: MatchingProblem, plan: Tensor) -> float:
        """How much more the plans cost than conditional gradient's, as a share of these."""
        solved = conditional_gradient(problem).objective.sum().clamp_min(1e-12)
        return float(self._cost(problem, plan).sum() / solved) - 1


def detached(prediction: Prediction) -> Prediction:
    """The prediction without its gradient."""
    fields = {name: value.detach() for name, value in vars(prediction).items() if value is not None}
    return replace(prediction, **fields)


def largest_marginal_error(plan: Tensor) -> float:
    """Largest distance of any row or column sum of the batch from 1; 0 for no plans."""
    return max((float(error.max()) for error in marginal_errors(plan) if len(error)), default=0.0)


@torch.no_grad()
def plan_entropy(plan: Tensor, target: GraphBatch) -> float:
    """Mean entropy, in nats, of the plan's columns of real target nodes: 0 for a permutation."""
    share = plan / plan.sum(1, keepdim=True).clamp_min(torch.finfo(plan.dtype).tiny)
    entropy = -(share * share.clamp_min(torch.finfo(plan.dtype).tiny).log()).sum(1)
    return float(entropy[target.mask].mean()) if target.mask.any() else 0.0
