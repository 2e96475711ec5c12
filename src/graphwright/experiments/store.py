"""Where results are kept: a folder for every job, named by the job's key."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from graphwright.experiments.job import Job
from graphwright.files import is_locked, lock_folder
from graphwright.inference import checkpoint as checkpoints

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
        found = read_json_object(self.folder(job) / FAILURE)
        return None if found is None else str(found["error"])


def read_json_object(path: Path) -> dict[str, Any] | None:
    """A JSON object, or nothing where there is no file; damage is an error that names the file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged ({error}): delete its folder, and the job is done again") from error
    if not isinstance(found, dict):
        raise ValueError(
            f"{path} is damaged (an object was expected): delete its folder, and the job is done again"
        )
    return found


def lock_job(folder: Path) -> AbstractContextManager[None]:
    """A job's folder for this process alone."""
    return lock_folder(folder, JobBusyError(f"another process is at work in {folder}"))
