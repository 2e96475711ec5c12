"""Known graphs as classes: which of them is an input, and what it costs to be wrong."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphwright.graphs import GraphBatch
from graphwright.graphs.isomorphism import neighbourhoods
from graphwright.known.library import Library
from graphwright.models.arithmetic import Bags, Linear, at_least_float32
from graphwright.models.encoders import Tokens

SCALE = 2.0
WIDER = 2
"""Hidden units to a unit of width."""
DROPOUT = 0.3
"""Dropout of what is read. There are few inputs for most graphs, and with less they are learnt by heart."""
SMOOTHING = 0.05
"""Label smoothing: most graphs have few samples."""
UNKNOWN = -1
RADIUS = 2
"""Edges up to which the surroundings of a node are a part: of scaffolds more made no difference."""


class GraphVectors(nn.Module):
    """A vector for every known graph, the sum of those of its parts over the root of their number.

    Graphs that have parts in common share what is learned of them: of most scaffolds there are a few molecules, of
    their rings and links many. Without parts given, every graph is one of its own.
    """

    rows: Tensor
    starts: Tensor

    def __init__(self, width: int, parts: Bags) -> None:
        super().__init__()
        # Copies, for loading writes into them.
        self.register_buffer("rows", parts.rows.clone())
        self.register_buffer("starts", parts.starts.clone())
        self.parts = nn.Parameter(torch.randn(parts.height, width) / width**0.5)

    def forward(self) -> Tensor:
        """(graphs, width)."""
        bags = Bags(self.rows, self.starts, len(self.parts))
        return bags.sums(self.parts) * (SCALE / bags.counts().to(self.parts.dtype).sqrt())[:, None]

    @torch.no_grad()
    def fold(self) -> None:
        """Give every graph one part of its own, all of its vector: nothing changes but what can be learned."""
        vectors, single = self(), Bags.single(len(self.starts))
        self.rows, self.starts = single.rows, single.starts
        self.parts = nn.Parameter(vectors / SCALE)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Takes parts of any number: a model does not say how many its graphs have in common.

        Where the number is right, as when a run is resumed, the parameter stays the one that is being trained.
        """
        rows, parts = state_dict.get(prefix + "rows"), state_dict.get(prefix + "parts")
        if rows is not None and rows.shape != self.rows.shape:
            self.rows = self.rows.new_empty(rows.shape)
        if parts is not None and parts.shape != self.parts.shape:
            self.parts = nn.Parameter(self.parts.new_empty(parts.shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)


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
        self.read = nn.Sequential(Linear(2 * width, WIDER * width), nn.GELU(), nn.Dropout(DROPOUT))
        self.whole = Linear(WIDER * width, width)
        self.graphs = GraphVectors(WIDER * width, parts)
        self.bias = nn.Parameter(torch.zeros(len(parts.starts)))

    def forward(self, tokens: Tokens) -> Recognised:
        """tokens of b inputs -> the whole of each, and its logits."""
        read = self.read(torch.cat([tokens.values[:, 0], tokens.mean()], 1))
        return Recognised(self.whole(read), at_least_float32(read @ self.graphs().mT + self.bias))


class Recognition:
    """The loss of a model's logits of known graphs."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def __call__(self, logits: Tensor, target: GraphBatch) -> Tensor:
        """(b, k) logits -> (b,) cross-entropies, 0 where the library does not have the target."""
        return functional.cross_entropy(
            logits, self.indices(target), ignore_index=UNKNOWN, label_smoothing=SMOOTHING, reduction="none"
        )

    def indices(self, target: GraphBatch) -> Tensor:
        """(b,) where the targets are in the library; `UNKNOWN` where they are not."""
        matches = [self.library.distinct.find(graph) for graph in target.graphs()]
        indices = [UNKNOWN if index is None else index for index in matches]
        return torch.tensor(indices, dtype=torch.int64, device=target.mask.device)


def shared_parts(library: Library) -> Bags:
    """For every graph, the neighbourhoods that it shares with another, and one part of its own."""
    parts_of = [neighbourhoods(graph, RADIUS) for graph in library.graphs]
    counts = Counter(part for parts in parts_of for part in parts)
    numbers = {part: at for at, part in enumerate(sorted(part for part, count in counts.items() if count > 1))}
    rows = [
        [*sorted(numbers[part] for part in parts if part in numbers), len(numbers) + at]
        for at, parts in enumerate(parts_of)
    ]
    starts = np.cumsum([0, *map(len, rows)])[:-1]
    return Bags(
        torch.from_numpy(np.concatenate(rows)), torch.from_numpy(starts), height=len(numbers) + len(library)
    )
