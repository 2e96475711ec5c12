"""The table of metrics: everything that logs, settings, reports, cards and experiments say of predicted graphs.

A new metric is one more entry. Another package adds one by an entry point (see `graphwright.registry`) whose
module says, for instance:

    METRICS.add(Metric("same_degrees", "same degrees", PERCENT, Better.HIGHER, share_of_same_degrees))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphwright.registry import Registry

if TYPE_CHECKING:
    from graphwright.metrics.evaluation import Report

Values = NDArray[np.bool_] | NDArray[np.int64] | NDArray[np.float64]

PERCENT = "%"
"""The unit of shares: values are 0 to 1, and shown times 100."""


class Better(StrEnum):
    """Which values of a metric are the better ones."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True)
class Metric:
    """A figure of predicted graphs.

    name: in logs, JSON and settings. title: for people, without the unit.
    unit: `PERCENT` of shares, else what is counted or measured, nothing if the title says it.
    of: (m,) values of the samples of a report, or None where it cannot tell: without an alignment, for instance.
    headline: whether summaries give its interval, and a run tells it of every validation.
    """

    name: str
    title: str
    unit: str
    better: Better
    of: Callable[[Report], Values | None]
    headline: bool = False

    @property
    def heading(self) -> str:
        """Title and unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    @property
    def column(self) -> str:
        """Name and unit, where there is no room for a title."""
        name = self.name.replace("_", " ")
        return f"{name}, {self.unit}" if self.unit else name

    @property
    def scale(self) -> float:
        """What values are shown times."""
        return 100.0 if self.unit == PERCENT else 1.0

    def in_words(self, value: float) -> str:
        """A mean, as a line of progress says it."""
        name = self.name.replace("_", " ")
        return f"{value:.1f} % {name}" if self.unit == PERCENT else f"{name} {value:.2f} {self.unit}".rstrip()

    def values(self, report: Report) -> Values | None:
        """`of`, checked: it may be another package's."""
        values = self.of(report)
        if values is not None and np.shape(values) != (len(report),):
            wanted = f"the metric {self.name} must give {len(report)} values, one per sample"
            raise ValueError(f"{wanted}, got shape {np.shape(values)}")
        return values

    def gain(self, value: float, before: float) -> float:
        """By how much a value is better than the one before; negative if it is worse."""
        return value - before if self.better is Better.HIGHER else before - value


class MetricTable(Registry[Metric]):
    """All metrics by name, in the order in which they are shown."""

    def add(self, metric: Metric) -> Metric:
        """Put a metric into the table; a name stands for one metric only."""
        known = self._entries.get(metric.name)
        # A module that failed halfway is imported anew, and adds the same metrics again.
        if known is not None and known.of.__module__ != metric.of.__module__:
            taken = f"the metric {metric.name!r} is of {known.of.__module__}"
            raise ValueError(f"{taken}; that of {metric.of.__module__} needs another name")
        return self.register(metric.name)(metric)

    def entries(self) -> Iterator[Metric]:
        """Every metric, the built-in ones first."""
        return (self[name] for name in self.names())

    def headlines(self, *further: str) -> tuple[Metric, ...]:
        """The metrics that are told first, and those named, in the table's order."""
        return tuple(metric for metric in self.entries() if metric.headline or metric.name in further)


METRICS = MetricTable("metric")

for entry in (
    Metric(
        "isomorphic",
        "exactly right (isomorphic)",
        PERCENT,
        Better.HIGHER,
        lambda report: report.isomorphic,
        headline=True,
    ),
    Metric("edit", "edit distance", "", Better.LOWER, lambda report: report.edit, headline=True),
    Metric(
        "edit_proved_optimal",
        "edit distance proved minimal",
        PERCENT,
        Better.HIGHER,
        lambda report: report.edit_proved,
    ),
    Metric(
        "aligned_exact",
        "aligned exact (the paper's figure)",
        PERCENT,
        Better.HIGHER,
        lambda report: report.aligned_exact,
    ),
    Metric(
        "aligned_edit", "aligned edit (the paper's figure)", "", Better.LOWER, lambda report: report.aligned_edit
    ),
    Metric("size_accuracy", "size right", PERCENT, Better.HIGHER, lambda report: report.size_correct),
    Metric("node_accuracy", "node accuracy", PERCENT, Better.HIGHER, lambda report: report.node_accuracy),
    Metric("edge_precision", "edge precision", PERCENT, Better.HIGHER, lambda report: report.edge_precision),
    Metric("edge_recall", "edge recall", PERCENT, Better.HIGHER, lambda report: report.edge_recall),
    Metric(
        "isomorphic_skeleton",
        "right but for edge labels",
        PERCENT,
        Better.HIGHER,
        lambda report: report.isomorphic_skeleton,
    ),
    Metric(
        "attribute_error",
        "error of nodes' numbers (root mean square)",
        "deviations",
        Better.LOWER,
        lambda report: report.attribute_error,
        headline=True,
    ),
):
    METRICS.add(entry)
