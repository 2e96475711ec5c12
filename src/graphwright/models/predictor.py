"""The predictor f = head . decoder . encoder."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from graphwright.graphs import Prediction
from graphwright.models.decoder import SlotTokens, TokenSlots
from graphwright.models.encoders import Tokens

Inputs = Tensor | tuple[Tensor, ...]
"""A batch as an encoder takes it: one tensor (b, ...), or several."""


def inputs_to(inputs: Inputs, device: torch.device) -> Inputs:
    """The inputs on another device."""
    if isinstance(inputs, Tensor):
        return inputs.to(device)
    moved = [tensor.to(device) for tensor in inputs]
    # A named tuple is made from its fields, a plain one from a sequence.
    return type(inputs)(*moved) if hasattr(inputs, "_fields") else tuple(moved)


@dataclass(frozen=True, eq=False)
class Predicted:
    """Slot states (b, n, width), which the matcher reads, and the graphs' logits.

    tokens: which tokens the slots began as, where they are tokens.
    """

    states: Tensor
    graphs: Prediction
    tokens: SlotTokens | None = None


class GraphPredictor(nn.Module):
    """Any input that the encoder turns into tokens, to graphs of up to n nodes.

    With a recogniser known graphs are scored as wholes, and what it saw is one more token for the decoder.
    """

    def __init__(
        self, encoder: nn.Module, decoder: nn.Module, head: nn.Module, recogniser: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.head = head
        self.recogniser = recogniser

    def forward(self, inputs: Inputs) -> Predicted:
        """inputs as the encoder takes them -> states and logits."""
        encoded = self.encoder(inputs)
        tokens = encoded if isinstance(encoded, Tokens) else Tokens(encoded)
        if isinstance(self.decoder, TokenSlots):
            states, slots = self.decoder(tokens)
            return Predicted(states, self.head(states).only(slots.real), slots)
        if self.recogniser is None:
            states = self.decoder(tokens.values, tokens.mask)
            return Predicted(states, self.head(states))
        whole, known = self.recogniser(tokens)
        tokens = tokens.and_one_more(whole)
        states = self.decoder(tokens.values, tokens.mask)
        return Predicted(states, replace(self.head(states), known=known))
