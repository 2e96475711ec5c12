"""The task that settings describe."""

from __future__ import annotations

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


def resolved(run: Run) -> Run:
    """The run with everything named that its task and its model otherwise read off the data."""
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
    known = len(known_graphs(task_of(task))) if run.loss.recognition else 0
    model = model.model_copy(update={"known_graphs": known})
    return run.model_copy(update={"task": task, "model": model})
