"""Who does the jobs: this process, several, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from graphwright.experiments.job import Job
from graphwright.experiments.store import BusyError, State, Store
from graphwright.experiments.work import perform

Stopped = Callable[[], bool]
"""Whether somebody has asked to stop."""


@dataclass(frozen=True)
class Outcome:
    """What became of a job, and why if it is not done."""

    job: Job
    state: State
    reason: str = ""


class Engine(Protocol):
    """Does jobs, in any order."""

    def run(self, jobs: Sequence[Job], store: Store, stopped: Stopped) -> Iterator[Outcome]:
        """Outcomes as they come; once `stopped`, runs save their state and nothing new is begun."""


def attempt(job: Job, folder: Path, threads: int) -> Outcome:
    """A job's outcome, whatever happens in it: the failure of one is not the failure of all."""
    try:
        perform(job, folder, threads)
    except KeyboardInterrupt:
        return Outcome(job, State.INTERRUPTED)
    except BusyError as error:
        return Outcome(job, State.RUNNING, str(error))
    except Exception as error:
        return Outcome(job, State.FAILED, f"{type(error).__name__}: {error}")
    return Outcome(job, State.DONE)


class InProcess:
    """This process, one job after the other, on `threads` torch threads where a run leaves their number open."""

    def __init__(self, threads: int = 0) -> None:
        self.threads = threads

    def run(self, jobs: Sequence[Job], store: Store, stopped: Stopped) -> Iterator[Outcome]:
        """In order."""
        for job in jobs:
            if stopped():
                return
            outcome = attempt(job, store.folder(job), self.threads)
            yield outcome
            if outcome.state is State.INTERRUPTED:
                return
