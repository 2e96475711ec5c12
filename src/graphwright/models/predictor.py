"""The predictor f = head . decoder . encoder."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from graphwright.graphs import Prediction


@dataclass(frozen=True, eq=False)
class Predicted:
    """Slot states (b, n, width), which the matcher reads, and the graphs' logits."""

    states: Tensor
    graphs: Prediction


class GraphPredictor(nn.Module):
    """Any input that the encoder turns into tokens, to graphs of up to n nodes."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.head = head

    def forward(self, inputs: Tensor) -> Predicted:
        """inputs as the encoder takes them -> states and logits."""
        states = self.decoder(self.encoder(inputs), None)
        return Predicted(states, self.head(states))
