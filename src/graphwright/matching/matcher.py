"""The one protocol of everything that provides a plan."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor, nn

from graphwright.graphs import GraphBatch, Prediction


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
    """Provides plans between predicted slots and target nodes."""

    def at(self, progress: float) -> None:
        """Told before every step what share of the training's budget is used, 0 to 1."""

    def forward(
        self, states: Tensor, prediction: Prediction, target: GraphBatch, prior: Tensor | None = None
    ) -> Match:
        """states (b, n, width) of the predictor, its logits, padded targets -> plans.

        prior: (b, n, n), a task's further linear cost of the plan.
        """
        raise NotImplementedError
