"""Which samples of a data set belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Membership:
    """Both are (m,): names of the molecules that samples were measured of, and of the molecules' formulas."""

    molecules: Sequence[str]
    groups: Sequence[str]

    def __post_init__(self) -> None:
        if len(self.molecules) != len(self.groups):
            raise ValueError(f"{len(self.molecules)} molecules for {len(self.groups)} groups")

    def by_molecule(self, values: ArrayLike) -> tuple[NDArray[np.float64], list[str]]:
        """Means of values (m,) over the samples of each molecule, in order of first appearance, and its group."""
        codes: dict[str, int] = {}
        membership = np.array([codes.setdefault(name, len(codes)) for name in self.molecules])
        array = np.asarray(values, np.float64)
        if array.shape != membership.shape:
            raise ValueError(f"values must have shape {membership.shape}, got {array.shape}")
        means = np.bincount(membership, array) / np.bincount(membership)
        return means, [str(self.groups[at]) for at in np.unique(membership, return_index=True)[1]]
