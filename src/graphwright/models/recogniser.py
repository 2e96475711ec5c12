"""The input as a whole: which of the known graphs is it?"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from graphwright.models.bags import Bags
from graphwright.models.encoders import Tokens
from graphwright.models.graph_vectors import GraphVectors
from graphwright.models.precision import full

WIDER = 2
"""Hidden units to a unit of width."""
DROPOUT = 0.3
"""Of what is read: few inputs stand behind most graphs, and less dropout learns them by heart."""


class Recognised(NamedTuple):
    """whole: (b, width), a token for the decoder. logits: (b, graphs), in float32."""

    whole: Tensor
    logits: Tensor


class Recogniser(nn.Module):
    """Scores the distinct graphs of the training data as wholes, and tells the decoder what it saw.

    A graph's score is the product of what was read and of the graph's own vector (`GraphVectors`).

    Where graphs come again and again, as scaffolds do, which one it is can be learned from far fewer samples than
    how to draw it; what was learned for that is what drawing starts from. It reads the first token, which in some
    encoders stands for the whole input, and the mean of all.
    """

    def __init__(self, width: int, parts: Bags) -> None:
        super().__init__()
        self.read = nn.Sequential(nn.Linear(2 * width, WIDER * width), nn.GELU(), nn.Dropout(DROPOUT))
        self.whole = nn.Linear(WIDER * width, width)
        self.graphs = GraphVectors(WIDER * width, parts)
        self.bias = nn.Parameter(torch.zeros(len(parts.starts)))

    def forward(self, tokens: Tokens) -> Recognised:
        """tokens of b inputs -> the whole of each, and its logits."""
        read = self.read(torch.cat([tokens.values[:, 0], tokens.mean()], 1))
        return Recognised(self.whole(read), full(read @ self.graphs().mT + self.bias))
