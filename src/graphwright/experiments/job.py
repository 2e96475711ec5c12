"""One piece of work, and the name by which its result is found again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from graphwright.baselines import BASELINES, BarycentreSettings, NearestSettings
from graphwright.files import sha256_of
from graphwright.settings import Run, TaskSettings
from graphwright.tasks.molecules.prepare.folder import MANIFEST

FORMAT = 4
"""Of what a job leaves behind: a change of it, of a metric or of a default setting needs another number, lest an
old result be taken."""
WITHOUT_EFFECT = {"train": {"workers", "log_every", "checkpoint_minutes"}, "model": {"known_graphs"}}
"""Settings that do not change a result, or no more than another day's clock would, or follow from others."""


@dataclass(frozen=True)
class Job:
    """Train a run, or ask an untrained method, and evaluate on the first `samples` of the test split.

    baseline: the untrained method's name. references: how many training samples it may look at; None: its own
    default. The run then says which task it is.
    """

    run: Run
    samples: int
    baseline: str | None = None
    references: int | None = None

    def identity(self) -> dict[str, Any]:
        """Everything that the result depends on, as JSON; of a run without training only its task.

        Settings at their default are left out, so that a new one does not orphan the results from before it.
        """
        facts: dict[str, Any] = {"format": FORMAT, "samples": self.samples, "task": _task_identity(self.run.task)}
        if self.baseline is None:
            return facts | {name: _section_identity(self.run, name) for name in Run.model_fields if name != "task"}
        # A method that there is not has a name all the same: its failure is put on record under it.
        known = self.baseline in BASELINES
        return facts | {"baseline": self.baseline, "settings": asdict(self.method()) if known else None}

    def method(self) -> NearestSettings | BarycentreSettings:
        """The settings of its untrained method."""
        if self.baseline not in BASELINES:
            raise ValueError(f"there is no baseline {self.baseline!r}: they are {', '.join(BASELINES)}")
        settings = BASELINES[self.baseline]()
        return settings if self.references is None else replace(settings, references=self.references)

    @property
    def key(self) -> str:
        """The first 16 digits of the SHA-256 of `identity`."""
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()[:16]


def _section_identity(run: Run, name: str) -> dict[str, Any]:
    section = getattr(run, name)
    # The loss's section is a dataclass of the core, which has no `model_dump`.
    given: dict[str, Any] = TypeAdapter(type(section)).dump_python(
        section, mode="json", exclude_defaults=True, exclude=WITHOUT_EFFECT.get(name)
    )
    further: dict[str, Any] = given.pop("further", {})
    return given | further


def _task_identity(task: TaskSettings) -> dict[str, Any]:
    """The kind is every task's own default, yet all that tells two kinds apart."""
    given = task.model_dump(mode="json", exclude_defaults=True)
    return given | {"kind": task.kind, "data_sha256": data_sha256(task)}


def data_sha256(task: TaskSettings) -> str | None:
    """SHA-256 of the data file of a task, or of a prepared folder's manifest; None of generated and shipped data.

    None, too, of a file that is not there: the job itself says so.
    """
    name = getattr(task, "data", None)
    if name is None:
        return None
    path = Path(name)
    if path.is_dir():
        path /= MANIFEST
    if not path.is_file():
        return None
    found = path.stat()
    return _sha256(path.resolve(), found.st_size, found.st_mtime_ns)


@cache
def _sha256(path: Path, size: int, changed: int) -> str:  # noqa: ARG001
    """Read once as long as size and time of change are the same: a key is asked for often, and files are large."""
    return sha256_of(path)
