"""What becomes of jobs, whoever does them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphwright.experiments.job import Job
from graphwright.experiments.store import JobBusyError, State, Store
from graphwright.experiments.work import perform
from graphwright.parallel import Engine, Lost, Stopped


@dataclass(frozen=True)
class Outcome:
    """What became of a job, and why if it is not done."""

    job: Job
    state: State
    reason: str = ""


def run_jobs(engine: Engine, jobs: Sequence[Job], store: Store, stopped: Stopped) -> Iterator[Outcome]:
    """Outcomes as they come, in any order; once `stopped`, runs save their state and nothing new is begun."""
    work = _Work(store.root.resolve(), engine.threads)
    for job, ended in engine.tasks(work, jobs, stopped):
        if isinstance(ended, Lost):
            yield Outcome(job, State.INTERRUPTED if ended.interrupted else State.FAILED, ended.reason)
        else:
            yield ended


def attempt(job: Job, folder: Path, threads: int) -> Outcome:
    """A job's outcome, whatever happens in it but an interrupt: the failure of one is not the failure of all."""
    try:
        perform(job, folder, threads)
    except JobBusyError as error:
        return Outcome(job, State.RUNNING, str(error))
    except Exception as error:
        return Outcome(job, State.FAILED, f"{type(error).__name__}: {error}")
    return Outcome(job, State.DONE)


@dataclass(frozen=True)
class _Work:
    """A job in its folder, on so many torch threads where a run leaves their number open."""

    root: Path
    threads: int

    def __call__(self, job: Job) -> Outcome:
        return attempt(job, self.root / job.key, self.threads)
