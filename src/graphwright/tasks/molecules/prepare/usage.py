"""What preparing costs: time and memory of every process that takes part."""

from __future__ import annotations

import os
import resource
import socket
import sys
import time
from dataclasses import dataclass, field

from graphwright.tasks.molecules.prepare.batch import PreparedBatch, RowBatch, prepare_batch
from graphwright.tasks.molecules.prepare.settings import PrepareSettings

PUBCHEM_MOLECULES = 80_900_000
"""Molecules of at most 32 heavy atoms in PubChem, on which the paper trains."""


@dataclass(frozen=True)
class WorkerUsage:
    """What one process spent on one batch, and the most memory that it has held since it started.

    worker: host and process; empty if it is not alive to tell.
    """

    worker: str
    cpu_seconds: float
    peak_bytes: int


@dataclass(frozen=True, eq=False)
class MeasuredBatch:
    """A prepared batch and what it cost."""

    prepared: PreparedBatch
    usage: WorkerUsage


def measured_batch(batch: RowBatch, settings: PrepareSettings) -> MeasuredBatch:
    """`prepare_batch`, measured."""
    start = time.process_time()
    prepared = prepare_batch(batch, settings)
    return MeasuredBatch(prepared, WorkerUsage(this_worker(), time.process_time() - start, peak_memory()))


def this_worker() -> str:
    """The name of this process, among those of all machines."""
    return f"{socket.gethostname()}:{os.getpid()}"


def peak_memory() -> int:
    """Bytes of memory that this process has held at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


@dataclass
class UsageTotal:
    """The sum of many batches."""

    rows: int = 0
    molecules: int = 0
    cpu_seconds: float = 0.0
    peaks: dict[str, int] = field(default_factory=dict)
    """Bytes by worker."""

    def add(self, batch: MeasuredBatch) -> None:
        """Count one more batch."""
        self.rows += batch.prepared.rows
        self.molecules += batch.prepared.molecules.num_rows
        self.cpu_seconds += batch.usage.cpu_seconds
        if batch.usage.worker:
            self.peaks[batch.usage.worker] = max(self.peaks.get(batch.usage.worker, 0), batch.usage.peak_bytes)

    @property
    def rows_per_core_second(self) -> float:
        """Rows read, kept or not, per second of one core."""
        return self.rows / max(self.cpu_seconds, 1e-9)

    @property
    def molecules_per_core_second(self) -> float:
        """Molecules kept per second of one core, which also read what was rejected."""
        return self.molecules / max(self.cpu_seconds, 1e-9)

    @property
    def projected_core_hours(self) -> float:
        """Core-hours for as many molecules as PubChem has, at this rate."""
        return PUBCHEM_MOLECULES / max(self.molecules_per_core_second, 1e-9) / 3600
