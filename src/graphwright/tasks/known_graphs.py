"""The graphs that a task's training data know."""

from __future__ import annotations

from graphwright.known import Library
from graphwright.tasks.task import Task

MOST_KNOWN = 20_000
"""Training samples whose graphs count: the first so many."""


def known_graphs(task: Task) -> Library:
    """The distinct graphs of the training data, in the order in which they come."""
    data = task.data("train")
    return Library.of((data.graph(index) for index in range(min(len(data), MOST_KNOWN))), task.capacity)
