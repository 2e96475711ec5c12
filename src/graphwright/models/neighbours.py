"""Sums over labelled neighbours, of nodes that stand one after another without padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphwright.graphs import GraphBatch
from graphwright.models.bags import Bags


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The edges of all graphs of a batch among their m real nodes, by receiver and by sender."""

    by_receiver: Bags
    by_sender: Bags
    relations: int

    @classmethod
    def of(cls, target: GraphBatch) -> Neighbours:
        """Every edge both ways; its label, from 1, is its relation."""
        relations, labels = len(target.vocabulary.edges) - 1, target.edge_labels
        nodes, sizes = len(target.places), target.sizes
        graph, first, second = labels.nonzero().unbind(1)
        label = labels[graph, first, second]
        before = (sizes.cumsum(0) - sizes)[graph]
        receiver, sent = before + first, (before + second) * relations + label - 1
        order = sent.argsort(stable=True)
        return cls(
            Bags.of(receiver, sent, nodes, nodes * relations),
            Bags.of(sent[order], receiver[order], nodes * relations, nodes),
            relations,
        )

    def received(self, sent: Tensor) -> Tensor:
        """(m, width): of what nodes send, (m, relations * width), what their neighbours do by the edge between."""
        values: Tensor = _NeighbourSums.apply(
            sent.view(len(sent) * self.relations, sent.shape[1] // self.relations), self
        )  # type: ignore[no-untyped-call]
        return values


class _NeighbourSums(torch.autograd.Function):
    """Both ways are sums of bags: torch's own way back would add row by row."""

    @staticmethod
    def forward(ctx: Any, sent: Tensor, neighbours: Neighbours) -> Tensor:
        ctx.neighbours = neighbours
        return neighbours.by_receiver.sums(sent)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.neighbours.by_sender.sums(gradient.contiguous()), None
