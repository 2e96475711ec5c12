"""Who runs the batches: any engine gives the same results in the same order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

import pyarrow as pa

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

Ticket = TypeVar("Ticket")
Work = Callable[[RowBatch, PrepareSettings], MeasuredBatch]
"""What an engine runs elsewhere: a function of a module, and pure."""


class WorkerCrashError(RuntimeError):
    """The process that worked on a batch died."""


class Engine(Protocol):
    """Prepares batches, in parallel or not."""

    def prepare(self, batches: Iterable[RowBatch], settings: PrepareSettings) -> Iterator[MeasuredBatch]:
        """Results in the order of the batches, of which only so many are taken ahead as keep all workers busy."""

    def close(self) -> None:
        """Let go of all workers at once."""


class InProcess:
    """This process alone."""

    def prepare(self, batches: Iterable[RowBatch], settings: PrepareSettings) -> Iterator[MeasuredBatch]:
        """One after the other."""
        for batch in batches:
            yield measured_batch(batch, settings)

    def close(self) -> None:
        """There is nobody to let go of."""


def ordered(
    batches: Iterable[RowBatch],
    ahead: int,
    submit: Callable[[RowBatch], Ticket],
    collect: Callable[[RowBatch, Ticket], MeasuredBatch],
) -> Iterator[MeasuredBatch]:
    """Results in order, with at most `ahead` batches submitted and not yet collected."""
    waiting: deque[tuple[RowBatch, Ticket]] = deque()
    for batch in batches:
        waiting.append((batch, submit(batch)))
        if len(waiting) >= ahead:
            yield collect(*waiting.popleft())
    while waiting:
        yield collect(*waiting.popleft())


def isolate(batch: RowBatch, attempt: Callable[[RowBatch], MeasuredBatch]) -> MeasuredBatch:
    """The result of a batch that was lost with its worker; the rows that kill one again are rejected."""
    # A worker that dies of no rows at all is not killed by a row: that error is the caller's.
    attempt(RowBatch(batch.first, ()))
    return _halved(batch, attempt)


def _halved(batch: RowBatch, attempt: Callable[[RowBatch], MeasuredBatch]) -> MeasuredBatch:
    try:
        return attempt(batch)
    except WorkerCrashError:
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
