"""The loss of a predicted graph under a transport plan."""

from graphwright.losses.graph_loss import (
    LOSS_TERMS,
    GraphLoss,
    LossSettings,
    LossTerm,
    PenaltyDirection,
    graph_loss,
    marginal_penalty,
    matching_problem,
)

__all__ = [
    "LOSS_TERMS",
    "GraphLoss",
    "LossSettings",
    "LossTerm",
    "PenaltyDirection",
    "graph_loss",
    "marginal_penalty",
    "matching_problem",
]
