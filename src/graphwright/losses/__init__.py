"""The loss of a predicted graph under a transport plan."""

from graphwright.losses.graph_loss import (
    GraphLoss,
    LossSettings,
    PenaltyDirection,
    graph_loss,
    marginal_penalty,
    matching_problem,
)

__all__ = [
    "GraphLoss",
    "LossSettings",
    "PenaltyDirection",
    "graph_loss",
    "marginal_penalty",
    "matching_problem",
]
