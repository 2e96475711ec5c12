"""Jobs on a Ray cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from graphwright.experiments.engine import Outcome, Stopped, attempt
from graphwright.experiments.job import Job
from graphwright.experiments.store import State, Store

LOOK_EVERY = 0.5
"""Seconds between looks at whether somebody has asked to stop."""


def _nothing() -> None:
    """Nothing."""


class RayCluster:
    """The cluster that RAY_ADDRESS names, or a local one of `count` times `threads` CPUs.

    The machines of a cluster must have graphwright installed and share the folder of the results. A job takes a
    GPU where the cluster has any. start: what a process does first.
    """

    def __init__(self, count: int, threads: int, start: Callable[[], None] = _nothing) -> None:
        try:
            import ray
        except ImportError as error:
            raise ImportError("--engine ray needs Ray: pip install 'graphwright[ray]'") from error
        self._ray, self._start, self.threads = ray, start, max(threads, 1)
        self._owner = not ray.is_initialized()
        if self._owner:
            address = os.environ.get("RAY_ADDRESS")
            cpus = count * self.threads
            own: dict[str, Any] = {} if address else {"num_cpus": cpus, "include_dashboard": False}
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)

    def run(self, jobs: Sequence[Job], store: Store, stopped: Stopped) -> Iterator[Outcome]:
        """As they end; Ray queues what there is no room for."""
        ray = self._ray
        gpus = 1 if ray.cluster_resources().get("GPU", 0) else 0
        # A run goes on from its checkpoint, so that a machine that goes away costs little.
        remote = ray.remote(num_cpus=self.threads, num_gpus=gpus, max_retries=2)(_work)
        root = store.root.resolve()
        pending = {remote.remote(job, root / job.key, self.threads, self._start): job for job in jobs}
        told = False
        try:
            while pending:
                done, _ = ray.wait(list(pending), num_returns=1, timeout=LOOK_EVERY)
                for ticket in done:
                    yield self._outcome(ticket, pending.pop(ticket))
                if stopped() and not told:
                    told = True
                    for ticket in pending:
                        ray.cancel(ticket)
        finally:
            if self._owner:
                ray.shutdown()

    def _outcome(self, ticket: Any, job: Job) -> Outcome:
        errors = self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(ticket)
        except errors.TaskCancelledError:
            return Outcome(job, State.INTERRUPTED)
        except errors.RayError as error:
            return Outcome(job, State.FAILED, " ".join(str(error).split())[:300])
        return outcome


def _work(job: Job, folder: Path, threads: int, start: Callable[[], None]) -> Outcome:
    start()
    return attempt(job, folder, threads)
