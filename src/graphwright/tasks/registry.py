"""The task that settings describe."""

from __future__ import annotations

from dataclasses import dataclass

from graphwright.known import Library
from graphwright.settings import (
    ColoringTask,
    FingerprintTask,
    Run,
    SpectrumTask,
    TableTask,
    TaskSettings,
)
from graphwright.tasks.coloring import Coloring
from graphwright.tasks.known_graphs import known_graphs
from graphwright.tasks.molecules import Fingerprint2Molecule
from graphwright.tasks.spectra import MS2Scaffold
from graphwright.tasks.table import Table
from graphwright.tasks.task import Task


def task_of(settings: TaskSettings) -> Task:
    """The task of any kind of settings."""
    match settings:
        case ColoringTask():
            return Coloring(settings)
        case FingerprintTask():
            return Fingerprint2Molecule(settings)
        case SpectrumTask():
            return MS2Scaffold(settings)
        case TableTask():
            return Table(settings)


@dataclass(frozen=True, eq=False)
class Resolved:
    """A run with everything named that its task and its model otherwise read off the data.

    library: the known graphs that were counted for it, where it recognises any: they need not be read again.
    """

    run: Run
    library: Library | None


def resolved(run: Run) -> Run:
    """The run of `resolve`."""
    return resolve(run).run


def resolve(run: Run) -> Resolved:
    """Read off the data what a run's settings leave open."""
    model = run.model
    match run.task:
        case ColoringTask():
            task: TaskSettings = run.task
        case FingerprintTask():
            task = Fingerprint2Molecule(run.task).resolved()
        case SpectrumTask():
            task = MS2Scaffold(run.task).resolved()
        case TableTask():
            table = Table(run.task)
            task = table.resolved()
            if model.encoder == "columns":
                model = model.model_copy(update={"encoder": str(table.form.kind)})
    library = known_graphs(task_of(task)) if run.loss.recognition else None
    model = model.model_copy(update={"known_graphs": 0 if library is None else len(library)})
    return Resolved(run.model_copy(update={"task": task, "model": model}), library)
