"""Graphs that are known beforehand, such as those of the training data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphwright.decoding.valence import Formula
from graphwright.graphs import Graph, GraphBatch, Vocabulary
from graphwright.graphs.isomorphism import DistinctGraphs

Codes = NDArray[np.int64]
PREFIX = "known."
"""Begins the names of a library's tensors in a model's file."""


@dataclass(frozen=True, eq=False)
class Library:
    """Distinct graphs of one vocabulary, padded to a model's slots; counts: (k,) how often each was met."""

    graphs: tuple[Graph, ...]
    batch: GraphBatch
    counts: Codes

    @classmethod
    def of(cls, graphs: Iterable[Graph], slots: int) -> Library:
        """The graphs, each once however often it comes, without those that have no node or too many."""
        distinct = DistinctGraphs()
        indices = [distinct.add(graph) for graph in graphs if 0 < graph.size <= slots]
        if not indices:
            raise ValueError(f"there is no graph of 1 to {slots} nodes to choose from")
        return cls(tuple(distinct.graphs), GraphBatch.collate(distinct.graphs, slots), np.bincount(indices))

    @classmethod
    def unpacked(cls, tensors: Mapping[str, Tensor], vocabulary: Vocabulary, slots: int) -> Library | None:
        """The library among a model's tensors, if there is one."""
        if f"{PREFIX}sizes" not in tensors:
            return None
        sizes, counts, numbers, labels, edges = (
            tensors[PREFIX + name].numpy().astype(np.int64)
            for name in ("sizes", "counts", "edge_numbers", "labels", "edges")
        )
        graphs = [
            Graph(nodes, part[:, :2], part[:, 2], vocabulary)
            for nodes, part in zip(
                np.split(labels, np.cumsum(sizes)[:-1]), np.split(edges, np.cumsum(numbers)[:-1]), strict=True
            )
        ]
        return cls(tuple(graphs), GraphBatch.collate(graphs, slots), counts)

    def packed(self) -> dict[str, Tensor]:
        """As tensors, so that a model that was handed on needs no data to choose from them.

        Of k graphs: sizes, counts and edge_numbers (k,), and all nodes' labels (n,) and edges (e, 3) in a row.
        """
        edges = [np.column_stack([graph.edges, graph.edge_labels]) for graph in self.graphs]
        arrays = {
            "sizes": np.array([graph.size for graph in self.graphs]),
            "counts": self.counts,
            "edge_numbers": np.array([len(part) for part in edges]),
            "labels": np.concatenate([graph.node_labels for graph in self.graphs]),
            "edges": np.concatenate(edges),
        }
        return {PREFIX + name: torch.from_numpy(array.astype(np.int32)) for name, array in arrays.items()}

    def __len__(self) -> int:
        return len(self.graphs)

    @cached_property
    def distinct(self) -> DistinctGraphs:
        """Where a graph is among them."""
        result = DistinctGraphs()
        for graph in self.graphs:
            result.add(graph)
        return result

    @cached_property
    def contents(self) -> Contents:
        """What its graphs are made of."""
        labels = torch.nn.functional.one_hot(self.batch.node_labels, len(self.batch.vocabulary.nodes))
        counts = (labels * self.batch.mask[:, :, None]).sum(1).numpy()
        kinds, kind = np.unique(counts, axis=0, return_inverse=True)
        return Contents(kinds, kind.reshape(-1))


@dataclass(frozen=True, eq=False)
class Contents:
    """What the graphs of a library are made of: kinds (c, labels) counts of nodes, kind (k,) of each graph."""

    kinds: Codes
    kind: Codes

    def within(self, formula: Formula | None, vocabulary: Vocabulary) -> Codes:
        """The graphs that a formula allows."""
        if formula is None:
            return np.arange(len(self.kind))
        names = vocabulary.nodes
        allowed = np.array(
            [
                formula.admits(dict(zip(names, kind.tolist(), strict=True)), formula.hydrogens or 0)
                for kind in self.kinds
            ]
        )
        return np.flatnonzero(allowed[self.kind])


def check_recognised(known: Tensor, graphs: int) -> None:
    """Refuse logits (b, k) of other known graphs than there are."""
    if known.shape[1] != graphs:
        raise ValueError(
            f"the model recognises {known.shape[1]} graphs, the library has {graphs}: "
            "it is not of the data that the model was trained on"
        )
