"""Tasks: what is predicted, from what, and where the samples come from."""

from graphwright.settings import TaskSettings
from graphwright.tasks.likeness import Likeness
from graphwright.tasks.split import SPLITS, Membership, Split
from graphwright.tasks.task import (
    BadInput,
    Baseline,
    Batches,
    Choice,
    Extra,
    NamedInput,
    RejectedRow,
    Resolved,
    Samples,
    Task,
    UnusableError,
    known_graphs,
    register_task,
    resolve,
    resolved,
    task_of,
)

# Their import registers the tasks that come along, in the order of which the first named has its word last.
from graphwright.tasks import coloring, molecules, spectra, table  # isort: skip

__all__ = [
    "SPLITS",
    "BadInput",
    "Baseline",
    "Batches",
    "Choice",
    "Extra",
    "Likeness",
    "Membership",
    "NamedInput",
    "RejectedRow",
    "Resolved",
    "Samples",
    "Split",
    "Task",
    "TaskSettings",
    "UnusableError",
    "coloring",
    "known_graphs",
    "molecules",
    "register_task",
    "resolve",
    "resolved",
    "spectra",
    "table",
    "task_of",
]
