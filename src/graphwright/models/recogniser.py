"""The input as a whole: which of the known graphs is it?"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from graphwright.models.encoders import Tokens
from graphwright.models.precision import full

WIDER = 2
"""Hidden units to a unit of width."""


class Recognised(NamedTuple):
    """whole: (b, width), a token for the decoder. logits: (b, graphs), in float32."""

    whole: Tensor
    logits: Tensor


class Recogniser(nn.Module):
    """Scores the distinct graphs of the training data as wholes, and tells the decoder what it saw.

    Where graphs come again and again, as scaffolds do, which one it is can be learned from far fewer samples than
    how to draw it; what was learned for that is what drawing starts from. It reads the first token, which in some
    encoders stands for the whole input, and the mean of all.
    """

    def __init__(self, width: int, graphs: int, dropout: float) -> None:
        super().__init__()
        self.read = nn.Sequential(nn.Linear(2 * width, WIDER * width), nn.GELU(), nn.Dropout(dropout))
        self.whole = nn.Linear(WIDER * width, width)
        self.score = nn.Linear(WIDER * width, graphs)

    def forward(self, tokens: Tokens) -> Recognised:
        """tokens of b inputs -> the whole of each, and its logits."""
        read = self.read(torch.cat([tokens.values[:, 0], tokens.mean()], 1))
        return Recognised(self.whole(read), full(self.score(read)))
