"""Which training samples a new input is a mixture of: kernel ridge regression on inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Doubles = NDArray[np.float64]


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
