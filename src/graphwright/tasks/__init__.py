"""Tasks: what is predicted, from what, and where the samples come from."""

from graphwright.tasks.known_graphs import known_graphs
from graphwright.tasks.registry import resolved, task_of
from graphwright.tasks.split import SPLITS, Split
from graphwright.tasks.task import (
    BadInput,
    Baseline,
    Bounded,
    Bounding,
    Compared,
    Describing,
    Extra,
    Grouped,
    Informed,
    NamedInput,
    Order,
    Ordered,
    Owned,
    Rejection,
    Remembering,
    Samples,
    Selective,
    Task,
    unusable_rows,
)

__all__ = [
    "SPLITS",
    "BadInput",
    "Baseline",
    "Bounded",
    "Bounding",
    "Compared",
    "Describing",
    "Extra",
    "Grouped",
    "Informed",
    "NamedInput",
    "Order",
    "Ordered",
    "Owned",
    "Rejection",
    "Remembering",
    "Samples",
    "Selective",
    "Split",
    "Task",
    "known_graphs",
    "resolved",
    "task_of",
    "unusable_rows",
]
