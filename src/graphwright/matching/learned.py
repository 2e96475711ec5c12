"""The learned matcher: embeddings of both sides, a cost, a few Sinkhorn steps (eq. 11, 12)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphwright.graphs import GraphBatch, Prediction
from graphwright.losses import LossSettings, marginal_penalty, matching_problem
from graphwright.matching.matcher import Match, Matcher
from graphwright.models import NodeEncoder, TargetEncoder
from graphwright.models.precision import full, without_autocast
from graphwright.settings import SlotView
from graphwright.transport import EmbeddingPlan, MatchingProblem, mirror_descent, sinkhorn

SMALLEST = 1e-30
"""Plan entries below this are as good as zero; above it a wrong entry still has a gradient in float32."""


class LearnedMatcher(Matcher):
    """Plan = Sinkhorn(cost / sum of the cost; epsilon, K).

    Slot states (with a code of the slot) and target states (padding replaced by one learned vector) are projected
    separately to `dimension`. Gradients flow through plan, cost and the target encoder, and into the predictor's
    states unless `detach_states`. Where `slot_view` is the graph, a slot is also what the target encoder makes of
    the predicted graph around it, projected as a target node is: a prediction that is nearly right is then matched
    before anything is learnt, and what is learnt of the target's nodes holds for the slots as well.
    """

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
        detach_states: bool,
        slot_view: SlotView = SlotView.STATES,
    ) -> None:
        super().__init__()
        self.target_encoder = target_encoder
        self.slot_view = slot_view
        self.slot_code = nn.Parameter(0.02 * torch.randn(slots, state_width))
        self.padding = nn.Parameter(torch.randn(target_width))
        self.project_slots = nn.Sequential(nn.LayerNorm(state_width), nn.Linear(state_width, dimension))
        self.project_nodes = nn.Linear(target_width, dimension)
        self.embedding_plan = embedding_plan
        self.epsilon = epsilon
        self.iterations = iterations
        self.detach_states = detach_states
        if slot_view is SlotView.GRAPH:
            # At first the predicted graph counts, not the states, and little of the encodings, which slots lack.
            projection = self.project_slots[1]
            assert isinstance(projection, nn.Linear)
            nn.init.zeros_(projection.weight)
            nn.init.zeros_(projection.bias)
            assert isinstance(target_encoder, TargetEncoder)
            if target_encoder.place is not None:
                nn.init.normal_(target_encoder.place.weight, std=0.02)

    def plan(self, states: Tensor, target: GraphBatch, prediction: Prediction | None = None) -> Tensor:
        """(b, n, n) plans of slot states (b, n, width), and of the prediction where that is looked at."""
        seen = states.detach() if self.detach_states else states
        slots = self.project_slots(seen + self.slot_code)
        if self.slot_view is SlotView.GRAPH:
            if prediction is None:
                raise ValueError("this matcher looks at predicted graphs, and was given none")
            slots = slots + self._seen_as_nodes(detached(prediction) if self.detach_states else prediction)
        nodes = self.project_nodes(self.target_encoder.nodes(target))
        beyond = self.project_nodes(self.padding)
        # At these temperatures half the digits are none.
        with without_autocast(states.device):
            given = (full(slots), full(nodes), target.sizes, full(beyond))
            return self.embedding_plan(*given, self.epsilon, self.iterations)

    def _seen_as_nodes(self, prediction: Prediction) -> Tensor:
        """(b, n, dimension) the slots as if they were nodes of a target, absent ones as its padding."""
        assert isinstance(self.target_encoder, TargetEncoder)
        here = prediction.presence.sigmoid()[:, :, None]
        nodes = self.target_encoder.soft(prediction)
        result: Tensor = self.project_nodes(here * nodes + (1 - here) * self.padding)
        return result

    def forward(self, states: Tensor, prediction: Prediction, target: GraphBatch) -> Match:
        """Plans with gradient."""
        plan = self.plan(states, target, prediction)
        return Match(plan, plan.new_zeros(len(plan)), {"row_entropy": row_entropy(plan, target)})


class RefinedMatcher(Matcher):
    """The learned plan, then a few mirror steps from it (SPEC section 2; 0 steps is the paper).

    The predictor is trained on the refined plan. Detached, the matcher learns through its own plan's objective;
    unrolled, through the steps, from the loss under the refined plan.
    """

    def __init__(
        self, learned: LearnedMatcher, loss: LossSettings, *, tau: float, steps: int, inner: int, unrolled: bool
    ) -> None:
        super().__init__()
        self.learned = learned
        self.loss = loss
        self.tau = tau
        self.steps = steps
        self.inner = inner
        self.unrolled = unrolled

    def forward(self, states: Tensor, prediction: Prediction, target: GraphBatch) -> Match:
        """Refined plans, and, if detached, the objective of the learned ones as the matcher's own loss."""
        match: Match = self.learned(states, prediction, target)
        if self.steps == 0:
            return match
        with without_autocast(states.device):
            problem = matching_problem(detached(prediction), target, self.loss)
            if self.unrolled:
                return Match(self._unroll(problem, match.plan), match.auxiliary, match.health)
            start = match.plan.detach()
            refined = mirror_descent(problem, start, tau=self.tau, outer=self.steps, inner=self.inner)
            penalty = self.loss.marginals * marginal_penalty(match.plan, self.loss.penalty)
            return Match(refined.matrix, problem.objective(match.plan) + penalty, match.health)

    def _unroll(self, problem: MatchingProblem, plan: Tensor) -> Tensor:
        """(b, n, n) plans after mirror steps (eq. 7, 8) that carry their gradient."""
        form = problem.quadratic_form()
        for _ in range(self.steps):
            cost = plan.shape[1] * form.gradient(plan) - self.tau * plan.clamp_min(SMALLEST).log()
            plan = sinkhorn(cost, self.tau, self.inner).matrix
        return plan


def detached(prediction: Prediction) -> Prediction:
    """The prediction without its gradient."""
    return Prediction(
        prediction.presence.detach(),
        prediction.edges.detach(),
        None if prediction.node_labels is None else prediction.node_labels.detach(),
        None if prediction.diffusion is None else prediction.diffusion.detach(),
    )


@torch.no_grad()
def row_entropy(plan: Tensor, target: GraphBatch) -> float:
    """Mean entropy, in nats, of the plan's columns of real target nodes: 0 for a permutation."""
    share = plan / plan.sum(1, keepdim=True).clamp_min(torch.finfo(plan.dtype).tiny)
    entropy = -(share * share.clamp_min(torch.finfo(plan.dtype).tiny).log()).sum(1)
    return float(entropy[target.mask].mean()) if target.mask.any() else 0.0
