"""Batches in processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from graphwright.tasks.molecules.prepare.batch import MeasuredBatch, PrepareSettings, RowBatch, measured_batch
from graphwright.tasks.molecules.prepare.engine import Work, WorkerCrashError, isolate, ordered

AHEAD = 4
"""Batches per process that are read ahead, so that one slow batch does not leave the others idle."""


class Processes:
    """`count` processes; a row that kills one is rejected, and the run goes on."""

    def __init__(self, count: int, work: Work = measured_batch) -> None:
        self.count, self.work = count, work
        self._pool = _new_pool(count)

    def prepare(self, batches: Iterable[RowBatch], settings: PrepareSettings) -> Iterator[MeasuredBatch]:
        """In parallel, in order."""

        def submit(batch: RowBatch) -> Future[MeasuredBatch]:
            try:
                return self._pool.submit(self.work, batch, settings)
            except BrokenProcessPool:
                self._pool = _new_pool(self.count)
                return self._pool.submit(self.work, batch, settings)

        def collect(batch: RowBatch, ticket: Future[MeasuredBatch]) -> MeasuredBatch:
            try:
                return ticket.result()
            except BrokenProcessPool:
                # All batches in flight are lost with a pool; each is done again when its turn comes.
                return isolate(batch, lambda part: _alone(self.work, part, settings))

        yield from ordered(batches, AHEAD * self.count, submit, collect)

    def close(self) -> None:
        """End the processes without waiting for what they are at."""
        _end(self._pool)


def _new_pool(count: int) -> ProcessPoolExecutor:
    # Not by forking this process, which has threads: the progress bar's and Arrow's.
    context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload([__name__])
    return ProcessPoolExecutor(count, mp_context=context, initializer=_start_worker)


def _alone(work: Work, batch: RowBatch, settings: PrepareSettings) -> MeasuredBatch:
    """A batch in a process that nobody else depends on."""
    pool = _new_pool(1)
    try:
        return pool.submit(work, batch, settings).result()
    except BrokenProcessPool as error:
        raise WorkerCrashError(f"a process that prepares molecules died: {error}") from error
    finally:
        _end(pool)


def _end(pool: ProcessPoolExecutor) -> None:
    workers = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()


def _start_worker() -> None:
    """Ctrl-C is the parent's to handle; and a worker must not outlive a parent that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
