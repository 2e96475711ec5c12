"""One piece of work, the name by which its result is kept, and the folder where it is."""

from __future__ import annotations

import hashlib
import json
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from graphwright.baselines import BASELINES, BarycentreSettings, NearestSettings
from graphwright.files import is_locked, lock_folder, sha256_of
from graphwright.inference import checkpoint as checkpoints
from graphwright.settings import Run, TaskSettings
from graphwright.settings.choices import MATCHINGS
from graphwright.tasks.molecules.prepare.folder import MANIFEST

FORMAT = 4
"""Version of a job's results; increase it when they, a metric or a default setting change, so that old results are
not used."""
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
    reads = MATCHINGS[run.matching.kind].reads if name == "matching" else None
    if reads is not None:  # what is meant for other matchings changes nothing
        given = {key: value for key, value in given.items() if key in reads | {"kind"}}
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
    status = path.stat()
    return _sha256(path.resolve(), status.st_size, status.st_mtime_ns)


@cache
def _sha256(path: Path, size: int, changed: int) -> str:  # noqa: ARG001
    """Read once as long as size and time of change are the same: a key is asked for often, and files are large."""
    return sha256_of(path)


RECORD, FAILURE, SAMPLES = "record.json", "failure.json", "samples.csv"


class State(StrEnum):
    """How far a job is."""

    DONE = "done"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    """Begun and not going on; the next try goes on from its checkpoint."""
    FAILED = "failed"
    MISSING = "missing"


class JobBusyError(RuntimeError):
    """Another process is at this job."""


@dataclass(frozen=True)
class Store:
    """The folder of all jobs' folders."""

    root: Path

    def folder(self, job: Job) -> Path:
        """Where a job works and leaves its record."""
        return self.root / job.key

    def state(self, job: Job) -> State:
        """How far a job is, whoever works on it."""
        folder = self.folder(job)
        if (folder / RECORD).is_file():
            return State.DONE
        if is_locked(folder):
            return State.RUNNING
        if (folder / FAILURE).is_file():
            return State.FAILED
        return State.INTERRUPTED if checkpoints.exists(folder / "checkpoints" / "last") else State.MISSING

    def finished(self) -> set[str]:
        """The keys of all jobs that have a record."""
        return {path.parent.name for path in self.root.glob(f"*/{RECORD}")}

    def record(self, job: Job) -> dict[str, Any] | None:
        """The record of a finished job."""
        return read_json_object(self.folder(job) / RECORD)

    def failure(self, job: Job) -> str | None:
        """What a failed job died of."""
        record = read_json_object(self.folder(job) / FAILURE)
        return None if record is None else str(record["error"])


def read_json_object(path: Path) -> dict[str, Any] | None:
    """A JSON object, or nothing where there is no file; damage is an error that names the file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged ({error}): delete its folder, and the job is done again") from error
    if not isinstance(content, dict):
        raise ValueError(
            f"{path} is damaged (an object was expected): delete its folder, and the job is done again"
        )
    return content


def lock_job(folder: Path) -> AbstractContextManager[None]:
    """A job's folder for this process alone."""
    return lock_folder(folder, lambda holder: JobBusyError(f"{holder} is at work in {folder}"))
