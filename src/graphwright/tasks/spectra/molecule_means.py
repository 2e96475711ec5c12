"""Figures by molecule: every molecule counts once, however many spectra were taken of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from graphwright.metrics import METRICS, Report, bootstrap_interval
from graphwright.tasks.membership import Membership
from graphwright.tasks.task import Extra


def molecule_means(report: Report, extras: Sequence[Extra], membership: Membership) -> dict[str, Any]:
    """Means over molecules of their spectra's means, with 95 % intervals by resampling formulas.

    The names and scales are those of `Report.to_json` and of the extras.
    """
    values: dict[str, tuple[ArrayLike, float]] = {}
    for metric in METRICS.entries():
        found = metric.values(report)
        if found is not None:
            values[metric.name] = (found, metric.scale)
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
