"""Figures by molecule: every molecule counts once, however many spectra were taken of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from graphwright.metrics import Report, bootstrap_interval
from graphwright.tasks.membership import Membership
from graphwright.tasks.task import Extra

SHARES = ("isomorphic", "isomorphic_skeleton", "size_accuracy", "node_accuracy", "edge_precision", "edge_recall")
FIELDS = {"size_accuracy": "size_correct"}
"""What a figure is called in a report, where the names differ."""


def molecule_means(report: Report, extras: Sequence[Extra], membership: Membership) -> dict[str, Any]:
    """Means over molecules of their spectra's means, with 95 % intervals by resampling formulas.

    The names and scales are those of `Report.to_json` and of the extras.
    """
    values: dict[str, tuple[ArrayLike, float]] = {
        name: (getattr(report, FIELDS.get(name, name)), 100.0) for name in SHARES
    }
    values["edit"] = (report.edit, 1.0)
    if report.aligned_edit is not None and report.aligned_exact is not None:
        values |= {"aligned_exact": (report.aligned_exact, 100.0), "aligned_edit": (report.aligned_edit, 1.0)}
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
