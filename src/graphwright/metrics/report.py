"""The figures of an evaluation: one value per sample, and their summary."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphwright.graphs.graph import IntArray
from graphwright.metrics.bootstrap import Interval, bootstrap_interval

BoolArray = NDArray[np.bool_]
ShareArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Report:
    """How m predicted graphs compare with their targets; every array is (m,).

    isomorphic: the same labelled graph. isomorphic_skeleton: the same but for edge labels.
    edit: edit distance, the best found. edit_lower_bound: equal to it where it is proved.
    size_correct: as many nodes. node_accuracy, edge_precision, edge_recall: shares, see `Agreement`.
    aligned_edit, aligned_exact: see `AlignedErrors`; None where no alignment was given.
    groups: names of samples that belong together, for the intervals; None where all are independent.
    """

    isomorphic: BoolArray
    isomorphic_skeleton: BoolArray
    edit: IntArray
    edit_lower_bound: IntArray
    size_correct: BoolArray
    node_accuracy: ShareArray
    edge_precision: ShareArray
    edge_recall: ShareArray
    aligned_edit: IntArray | None = None
    aligned_exact: BoolArray | None = None
    groups: Sequence[Hashable] | None = None

    def __len__(self) -> int:
        return len(self.edit)

    @property
    def edit_proved(self) -> BoolArray:
        """Where the edit distance is proved to be the least."""
        proved: BoolArray = self.edit == self.edit_lower_bound
        return proved

    def interval(self, values: BoolArray | IntArray | ShareArray) -> Interval:
        """95 % bootstrap interval of the mean of values (m,), by groups where there are groups."""
        return bootstrap_interval(values, self.groups)

    def to_json(self) -> dict[str, Any]:
        """Means over samples: shares in per cent, `edit` in edits, intervals as [low, high]."""
        share, edit = self.interval(self.isomorphic), self.interval(self.edit)
        return {
            "samples": len(self),
            "isomorphic": _percent(self.isomorphic),
            "isomorphic_interval": [100 * share.low, 100 * share.high],
            "isomorphic_skeleton": _percent(self.isomorphic_skeleton),
            "edit": float(self.edit.mean()),
            "edit_interval": [edit.low, edit.high],
            "edit_proved_optimal": _percent(self.edit_proved),
            "aligned_exact": None if self.aligned_exact is None else _percent(self.aligned_exact),
            "aligned_edit": None if self.aligned_edit is None else float(self.aligned_edit.mean()),
            "size_accuracy": _percent(self.size_correct),
            "node_accuracy": _percent(self.node_accuracy),
            "edge_precision": _percent(self.edge_precision),
            "edge_recall": _percent(self.edge_recall),
        }


def _percent(values: BoolArray | ShareArray) -> float:
    return 100 * float(values.mean())
