"""Training inputs remembered as bags of words, and the known graph of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Bag: TypeAlias = "csr_array[np.float32]"
"""(m, words) how much each word counts; rows of length 1, or 0 where there is no word."""


@dataclass(frozen=True, eq=False)
class Memory:
    """bags: (r, words) of remembered inputs. places: (r,) ascending, which of `graphs` known graphs each has."""

    bags: Bag
    places: NDArray[np.int64]
    graphs: int

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
        known, starts = np.unique(self.places, return_index=True)
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
