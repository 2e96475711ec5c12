"""Batches through an engine: what comes out depends on none, and a row that kills its worker is rejected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from graphwright.parallel import Engine, Lost
from graphwright.tasks.molecules.prepare.batch import (
    SCHEMA,
    MeasuredBatch,
    PreparedBatch,
    PrepareSettings,
    RowBatch,
    WorkerUsage,
    measured_batch,
)
from graphwright.tasks.molecules.prepare.rejection import Rejection, RejectionReason

Work = Callable[[RowBatch, PrepareSettings], MeasuredBatch]
"""What becomes of a batch: a function of a module, and pure."""
Attempt = Callable[[RowBatch], MeasuredBatch | Lost]


class WorkerCrashError(RuntimeError):
    """Workers die whatever they are given."""


def prepared_batches(
    engine: Engine, batches: Iterable[RowBatch], settings: PrepareSettings, work: Work = measured_batch
) -> Iterator[MeasuredBatch]:
    """What became of the batches, in their order."""
    task = _Task(work, settings)
    for batch, result in engine.map(task, batches):
        yield isolate(batch, lambda part: engine.alone(task, part)) if isinstance(result, Lost) else result


@dataclass(frozen=True, eq=False)
class _Task:
    """A batch prepared under some settings."""

    work: Work
    settings: PrepareSettings

    def __call__(self, batch: RowBatch) -> MeasuredBatch:
        return self.work(batch, self.settings)


def isolate(batch: RowBatch, attempt: Attempt) -> MeasuredBatch:
    """The result of a batch that was lost with its worker; the rows that kill one again are rejected."""
    without_rows = attempt(RowBatch(batch.first, ()))
    if isinstance(without_rows, Lost):
        raise WorkerCrashError(f"a process that prepares molecules died: {without_rows.reason}")
    return _halved(batch, attempt)


def _halved(batch: RowBatch, attempt: Attempt) -> MeasuredBatch:
    result = attempt(batch)
    if not isinstance(result, Lost):
        return result
    if len(batch.rows) == 1:
        return MeasuredBatch(_crashed(batch), WorkerUsage("", 0.0, 0))
    middle = len(batch.rows) // 2
    first = _halved(RowBatch(batch.first, batch.rows[:middle]), attempt)
    second = _halved(RowBatch(batch.first + middle, batch.rows[middle:]), attempt)
    return _joined(first, second)


def _crashed(batch: RowBatch) -> PreparedBatch:
    identifier, text = batch.rows[0]
    rejection = Rejection(
        batch.first, identifier, text or "", RejectionReason.CRASHED, "the process that read it died"
    )
    return PreparedBatch(1, pa.RecordBatch.from_pylist([], schema=SCHEMA), (rejection,))


def _joined(first: MeasuredBatch, second: MeasuredBatch) -> MeasuredBatch:
    one, two = first.prepared, second.prepared
    molecules = pa.concat_batches([one.molecules, two.molecules])
    return MeasuredBatch(
        PreparedBatch(one.rows + two.rows, molecules, one.rejections + two.rejections),
        WorkerUsage(
            second.usage.worker,
            first.usage.cpu_seconds + second.usage.cpu_seconds,
            max(first.usage.peak_bytes, second.usage.peak_bytes),
        ),
    )
