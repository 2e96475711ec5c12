"""Work on a Ray cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from graphwright.parallel.engine import AHEAD, LOOK_EVERY, Item, Lost, Result, Stopped, nothing, ordered

RETRIES = 1
"""Of an item whose machine went away; one that kills its worker is the caller's to deal with."""
TASK_RETRIES = 2
"""Of a task, which goes on from where it has saved its state."""
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
