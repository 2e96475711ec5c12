"""A predictor that also remembers: known graphs whose training inputs are like the one given count more."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import nn

from graphwright.decoding.known import check_recognised
from graphwright.decoding.memory import Memory
from graphwright.models import GraphPredictor, Inputs
from graphwright.models.predictor import Predicted
from graphwright.tasks import Remembering

WEIGHT = 16.0
"""Of the likeness, in 0..1, beside the log-probability of a graph. Chosen on MassBank's validation fold."""


class Recalling(nn.Module):
    """What the predictor says, and to the logits of known graphs `WEIGHT` times the likeness.

    A network forgets the particulars of a molecule that it saw a few times; a spectrum remembered has them.
    """

    def __init__(self, predictor: GraphPredictor, memory: Memory, task: Remembering) -> None:
        super().__init__()
        self.predictor = predictor
        self.memory = memory
        self.task = task

    def forward(self, inputs: Inputs) -> Predicted:
        """As the predictor's."""
        predicted: Predicted = self.predictor(inputs)
        known = predicted.graphs.known
        if known is None:
            raise ValueError("a predictor that recognises no graphs has nothing to recall")
        check_recognised(known, self.memory.graphs)
        likeness = torch.from_numpy(self.memory.likeness(self.task.bags(inputs))).to(known)
        return replace(predicted, graphs=replace(predicted.graphs, known=known + WEIGHT * likeness))
