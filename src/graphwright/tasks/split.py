"""How the samples of a data set divide: into three parts, and into those of one molecule."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphwright.metrics import METRICS, Report, bootstrap_interval

if TYPE_CHECKING:
    from graphwright.tasks.task import Extra


Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
SPLIT_NAMES: dict[str, Split] = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
}
"""What a split may be called in a file."""
StoredSplit = Literal["train", "val", "test"]
STORED_SPLITS: tuple[StoredSplit, ...] = get_args(StoredSplit)
"""What the splits are called in the files of molecules that graphwright writes and ships."""


def check_split(split: str) -> None:
    """Refuse a split that there is not."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")


def check_names(names: Iterable[str | None], column: str, path: Path) -> None:
    """Refuse a column of splits that holds other words: who asks for a split needs all of them understood."""
    unknown = sorted({str(name).strip().lower() for name in names if name is not None} - set(SPLIT_NAMES))
    if unknown:
        raise ValueError(f"{path}: column {column} holds {unknown[0]!r}, expected {', '.join(SPLITS)}")


def split_by_hash(text: str) -> Split:
    """80, 10 and 10 % by a hash: the same for equal texts, on any machine."""
    return {8: SPLITS[1], 9: SPLITS[2]}.get(tenth(text), SPLITS[0])


def tenth(text: str) -> int:
    """A number from 0 to 9 by a hash."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") % 10


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


def molecule_means(report: Report, extras: Sequence[Extra], membership: Membership) -> dict[str, Any]:
    """Means over molecules of their spectra's means, with 95 % intervals by resampling formulas.

    The names and scales are those of `Report.to_json` and of the extras.
    """
    values: dict[str, tuple[ArrayLike, float]] = {}
    for metric in METRICS.entries():
        per_sample = metric.values(report)
        if per_sample is not None:
            values[metric.name] = (per_sample, metric.scale)
    values |= {extra.name: (extra.values, 100.0 if extra.share else 1.0) for extra in extras}
    return _means(values, membership)


def _means(values: Mapping[str, tuple[ArrayLike, float]], membership: Membership) -> dict[str, Any]:
    facts: dict[str, Any] = {"molecules": len(set(membership.molecules))}
    for name, (array, scale) in values.items():
        means, groups = membership.by_molecule(array)
        interval = bootstrap_interval(means, groups)
        facts[name] = scale * float(means.mean())
        facts[f"{name}_interval"] = [scale * interval.low, scale * interval.high]
    return facts
