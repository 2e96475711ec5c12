"""FGWBary: a graph predicted as the weighted fused Gromov-Wasserstein barycentre of training graphs.

Weights by kernel ridge regression on the inputs, the barycentre by POT (Brogat-Motte et al. 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from graphwright.graphs import Graph, Vocabulary

Doubles = NDArray[np.float64]


class SizeRule(StrEnum):
    """How many nodes a barycentre is given, which the barycentre itself does not say."""

    VOTE = "vote"
    """The size that most of the weight is for."""
    TRUE = "true"
    """The target's own: what no method can know, an upper bound of what guessing the size costs."""


@dataclass(frozen=True)
class BarycentreSettings:
    """references: training samples in the kernel, drawn with `seed`. kept: how many of the largest weights count.

    ridge: of the regression, by its number of samples. bandwidth: of a Gaussian kernel, in medians of the squared
    distance. structure: share of the structure against the labels in the distance, alpha of POT. iterations: of
    the barycentre at most, and of each plan in it. threshold: above it an entry of the structure is an edge.
    """

    references: int = 2000
    kept: int = 10
    ridge: float = 1e-2
    bandwidth: float = 0.25
    structure: float = 0.5
    iterations: int = 50
    tolerance: float = 1e-5
    threshold: float = 0.5
    seed: int = 0
    size: SizeRule = SizeRule.VOTE

    def __post_init__(self) -> None:
        for name in ("references", "kept", "ridge", "bandwidth", "iterations", "tolerance"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        for name in ("structure", "threshold"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")


@dataclass(frozen=True, eq=False)
class Barycentre:
    """structure (n, n), entries in 0..1; labels (n, l), rows adding up to 1; edge_labels (c, n, n), shares of
    every edge label but none."""

    structure: Doubles
    labels: Doubles
    edge_labels: Doubles

    def graph(self, vocabulary: Vocabulary, threshold: float) -> Graph:
        """Edges where the structure is above the threshold, of the likeliest label each."""
        joined = (self.structure + self.structure.T) / 2 > threshold
        np.fill_diagonal(joined, False)
        shares = self.edge_labels + self.edge_labels.transpose(0, 2, 1)
        codes = np.where(joined, 1 + shares.argmax(0), 0)
        return Graph.from_matrix(self.labels.argmax(1), codes, vocabulary)


def vote(sizes: Sequence[int], weights: Doubles) -> int:
    """The size with most of the weight; of equals the smallest."""
    totals: dict[int, float] = {}
    for size, weight in zip(sizes, weights.tolist(), strict=True):
        totals[size] = totals.get(size, 0.0) + weight
    return min(totals, key=lambda size: (-totals[size], size))


def barycentre(graphs: Sequence[Graph], weights: Doubles, size: int, settings: BarycentreSettings) -> Barycentre:
    """The FGW barycentre with `size` nodes of graphs with weights (k,), by POT; squared loss, uniform masses.

    It starts from the heaviest graph of that size where there is one, else from POT's random start. Edge labels
    are those of the graphs, carried by the plans: POT's structure is a number for each pair.
    """
    ot = _pot()
    vocabulary = graphs[0].vocabulary
    pairs = [(graph, weight) for graph, weight in zip(graphs, weights.tolist(), strict=True) if graph.size]
    if not size or not pairs:
        return _empty(vocabulary)
    total = sum(weight for _, weight in pairs)
    structures, labels = [_adjacency(graph) for graph, _ in pairs], [_one_hot(graph) for graph, _ in pairs]
    shares = [weight / total for _, weight in pairs]
    alike = [at for at, (graph, _) in enumerate(pairs) if graph.size == size]
    start = max(alike, key=lambda at: shares[at]) if alike else None
    features, structure, log = ot.gromov.fgw_barycenters(
        size,
        labels,
        structures,
        lambdas=shares,
        alpha=settings.structure,
        max_iter=settings.iterations,
        tol=settings.tolerance,
        init_C=None if start is None else structures[start],
        init_X=None if start is None else labels[start],
        random_state=settings.seed,
        log=True,
    )
    carried = np.zeros((len(vocabulary.edges) - 1, size, size))
    for (graph, _), share, plan in zip(pairs, shares, log["T"], strict=True):
        codes = graph.edge_matrix()
        for code in range(1, len(vocabulary.edges)):
            # Masses are 1 / size each, so that a pair of nodes has size^-2 of it.
            carried[code - 1] += share * size**2 * plan @ (codes == code) @ plan.T
    return Barycentre(np.asarray(structure), np.asarray(features), carried)


def _adjacency(graph: Graph) -> Doubles:
    return (graph.edge_matrix() > 0).astype(np.float64)


def _one_hot(graph: Graph) -> Doubles:
    return np.eye(len(graph.vocabulary.nodes))[graph.node_labels]


def _empty(vocabulary: Vocabulary) -> Barycentre:
    return Barycentre(
        np.zeros((0, 0)), np.zeros((0, len(vocabulary.nodes))), np.zeros((len(vocabulary.edges) - 1, 0, 0))
    )


def _pot() -> Any:
    try:
        import ot
    except ImportError as error:
        raise ImportError("barycentres are computed by POT: pip install 'graphwright[bench]'") from error
    return ot


@dataclass(frozen=True, eq=False)
class RidgeWeights:
    """Factors of K + m ridge I, for the kernel K (m, m) of the references with each other."""

    factors: tuple[Doubles, bool]

    @classmethod
    def of(cls, kernel: NDArray[np.float32], ridge: float) -> RidgeWeights:
        """Factorise once, O(m^3)."""
        if ridge <= 0:
            raise ValueError(f"ridge must be positive, got {ridge}")
        m = len(kernel)
        return cls(cho_factor(kernel.astype(np.float64) + m * ridge * np.eye(m), lower=True))

    def weights(self, kernel: NDArray[np.float32]) -> Doubles:
        """(q, m) weights (K + m ridge I)^-1 k(x) of kernels (q, m) between queries and references."""
        solved: Doubles = cho_solve(self.factors, kernel.T.astype(np.float64)).T
        return solved


@dataclass(frozen=True, eq=False)
class Mixture:
    """References (k,) and their weights (k,), positive, descending, adding up to 1."""

    references: NDArray[np.int64]
    weights: Doubles


def largest(weights: Doubles, kernel: NDArray[np.float32], kept: int) -> Mixture:
    """The `kept` references of largest positive weight, of weights (m,); without any, the one most like the input.

    A barycentre needs positive weights, and the others of thousands of references are rounding.
    """
    order = np.argsort(-weights, kind="stable")[:kept]
    chosen = order[weights[order] > 0]
    if not len(chosen):
        return Mixture(np.array([kernel.argmax()], np.int64), np.ones(1))
    return Mixture(chosen.astype(np.int64), weights[chosen] / weights[chosen].sum())
