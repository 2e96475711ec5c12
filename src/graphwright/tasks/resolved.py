"""Runs with everything named that they otherwise read off the data."""

from __future__ import annotations

from dataclasses import dataclass

from graphwright.known import Library
from graphwright.settings import Run
from graphwright.tasks.task import Task, task_of

MOST_KNOWN = 20_000
"""Training samples whose graphs count: the first so many."""


def known_graphs(task: Task) -> Library:
    """The distinct graphs of the training data, in the order in which they come."""
    data = task.data("train")
    return Library.of((data.graph(index) for index in range(min(len(data), MOST_KNOWN))), task.capacity)


@dataclass(frozen=True, eq=False)
class Resolved:
    """A run with everything named that its task and its model otherwise read off the data.

    library: the known graphs that were counted for it, where it recognises any: they need not be read again.
    """

    run: Run
    library: Library | None


def resolved(run: Run) -> Run:
    return resolve(run).run


def resolve(run: Run) -> Resolved:
    """Read off the data what a run's settings leave open."""
    task = task_of(run.task)
    settings, encoder = task.resolved(), task.resolved_encoder(run.model)
    library = known_graphs(task_of(settings)) if run.loss.recognition else None
    known = 0 if library is None else len(library)
    model = run.model.model_copy(update={"encoder": encoder, "known_graphs": known})
    return Resolved(run.model_copy(update={"task": settings, "model": model}), library)
