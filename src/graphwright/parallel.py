"""Work done elsewhere: in this process, in processes of this machine, or on a Ray cluster; all alike."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Ticket = TypeVar("Ticket")
Stopped = Callable[[], bool]
"""Whether somebody has asked to stop."""
AHEAD = 4
"""Items per worker that are taken ahead, so that one slow item does not leave the other workers idle."""
LOOK_EVERY = 0.5
"""Seconds between looks at whether somebody has asked to stop."""


@dataclass(frozen=True)
class Lost:
    """Instead of a result: the worker was ended, and why. interrupted: because it was asked to stop."""

    reason: str
    interrupted: bool = False


class Engine(Protocol):
    """Calls functions of one argument; these, their arguments and results must be picklable.

    threads: how many a task may use for itself; 0: it is not said.
    """

    threads: int

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result | Lost]]:
        """Items and their results, in order; only so many are taken ahead as keep all workers busy.

        A worker that dies may take with it other items than the one that it died of.
        """

    def alone(self, work: Callable[[Item], Result], item: Item) -> Result | Lost:
        """The result of one item, in a worker that no other item depends on."""

    def tasks(
        self, work: Callable[[Item], Result], items: Sequence[Item], stopped: Stopped
    ) -> Iterator[tuple[Item, Result | Lost]]:
        """Items and their results as they come, for work that takes long; a worker takes only its item with it.

        Once `stopped`, KeyboardInterrupt is raised in the work that is under way, which may save its state and
        must raise it again, and nothing new is begun. Other exceptions are the work's own to handle.
        """

    def close(self) -> None:
        """Let go of all workers at once."""


def ordered(
    items: Iterable[Item],
    ahead: int,
    submit: Callable[[Item], Ticket],
    collect: Callable[[Ticket], Result],
) -> Iterator[tuple[Item, Result]]:
    """Results in order, with at most `ahead` items submitted and not yet collected."""
    waiting: deque[tuple[Item, Ticket]] = deque()
    for item in items:
        waiting.append((item, submit(item)))
        if len(waiting) >= ahead:
            first, ticket = waiting.popleft()
            yield first, collect(ticket)
    while waiting:
        first, ticket = waiting.popleft()
        yield first, collect(ticket)


def nothing() -> None:
    """What a worker does first if nobody says otherwise."""


class InProcess:
    """This process, one item after the other."""

    def __init__(self, threads: int = 0) -> None:
        self.threads = threads

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result | Lost]]:
        """In order."""
        for item in items:
            yield item, work(item)

    def alone(self, work: Callable[[Item], Result], item: Item) -> Result | Lost:
        return work(item)

    def tasks(
        self, work: Callable[[Item], Result], items: Sequence[Item], stopped: Stopped
    ) -> Iterator[tuple[Item, Result | Lost]]:
        """In order, up to the first that is interrupted."""
        for item in items:
            if stopped():
                return
            try:
                result = work(item)
            except KeyboardInterrupt:
                yield item, Lost("", interrupted=True)
                return
            yield item, result

    def close(self) -> None:
        """There is nobody to let go of."""


class Processes:
    """`count` processes at a time.

    start: what a process for a task does first. preload: modules that tasks need besides that of their function;
    they are imported once, and a process is then there at once.
    """

    def __init__(
        self, count: int, threads: int = 1, start: Callable[[], None] = nothing, preload: Sequence[str] = ()
    ) -> None:
        self.count, self.threads, self.start, self.preload = count, threads, start, preload
        self._pool: ProcessPoolExecutor | None = None

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result | Lost]]:
        """In a pool, which is replaced when one of its processes dies: all items in flight are lost with it."""

        def submit(item: Item) -> Future[Result]:
            try:
                self._pool = self._pool or self._new_pool(self.count, work)
                return self._pool.submit(work, item)
            except BrokenProcessPool:
                self._pool = self._new_pool(self.count, work)
                return self._pool.submit(work, item)

        yield from ordered(items, AHEAD * self.count, submit, _collected)

    def alone(self, work: Callable[[Item], Result], item: Item) -> Result | Lost:
        """In a pool of one."""
        pool = self._new_pool(1, work)
        try:
            return _collected(pool.submit(work, item))
        finally:
            _end_pool(pool)

    def tasks(
        self, work: Callable[[Item], Result], items: Sequence[Item], stopped: Stopped
    ) -> Iterator[tuple[Item, Result | Lost]]:
        """Each in a process of its own."""
        context = _context([*_module(work), *self.preload])
        waiting = list(reversed(items))
        running: dict[int, _Task[Item, Result]] = {}
        told = False
        try:
            while running or (waiting and not told):
                while waiting and len(running) < self.count and not told:
                    receiver, sender = context.Pipe(duplex=False)
                    item = waiting.pop()
                    process = context.Process(target=_do_task, args=(sender, self.start, work, item))
                    process.start()
                    sender.close()
                    running[process.sentinel] = _Task(item, process, receiver)
                # A result is taken at once: a process cannot end before a long one has left it.
                unheard = {task.receiver: task for task in running.values() if not task.heard}
                ready = wait([*running, *unheard], LOOK_EVERY)
                for receiver in unheard.keys() & ready:
                    unheard[receiver].hear()
                for sentinel in running.keys() & ready:
                    yield running.pop(sentinel).ended()
                if stopped() and not told:
                    told = True
                    _ask_to_stop(running.values())
        finally:
            if not told:
                _ask_to_stop(running.values())
            for left in running.values():
                left.process.join()

    def close(self) -> None:
        """End the pool without waiting for what it is at."""
        if self._pool is not None:
            _end_pool(self._pool)
            self._pool = None

    def _new_pool(self, count: int, work: Callable[..., Any]) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(count, mp_context=_context(_module(work)), initializer=_start_pool_worker)


@dataclass(eq=False)
class _Task(Generic[Item, Result]):
    """A process at work. heard: it has sent its result, or can no longer."""

    item: Item
    process: BaseProcess
    receiver: Connection
    heard: bool = False
    results: list[Result | Lost] = field(default_factory=list)

    def hear(self) -> None:
        """Take the result that has come."""
        self.heard = True
        with suppress(EOFError):
            self.results.append(self.receiver.recv())

    def ended(self) -> tuple[Item, Result | Lost]:
        """The result of a process that is over, or what ended it."""
        self.process.join()
        if not self.heard and self.receiver.poll():
            self.hear()
        self.receiver.close()
        if self.results:
            return self.item, self.results[0]
        code = self.process.exitcode or 0
        if code == -signal.SIGTERM:  # told to stop before it could handle that
            return self.item, Lost("", interrupted=True)
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return self.item, Lost(f"its process {how}")


def _module(work: Callable[..., Any]) -> list[str]:
    return [work.__module__]


def _context(preload: Sequence[str]) -> SpawnContext | ForkServerContext:
    """New processes without the threads of this one, which do not survive a fork."""
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *preload])
    return context


def _collected(ticket: Future[Result]) -> Result | Lost:
    try:
        return ticket.result()
    except BrokenProcessPool as error:
        return Lost(str(error))


def _end_pool(pool: ProcessPoolExecutor) -> None:
    workers = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()


def _ask_to_stop(running: Iterable[_Task[Any, Any]]) -> None:
    for task in running:
        task.process.terminate()


def _start_pool_worker() -> None:
    """Ctrl-C is the parent's to handle; and a worker must not outlive a parent that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _do_task(sender: Connection, start: Callable[[], None], work: Callable[[Item], Result], item: Item) -> None:
    """A process's life: Ctrl-C is the parent's to handle; it must not outlive a parent that was killed."""
    if sys.platform != "win32":
        os.setsid()
    threading.Thread(target=_follow_parent, daemon=True).start()
    # Training has its own handler, which saves first; elsewhere there is nothing to save.
    signal.signal(signal.SIGTERM, _interrupt)
    result: Result | Lost
    try:
        start()
        result = work(item)
    except KeyboardInterrupt:
        result = Lost("", interrupted=True)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sender.send(result)


def _interrupt(number: int, frame: object) -> None:  # noqa: ARG001
    raise KeyboardInterrupt


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


RETRIES = 1
"""Retries of an item whose machine went away; one that kills its worker is left to the caller."""
TASK_RETRIES = 2
"""Retries of a task, which goes on from the state that it has saved."""
LONGEST_REASON = 300


class RayCluster:
    """The cluster that RAY_ADDRESS names, or a local one of `count` times `threads` CPUs.

    The machines of a cluster must have graphwright installed and share the folders that tasks write to. A task
    takes a GPU where the cluster has any. start: what a worker does first.
    """

    def __init__(self, count: int, threads: int = 1, start: Callable[[], None] = nothing) -> None:
        try:
            import ray
        except ImportError as error:
            raise ImportError("--engine ray needs Ray: pip install 'graphwright[ray]'") from error
        self._ray: Any = ray
        self._start, self.threads = start, max(threads, 1)
        self._owner = not ray.is_initialized()
        if self._owner:
            address = os.environ.get("RAY_ADDRESS")
            cpus = count * self.threads
            own: dict[str, Any] = {} if address else {"num_cpus": cpus, "include_dashboard": False}
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result | Lost]]:
        """Item by item; one is lost with its worker."""
        submit = self._submitting(work)
        ahead = AHEAD * max(int(self._ray.cluster_resources().get("CPU", 1)), 1)
        yield from ordered(items, ahead, submit, self._collected)

    def alone(self, work: Callable[[Item], Result], item: Item) -> Result | Lost:
        """As any other: none depends on another."""
        result: Result | Lost = self._collected(self._submitting(work)(item))
        return result

    def tasks(
        self, work: Callable[[Item], Result], items: Sequence[Item], stopped: Stopped
    ) -> Iterator[tuple[Item, Result | Lost]]:
        """As they end; Ray queues what there is no room for."""
        ray = self._ray
        gpus = 1 if ray.cluster_resources().get("GPU", 0) else 0
        remote = ray.remote(num_cpus=self.threads, num_gpus=gpus, max_retries=TASK_RETRIES)(_call)
        shared = ray.put(work)
        pending = {remote.remote(self._start, shared, item): item for item in items}
        told = False
        try:
            while pending:
                done, _ = ray.wait(list(pending), num_returns=1, timeout=LOOK_EVERY)
                for ticket in done:
                    yield pending.pop(ticket), self._ended(ticket)
                if stopped() and not told:
                    told = True
                    self._cancel(pending)
        finally:
            if not told:
                self._cancel(pending)

    def close(self) -> None:
        """Leave the cluster, which ends if it was started here."""
        if self._owner:
            self._ray.shutdown()

    def _submitting(self, work: Callable[[Item], Result]) -> Callable[[Item], Any]:
        remote = self._ray.remote(num_cpus=1, max_retries=RETRIES)(_call)
        shared = self._ray.put(work)
        return lambda item: remote.remote(self._start, shared, item)

    def _collected(self, ticket: Any) -> Any:
        try:
            return self._ray.get(ticket)
        except self._ray.exceptions.WorkerCrashedError as error:
            return Lost(str(error))

    def _ended(self, ticket: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(ticket)
        except errors.TaskCancelledError:
            return Lost("", interrupted=True)
        except errors.RayError as error:
            return Lost(" ".join(str(error).split())[:LONGEST_REASON])

    def _cancel(self, tickets: Iterable[Any]) -> None:
        for ticket in tickets:
            self._ray.cancel(ticket)


def _call(start: Callable[[], None], work: Callable[[Item], Result], item: Item) -> Result:
    start()
    return work(item)
