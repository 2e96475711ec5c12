"""Jobs in processes of this machine, a process each."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from graphwright.experiments.engine import Outcome, Stopped, attempt
from graphwright.experiments.job import Job
from graphwright.experiments.store import State, Store

LOOK_EVERY = 0.5
"""Seconds between looks at whether somebody has asked to stop."""
EXIT = {State.DONE: 0, State.FAILED: 1, State.INTERRUPTED: 3, State.RUNNING: 5}
"""What a process's exit code says of its job."""


def _nothing() -> None:
    """Nothing."""


class Processes:
    """At most `count` jobs at a time, each on `threads` torch threads where a run leaves their number open.

    start: what a process does first.
    """

    def __init__(self, count: int, threads: int, start: Callable[[], None] = _nothing) -> None:
        self.count, self.threads, self.start = count, threads, start

    def run(self, jobs: Sequence[Job], store: Store, stopped: Stopped) -> Iterator[Outcome]:
        """As they end. A process that dies takes nothing with it but its job."""
        context = _context()
        waiting = list(reversed(jobs))
        running: dict[int, tuple[BaseProcess, Job]] = {}
        told = False
        try:
            while running or (waiting and not told):
                while waiting and len(running) < self.count and not told:
                    job = waiting.pop()
                    process = context.Process(
                        target=_work, args=(job, store.folder(job), self.threads, self.start)
                    )
                    process.start()
                    running[process.sentinel] = (process, job)
                for sentinel in wait(list(running), LOOK_EVERY):
                    assert isinstance(sentinel, int)
                    yield _outcome(*running.pop(sentinel), store)
                if stopped() and not told:
                    told = True
                    _end(running)
        finally:
            if not told:
                _end(running)
            for left, _ in running.values():
                left.join()


def _context() -> SpawnContext | ForkServerContext:
    """New processes without the threads of this one, which do not survive a fork."""
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # Imported once; a process is then there at once.
    context.set_forkserver_preload([__name__, "lightning.fabric"])
    return context


def _end(running: dict[int, tuple[BaseProcess, Job]]) -> None:
    """Ask the processes to stop: a run saves its state first."""
    for process, _ in running.values():
        process.terminate()


def _outcome(process: BaseProcess, job: Job, store: Store) -> Outcome:
    process.join()
    code = process.exitcode or 0
    if code == -signal.SIGTERM:  # told to stop before it could handle that
        return Outcome(job, State.INTERRUPTED)
    state = next((state for state, exit_code in EXIT.items() if exit_code == code), State.FAILED)
    if code < 0:
        return Outcome(job, State.FAILED, f"its process was ended by {signal.Signals(-code).name}")
    reasons = {State.FAILED: store.failure(job) or f"its process ended with code {code}"}
    reasons[State.RUNNING] = f"another process is at work in {store.folder(job)}"
    return Outcome(job, state, reasons.get(state, ""))


def _work(job: Job, folder: Path, threads: int, start: Callable[[], None]) -> None:
    """A process's life: Ctrl-C is the parent's to handle; it must not outlive a parent that was killed."""
    if sys.platform != "win32":
        os.setsid()
    threading.Thread(target=_follow_parent, daemon=True).start()
    # Training has its own handler, which saves first; elsewhere there is nothing to save.
    signal.signal(signal.SIGTERM, _interrupt)
    start()
    sys.exit(EXIT[attempt(job, folder, threads).state])


def _interrupt(number: int, frame: object) -> None:  # noqa: ARG001
    raise KeyboardInterrupt


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
