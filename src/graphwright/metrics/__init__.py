"""How good predicted graphs are: exact matches, edit distances with proofs, and the paper's own figures."""

from graphwright.metrics.aligned import Agreement, AlignedErrors, AlignedSlots, aligned_errors
from graphwright.metrics.edit import EditDistance, edit_distance, edit_distances
from graphwright.metrics.evaluation import (
    Interval,
    Report,
    bootstrap_interval,
    evaluate_graphs,
    is_isomorphic_skeleton,
    skeleton,
)
from graphwright.metrics.metric import METRICS, PERCENT, Better, Metric

__all__ = [
    "METRICS",
    "PERCENT",
    "Agreement",
    "AlignedErrors",
    "AlignedSlots",
    "Better",
    "EditDistance",
    "Interval",
    "Metric",
    "Report",
    "aligned_errors",
    "bootstrap_interval",
    "edit_distance",
    "edit_distances",
    "evaluate_graphs",
    "is_isomorphic_skeleton",
    "skeleton",
]
