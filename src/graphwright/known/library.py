"""What is known beforehand: graphs, such as those of the training data, and inputs remembered with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor, nn

from graphwright.decoding.valence import Formula
from graphwright.graphs import Graph, GraphBatch, Vocabulary
from graphwright.graphs.isomorphism import DistinctGraphs
from graphwright.models import GraphPredictor, Inputs
from graphwright.models.predictor import Predicted

Codes = NDArray[np.int64]
LIBRARY_PREFIX = "known."
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
        # Known are labels and edges: the numbers of one sample's nodes are not those of another's.
        plain = (replace(graph, attributes=None) for graph in graphs)
        indices = [distinct.add(graph) for graph in plain if 0 < graph.size <= slots]
        if not indices:
            raise ValueError(f"there is no graph of 1 to {slots} nodes to choose from")
        return cls(tuple(distinct.graphs), GraphBatch.collate(distinct.graphs, slots), np.bincount(indices))

    @classmethod
    def unpacked(cls, tensors: Mapping[str, Tensor], vocabulary: Vocabulary, slots: int) -> Library | None:
        """The library among a model's tensors, if there is one."""
        if f"{LIBRARY_PREFIX}sizes" not in tensors:
            return None
        sizes, counts, numbers, labels, edges = (
            tensors[LIBRARY_PREFIX + name].numpy().astype(np.int64)
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
        return {LIBRARY_PREFIX + name: torch.from_numpy(array.astype(np.int32)) for name, array in arrays.items()}

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


WEIGHT = 16.0
"""Weight of the likeness, in 0..1, beside the log-probability of a graph. Chosen on MassBank's validation fold."""
MEMORY_PREFIX = "memory."
"""Begins the names of a memory's tensors in a model's file."""
LARGEST, HALF = 255, 2**15
"""Largest stored weight; and what is subtracted from a word's number, since torch has no unsigned 16-bit integers
that can be computed with."""
Bag: TypeAlias = "csr_array[np.float32]"
"""(m, words) how much each word counts; rows of length 1, or 0 where there is no word."""


@dataclass(frozen=True, eq=False)
class Memory:
    """bags: (r, words) of remembered inputs. indices: (r,) ascending, which of `graphs` known graphs each has."""

    bags: Bag
    indices: NDArray[np.int64]
    graphs: int

    @classmethod
    def unpacked(cls, tensors: Mapping[str, Tensor]) -> Memory | None:
        """The memory among a model's tensors, if there is one."""
        if f"{MEMORY_PREFIX}words" not in tensors:
            return None
        words, weights, lengths, indices, shape = (
            tensors[MEMORY_PREFIX + name].numpy() for name in ("words", "weights", "lengths", "places", "shape")
        )
        rows = np.repeat(np.arange(len(lengths)), lengths)
        bags = bag(rows, words.astype(np.int64) + HALF, weights.astype(np.float32), (len(lengths), int(shape[0])))
        return cls(bags, indices.astype(np.int64), int(shape[1]))

    def packed(self) -> dict[str, Tensor]:
        """As tensors, three bytes a word: words and weights (e,), lengths and places (r,), shape (2,): words in
        all, and graphs."""
        words = self.bags.shape[1]
        if words > 2 * HALF:
            raise ValueError(f"{words} words do not fit into two bytes")
        arrays = {
            "words": (self.bags.indices.astype(np.int32) - HALF).astype(np.int16),
            "weights": np.clip(np.rint(self.bags.data * LARGEST), 1, LARGEST).astype(np.uint8),
            "lengths": np.diff(self.bags.indptr).astype(np.int32),
            "places": self.indices.astype(np.int32),
            "shape": np.array([words, self.graphs], np.int32),
        }
        return {MEMORY_PREFIX + name: torch.from_numpy(array) for name, array in arrays.items()}

    def likeness(self, queries: Bag) -> NDArray[np.float32]:
        """(m, graphs) cosine of the remembered input of each graph that is most like the query; 0 without one."""
        result = np.zeros((queries.shape[0], self.graphs), np.float32)
        known, starts = self._graphs
        if len(known):
            result[:, known] = np.maximum.reduceat((queries @ self._across).toarray(), starts, axis=1)
        return result

    @cached_property
    def _across(self) -> Bag:
        """(words, r)."""
        return csr_array(self.bags.T)

    @cached_property
    def _graphs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Graphs that have a remembered input, and the row of the first."""
        known, starts = np.unique(self.indices, return_index=True)
        return known, starts


def bag(
    rows: NDArray[np.int64], words: NDArray[np.int64], weights: NDArray[np.float32], shape: tuple[int, int]
) -> Bag:
    """Words (e,) and their weights by row (e,), a word that comes twice added up, each row of length 1."""
    summed = csr_array((weights.astype(np.float32), (rows, words)), shape=shape)
    summed.sum_duplicates()
    lengths = np.sqrt(np.bincount(_rows(summed), summed.data.astype(np.float64) ** 2, minlength=shape[0]))
    summed.data /= np.maximum(lengths, 1e-12).astype(np.float32)[_rows(summed)]
    return summed


def _rows(matrix: Bag) -> NDArray[np.int64]:
    """(e,) the row of every entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


class Recalling(nn.Module):
    """What the predictor says, and to the logits of known graphs `WEIGHT` times the likeness.

    A network forgets the particulars of a molecule that it saw a few times; a spectrum remembered has them.
    bags: of a batch of inputs.
    """

    def __init__(self, predictor: GraphPredictor, memory: Memory, bags: Callable[[Inputs], Bag]) -> None:
        super().__init__()
        self.predictor = predictor
        self.memory = memory
        self.bags = bags

    def forward(self, inputs: Inputs) -> Predicted:
        predicted: Predicted = self.predictor(inputs)
        known = predicted.graphs.known
        if known is None:
            raise ValueError("a predictor that recognises no graphs has nothing to recall")
        check_recognised(known, self.memory.graphs)
        likeness = torch.from_numpy(self.memory.likeness(self.bags(inputs))).to(known)
        return replace(predicted, graphs=replace(predicted.graphs, known=known + WEIGHT * likeness))
