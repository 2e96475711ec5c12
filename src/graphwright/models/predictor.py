"""The predictor f = head . decoder . encoder: slots that are learned queries, tokens of the input, or
Relationformer's (Shit et al. 2022, for plain labelled graphs: no boxes, no coordinates)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, softplus

from graphwright.graphs import Prediction, Vocabulary
from graphwright.models.arithmetic import Linear, at_least_float32
from graphwright.models.encoders import Tokens
from graphwright.models.heads import mlp
from graphwright.models.transformer import decoder_layers


class NodeDecoder(nn.Module):
    """A Transformer decoder with one learned query per slot: slots attend to each other and to the tokens."""

    def __init__(self, slots: int, width: int, layers: int, heads: int, dropout: float, memory_width: int) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(slots, width) / width**0.5)
        self.memory = Linear(memory_width, width)
        self.layers = decoder_layers(width, layers, heads, dropout)

    def forward(self, tokens: Tensor, token_mask: Tensor | None) -> Tensor:
        """tokens (b, k, memory width), token_mask (b, k) true at real ones -> slot states (b, n, width)."""
        queries = self.queries.expand(tokens.shape[0], -1, -1)
        result: Tensor = self.layers(queries, self.memory(tokens), token_mask)
        return result


ROOM = 8
"""Token slots over the most nodes that a graph has. Pairs grow with their square: a step on 64 molecules of up
to 32 atoms takes 0.63 s with 40 of them, 0.98 s with 48, 1.5 s with all 68 that a molecule may have."""
UNOWNED = 5.0
"""What a token costs, over the number of nodes, that does not own the node it is to stand for."""
LAST = 4.0
"""What a spare slot costs, likewise: it is used where no token is left."""
SPARE = -1
"""Where a slot begins as no token."""


def kept_tokens(nodes: int) -> int:
    """How many tokens become slots, for graphs of at most so many nodes."""
    return nodes + ROOM


class SlotTokens(NamedTuple):
    """Which tokens became slots.

    source: (b, n) the token of each slot, `SPARE` without one. real: (b, n), false where no token was left for it.
    scores: (b, k) presence logits of all tokens, by which they were chosen. owning: (b, k), true at tokens that
    may stand for a node.
    """

    source: Tensor
    real: Tensor
    scores: Tensor
    owning: Tensor

    def prior(self, owners: Tensor, mask: Tensor) -> Tensor:
        """(b, n, n) linear cost of a plan: `UNOWNED` / m where a slot's token does not own the node.

        owners: (b, k, n) bool, which token can stand for which node; tokens after those k, of other columns, stand
        for none. mask: (b, n) the real nodes. Spare slots may stand for any node, at a cost: where they may do so
        for nothing they are used in every graph, and what they stand for is nowhere to be seen in the input.
        """
        token = (self.source != SPARE)[:, :, None]
        owners = pad(owners, (0, 0, 0, max(0, self.scores.shape[1] - owners.shape[1])))
        owned = owners.gather(1, self.source.clamp_min(0)[:, :, None].expand(-1, -1, owners.shape[2])) & token
        spare = ~token & self.real[:, :, None]
        cost = UNOWNED * ~(owned & self.real[:, :, None]) - (UNOWNED - LAST) * spare
        nodes = mask[:, None, :].to(self.scores.dtype)
        return cost * nodes / nodes.sum(2, keepdim=True).clamp_min(1)

    def loss(self, plan: Tensor, mask: Tensor) -> Tensor:
        """(b,) cross-entropy of the scores: a token is wanted as far as the plan (b, n, n) has it stand for nodes.

        As the loss of presence a sum over tokens, divided by n. Tokens that were left out are not wanted: none
        can hide there.
        """
        # A learned plan's rows may sum to more than one, and a target above one has no least loss.
        wanted = (plan.detach() * mask[:, None, :]).sum(2).clamp_max(1) * (self.source != SPARE)
        target = torch.zeros_like(self.scores).scatter_add(1, self.source.clamp_min(0), wanted)
        loss = softplus(self.scores) - target * self.scores
        return (loss * self.owning).sum(1) / plan.shape[1]


class TokenSlots(nn.Module):
    """Every token that may own a node is a slot, and `spare` learned ones are added; they attend to each other.

    Tokens are scored first, and the likeliest `nodes` + `ROOM` become slots: as many in every batch. Each is
    told its score, so that several tokens of one node can agree which of them stands for it. Slots that
    no token was left for are masked.
    """

    def __init__(
        self, nodes: int, spare: int, width: int, layers: int, heads: int, dropout: float, memory_width: int
    ) -> None:
        super().__init__()
        self.kept = kept_tokens(nodes)
        self.queries = nn.Parameter(torch.randn(spare, width) / width**0.5)
        self.memory = Linear(memory_width, width)
        self.score = mlp(width, width, 1)
        self.told = nn.Parameter(torch.randn(width) / width**0.5)
        self.layers = decoder_layers(width, layers, heads, dropout)

    def forward(self, tokens: Tokens) -> tuple[Tensor, SlotTokens]:
        """Slot states (b, n, width), zero at slots without a token, and which tokens they were."""
        if tokens.owning is None:
            raise ValueError("slots that are tokens need an encoder whose tokens may own nodes")
        memory = self.memory(tokens.values)
        scores = at_least_float32(self.score(memory)[:, :, 0])
        b, k, width = memory.shape
        likeliest = scores.detach().masked_fill(~tokens.owning, -torch.inf).topk(min(k, self.kept), 1).indices
        real = tokens.owning.gather(1, likeliest)
        states = memory.gather(1, likeliest[:, :, None].expand(-1, -1, width))
        states = states + scores.gather(1, likeliest).sigmoid()[:, :, None] * self.told
        lacking, spare = self.kept - likeliest.shape[1], len(self.queries)
        states = torch.cat([pad(states, (0, 0, 0, lacking)), self.queries.expand(b, -1, -1)], 1)
        real = pad(pad(real, (0, lacking), value=False), (0, spare), value=True)
        source = pad(likeliest, (0, lacking + spare), value=SPARE)
        # An input without tokens has only such slots, and attention must look somewhere.
        seen = real | ~real.any(1, keepdim=True)
        states = self.layers(states, memory, tokens.mask, seen)
        return states * real[:, :, None], SlotTokens(source, real, scores, tokens.owning)


class RelationDecoder(NodeDecoder):
    """A query per slot and one more, the relation token, which may gather what all pairs have in common."""

    def __init__(self, slots: int, width: int, layers: int, heads: int, dropout: float, memory_width: int) -> None:
        super().__init__(slots, width, layers, heads, dropout, memory_width)
        self.relation = nn.Parameter(torch.randn(1, width) / width**0.5)

    def forward(self, tokens: Tensor, token_mask: Tensor | None) -> Tensor:
        """tokens (b, k, memory width) -> states (b, n + 1, width), the relation token's last."""
        queries = torch.cat([self.queries, self.relation]).expand(tokens.shape[0], -1, -1)
        result: Tensor = self.layers(queries, self.memory(tokens), token_mask)
        return result


class RelationHead(nn.Module):
    """A softmax over {none, labels} for each slot; relations of (x_i, x_j, relation token), both orders averaged.

    `Prediction` has presence and labels apart: labels are the logits c_1.., presence is max(c_1..) - c_none, which
    is positive where the argmax is a label. `losses.relation_loss.class_logits` gets c back, exactly.
    """

    def __init__(self, width: int, hidden: int, vocabulary: Vocabulary) -> None:
        super().__init__()
        labels, relations = len(vocabulary.nodes), len(vocabulary.edges)
        self.classes = nn.Sequential(Linear(width, hidden), nn.GELU(), Linear(hidden, 1 + labels))
        # The first layer is linear in the concatenation, so its parts are applied before the pairs are formed.
        self.first = Linear(width, hidden, bias=False)
        self.second = Linear(width, hidden, bias=False)
        self.relation = Linear(width, hidden)
        # Of two relations, none and edge, only the difference of the logits counts.
        self.pair_output = nn.Sequential(
            nn.GELU(), Linear(hidden, hidden), nn.GELU(), Linear(hidden, relations if relations > 2 else 1)
        )

    def forward(self, states: Tensor) -> Prediction:
        """states (b, n + 1, width) -> logits, in float32 under mixed precision; the edges' diagonal is zero."""
        slots, token = states[:, :-1], states[:, -1:]
        classes = at_least_float32(self.classes(slots))
        none, labels = classes[:, :, 0], classes[:, :, 1:]
        first, second = self.first(slots) + self.relation(token), self.second(slots)
        n = slots.shape[1]
        rows, columns = torch.triu_indices(n, n, 1, device=states.device)
        orders = torch.stack([first[:, rows] + second[:, columns], first[:, columns] + second[:, rows]])
        upper = at_least_float32(self.pair_output(orders)).mean(0)
        edges = upper.new_zeros(len(upper), n, n, upper.shape[2])
        edges[:, rows, columns] = upper
        edges[:, columns, rows] = upper
        return Prediction(
            presence=labels.amax(2) - none,
            edges=edges[..., 0] if edges.shape[3] == 1 else edges.permute(0, 3, 1, 2),
            node_labels=labels if labels.shape[2] > 1 else None,
        )


Inputs = Tensor | tuple[Tensor, ...]
"""A batch as an encoder takes it: one tensor (b, ...), or several."""


def inputs_to(inputs: Inputs, device: torch.device) -> Inputs:
    """The inputs on another device."""
    return _each(inputs, lambda tensor: tensor.to(device))


def some_inputs(inputs: Inputs, samples: slice) -> Inputs:
    """Those of some samples of a batch."""
    return _each(inputs, lambda tensor: tensor[samples])


def _each(inputs: Inputs, change: Callable[[Tensor], Tensor]) -> Inputs:
    if isinstance(inputs, Tensor):
        return change(inputs)
    changed = [change(tensor) for tensor in inputs]
    # A named tuple is made from its fields, a plain one from a sequence.
    return type(inputs)(*changed) if hasattr(inputs, "_fields") else tuple(changed)


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
