"""Batches on a Ray cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from typing import Any

from graphwright.tasks.molecules.prepare.batch import MeasuredBatch, PrepareSettings, RowBatch, measured_batch
from graphwright.tasks.molecules.prepare.engine import Work, WorkerCrashError, isolate, ordered

AHEAD = 4


class RayCluster:
    """The cluster that RAY_ADDRESS names, which has graphwright installed, or a local one of `processes` CPUs."""

    def __init__(self, processes: int, work: Work = measured_batch) -> None:
        try:
            import ray
        except ImportError as error:
            raise ImportError("--engine ray needs Ray: pip install 'graphwright[ray]'") from error
        self._ray, self._work = ray, work
        self._owner = not ray.is_initialized()
        if self._owner:
            address = os.environ.get("RAY_ADDRESS")
            own: dict[str, Any] = {} if address else {"num_cpus": processes, "include_dashboard": False}
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)

    def prepare(self, batches: Iterable[RowBatch], settings: PrepareSettings) -> Iterator[MeasuredBatch]:
        """In parallel, in order."""
        ray = self._ray
        # Ray's own retries are for nodes that go away; a row that kills its worker is found by `isolate`.
        remote = ray.remote(num_cpus=1, max_retries=1)(self._work)
        shared = ray.put(settings)

        def get(ticket: Any) -> MeasuredBatch:
            result: MeasuredBatch = ray.get(ticket)
            return result

        def attempt(batch: RowBatch) -> MeasuredBatch:
            try:
                return get(remote.remote(batch, shared))
            except ray.exceptions.WorkerCrashedError as error:
                raise WorkerCrashError(str(error)) from error

        def collect(batch: RowBatch, ticket: Any) -> MeasuredBatch:
            try:
                return get(ticket)
            except ray.exceptions.WorkerCrashedError:
                return isolate(batch, attempt)

        ahead = AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        yield from ordered(batches, ahead, lambda batch: remote.remote(batch, shared), collect)

    def close(self) -> None:
        """Leave the cluster, which ends if it was started here."""
        if self._owner:
            self._ray.shutdown()
