"""The learned matcher: embeddings of both sides, a cost, a few Sinkhorn steps (eq. 11, 12)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from graphwright.graphs import GraphBatch, Prediction
from graphwright.losses import LossSettings, marginal_penalty, matching_problem
from graphwright.matching.matcher import Match, Matcher
from graphwright.models import NodeEncoder
from graphwright.models.precision import full, without_autocast
from graphwright.transport import (
    EmbeddingPlan,
    conditional_gradient,
    permutation_matrix,
    round_to_permutation,
)
from graphwright.transport.plan import marginal_errors

REFERENCE_WIDTH = 256
"""Width of the embeddings at which a temperature is stated: the paper's."""
WARM_SHARE = 0.5
"""Share of the budget after which a plan that began warm is cold."""


@dataclass(frozen=True)
class Temperature:
    """epsilon N^2 at width 256, constant or falling geometrically from `warm` over half of the budget."""

    cold: float
    warm: float | None = None

    def epsilon(self, progress: float, slots: int, dimension: int) -> float:
        """Entropic regularisation of a normalised cost: relative contrasts of L1 distances shrink as 1/sqrt(d)."""
        value = self.cold
        if self.warm is not None:
            left = max(1 - progress / WARM_SHARE, 0.0)
            value = self.cold * (self.warm / self.cold) ** left
        return value * math.sqrt(REFERENCE_WIDTH / dimension) / slots**2


class LearnedMatcher(Matcher):
    """Plan = Sinkhorn(cost / sum of the cost; epsilon, K).

    Slot states (with a code of the slot) and target states (padding replaced by one learned vector) are projected
    separately to `dimension`. Gradients flow through plan, cost and the target encoder, and into the predictor's
    states unless `detach_states`. With `linear_costs` what presence, labels and diffusion already say of a slot
    and a node is added to the distance of their embeddings, detached and in nats.

    A soft plan shows the predictor averages of several nodes. `rounded`, it learns from the nearest permutation
    instead, and the matcher from the objective of its own soft plan under the detached prediction.
    """

    probes: Tensor

    def __init__(
        self,
        target_encoder: NodeEncoder,
        *,
        slots: int,
        state_width: int,
        target_width: int,
        dimension: int,
        embedding_plan: EmbeddingPlan,
        temperature: Temperature,
        iterations: int,
        loss: LossSettings,
        detach_states: bool = False,
        linear_costs: float = 0.0,
        rounded: bool = False,
        probe_every: int = 50,
    ) -> None:
        super().__init__()
        self.target_encoder = target_encoder
        self.slot_code = nn.Parameter(0.02 * torch.randn(slots, state_width))
        self.padding = nn.Parameter(torch.randn(target_width))
        self.project_slots = nn.Sequential(nn.LayerNorm(state_width), nn.Linear(state_width, dimension))
        self.project_nodes = nn.Linear(target_width, dimension)
        self.embedding_plan = embedding_plan
        self.temperature, self.sizes = temperature, (slots, dimension)
        self.epsilon = temperature.epsilon(0.0, *self.sizes)
        self.iterations = iterations
        self.loss = loss
        self.detach_states = detach_states
        self.linear_costs = linear_costs
        self.rounded = rounded
        self.probe_every = probe_every
        # In the state dict, so that a resumed run looks at the same steps.
        self.register_buffer("probes", torch.zeros((), dtype=torch.int64))

    def at(self, progress: float) -> None:
        """The temperature of this moment."""
        self.epsilon = self.temperature.epsilon(progress, *self.sizes)

    def plan(self, states: Tensor, target: GraphBatch, prediction: Prediction | None = None) -> Tensor:
        """(b, n, n) plans of slot states (b, n, width), and of the prediction where that is looked at."""
        seen = states.detach() if self.detach_states else states
        slots = self.project_slots(seen + self.slot_code)
        if prediction is None and self.linear_costs:
            raise ValueError("this matcher looks at predicted graphs, and was given none")
        nodes = self.project_nodes(self.target_encoder.nodes(target))
        beyond = self.project_nodes(self.padding)
        # At these temperatures half the digits are none.
        with without_autocast(states.device):
            further = None
            if prediction is not None and self.linear_costs:
                linear = matching_problem(detached(prediction), target, self.loss).linear
                further = self.linear_costs * target.capacity * linear
            given = (full(slots), full(nodes), target.sizes, full(beyond))
            return self.embedding_plan(*given, self.epsilon, self.iterations, further)

    def forward(self, states: Tensor, prediction: Prediction, target: GraphBatch) -> Match:
        """Plans with gradient; or permutations, and the objective of the soft plans as the matcher's own loss."""
        plan = self.plan(states, target, prediction)
        health = {
            "row_entropy": row_entropy(plan, target),
            "marginal_error": largest_marginal_error(plan),
        }
        nothing = plan.new_zeros(len(plan))
        if not self.training:
            return Match(plan, nothing, health)
        probing = int(self.probes) % self.probe_every == 0
        self.probes += 1
        if not (probing or self.rounded):
            return Match(plan, nothing, health)
        with without_autocast(states.device):
            problem = matching_problem(detached(prediction), target, self.loss)
            own = problem.objective(plan) + self.loss.marginals * marginal_penalty(plan, self.loss.penalty)
            if probing and problem.relaxation.is_quadratic:
                solved = conditional_gradient(problem).objective
                health["gap"] = float(own.detach().sum() / solved.sum().clamp_min(1e-12)) - 1
            if not self.rounded:
                return Match(plan, nothing, health)
            return Match(permutation_matrix(round_to_permutation(plan), plan), own, health)


def detached(prediction: Prediction) -> Prediction:
    """The prediction without its gradient."""
    found = {name: value.detach() for name, value in vars(prediction).items() if value is not None}
    return replace(prediction, **found)


def largest_marginal_error(plan: Tensor) -> float:
    """Largest distance of any row or column sum of the batch from 1; 0 for no plans."""
    return max((float(error.max()) for error in marginal_errors(plan) if len(error)), default=0.0)


@torch.no_grad()
def row_entropy(plan: Tensor, target: GraphBatch) -> float:
    """Mean entropy, in nats, of the plan's columns of real target nodes: 0 for a permutation."""
    share = plan / plan.sum(1, keepdim=True).clamp_min(torch.finfo(plan.dtype).tiny)
    entropy = -(share * share.clamp_min(torch.finfo(plan.dtype).tiny).log()).sum(1)
    return float(entropy[target.mask].mean()) if target.mask.any() else 0.0
