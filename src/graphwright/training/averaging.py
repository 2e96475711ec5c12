"""A running mean of a predictor's weights: what is validated and handed on."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn

from graphwright.models import GraphPredictor


class WeightAverage(nn.Module):
    """theta <- decay theta + (1 - decay) weights, after every step; buffers are the predictor's last.

    At first the decay is lower, (t + 1) / (t + 10) after t steps: a fixed one would remember the random start.
    """

    def __init__(self, predictor: GraphPredictor, decay: float) -> None:
        super().__init__()
        self.predictor = deepcopy(predictor).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, predictor: GraphPredictor, step: int) -> None:
        """Take in the weights after step `step`, counted from 0."""
        share = 1 - min(self.decay, (step + 1) / (step + 10))
        means: list[Tensor] = list(self.predictor.parameters())
        weights: list[Tensor] = list(predictor.parameters())
        torch._foreach_lerp_(means, weights, share)
        for mean, value in zip(self.predictor.buffers(), predictor.buffers(), strict=True):
            mean.copy_(value)
