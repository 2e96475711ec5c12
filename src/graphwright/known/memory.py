"""Training inputs remembered as bags of words, and the known graph of each: what is like them counts more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor, nn

from graphwright.known.library import check_recognised
from graphwright.models import GraphPredictor, Inputs
from graphwright.models.predictor import Predicted

WEIGHT = 16.0
"""Of the likeness, in 0..1, beside the log-probability of a graph. Chosen on MassBank's validation fold."""
PREFIX = "memory."
"""Begins the names of a memory's tensors in a model's file."""
LARGEST, HALF = 255, 2**15
"""Of a weight's numbers; and what is taken off a word's, for tensors know no unsigned numbers of two bytes."""
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
        if f"{PREFIX}words" not in tensors:
            return None
        words, weights, lengths, indices, shape = (
            tensors[PREFIX + name].numpy() for name in ("words", "weights", "lengths", "places", "shape")
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
        return {PREFIX + name: torch.from_numpy(array) for name, array in arrays.items()}

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
