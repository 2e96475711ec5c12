"""A whole preparation: sources in, a folder of shards out, from wherever the last attempt ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pyarrow as pa

from graphwright.parallel import Engine, Stopped
from graphwright.tasks.molecules.prepare.batch import (
    SCHEMA,
    PreparedBatch,
    PrepareSettings,
    RowBatch,
    SourceRow,
    UsageTotal,
    Work,
    measured_batch,
    prepared_batches,
)
from graphwright.tasks.molecules.prepare.folder import (
    SHARDS,
    Manifest,
    ShardRecord,
    by_split,
    lock_preparation,
    open_folder,
    prefixes,
    read_records,
    remove_duplicates,
    write_manifest,
    write_shard,
)
from graphwright.tasks.molecules.prepare.sources import RowReader, Source, SourceError, batches
from graphwright.tasks.molecules.prepare.standard import (
    ReasonCount,
    Rejection,
    RejectionReason,
    add_counts,
    count_reasons,
    join_parts,
    remove_parts,
    write_part,
)

BATCH_ROWS = 1024
"""Rows that a worker takes at once: about a second's work."""


@dataclass(frozen=True)
class PreparationProgress:
    """How far a preparation has come; `fraction` is of all bytes of all sources."""

    stage: str
    fraction: float
    molecules: int
    rejected: int


@dataclass(frozen=True, eq=False)
class Prepared:
    """A complete folder, and what this session (none of it, if the folder was complete) spent on it."""

    manifest: Manifest
    usage: UsageTotal

    @property
    def rows(self) -> int:
        return sum(record.rows for record in self.manifest.shards)

    @property
    def molecules(self) -> tuple[int, int, int]:
        """Molecules of train, validation and test."""
        sizes = [sum(record.molecules[split] for record in self.manifest.shards) for split in range(3)]
        return sizes[0], sizes[1], sizes[2]

    @property
    def rejected(self) -> tuple[ReasonCount, ...]:
        return add_counts(count for record in self.manifest.shards for count in record.rejected)


def prepare(
    sources: Sequence[Source],
    out: Path,
    settings: PrepareSettings,
    engine: Engine,
    *,
    report: Callable[[PreparationProgress], None] = lambda _: None,
    stopped: Stopped = lambda: False,
    work: Work = measured_batch,
) -> Prepared:
    """Prepare all sources into a folder; a folder that was begun is completed, a complete one is left as it is.

    When `stopped` says so, it ends with KeyboardInterrupt between two batches: calling it again goes on from the
    last whole shard. What comes out depends on neither engine, interruptions nor time.
    """
    with lock_preparation(out):
        manifest = open_folder(out, Manifest.of(sources, settings))
        usage = UsageTotal()
        if not manifest.complete:
            session = _Session(sources, out, settings, engine, report, stopped, work, usage)
            session.run()
            records = tuple(read_records(out / SHARDS))
            if settings.list_rejected:
                join_parts(out)
            manifest = manifest.model_copy(update={"complete": True, "shards": records})
            write_manifest(out, manifest)
        remove_parts(out)
    return Prepared(manifest, usage)


@dataclass(eq=False)
class _Session:
    sources: Sequence[Source]
    out: Path
    settings: PrepareSettings
    engine: Engine
    report: Callable[[PreparationProgress], None]
    stopped: Stopped
    work: Work
    usage: UsageTotal
    molecules: int = 0
    rejected: int = 0

    def run(self) -> None:
        records = prefixes(self.out, len(self.sources))
        sizes = [max(source.path.stat().st_size, 1) for source in self.sources]
        for record in (record for own in records for record in own):
            self.molecules += sum(record.molecules)
            self.rejected += record.rows - sum(record.molecules)
        for index, source in enumerate(self.sources):
            before = sum(sizes[:index])

            def show(fraction: float, before: int = before, size: int = sizes[index]) -> None:
                share = (before + fraction * size) / sum(sizes)
                self.report(PreparationProgress("preparing", share, self.molecules, self.rejected))

            if not (records[index] and records[index][-1].last):
                self._source(index, source, len(records[index]), show)
            _refuse_useless(
                source, [record for record in read_records(self.out / SHARDS) if record.source == index]
            )
        self._duplicates()

    def _source(self, index: int, source: Source, done: int, show: Callable[[float], None]) -> None:
        """The shards of one source from number `done` on."""
        reader = source.open()
        try:
            rows = self._skip(reader, done * self.settings.shard_rows, show)
            stream = _shard_batches(rows, done, self.settings.shard_rows)
            shard = _Shard(index, done, self.settings.shard_rows)
            for measured in prepared_batches(self.engine, stream, self.settings, self.work):
                if self.stopped():
                    raise KeyboardInterrupt
                if shard.rows == self.settings.shard_rows:
                    self._write(shard, last=False)
                    shard = _Shard(index, shard.number + 1, self.settings.shard_rows)
                shard.add(measured.prepared)
                self.usage.add(measured)
                self.molecules += measured.prepared.molecules.num_rows
                self.rejected += len(measured.prepared.rejections)
                show(reader.fraction)
            if shard.rows:
                self._write(shard, last=True)
        finally:
            reader.close()

    def _skip(self, reader: RowReader, rows: int, show: Callable[[float], None]) -> Iterator[SourceRow]:
        """The rows after so many, which an earlier session has prepared."""
        stream = iter(reader)
        while rows > 0:
            step = min(rows, 100_000)
            for _ in islice(stream, step):
                pass
            rows -= step
            show(reader.fraction)
            if self.stopped():
                raise KeyboardInterrupt
        return stream

    def _write(self, shard: _Shard, *, last: bool) -> None:
        parts = by_split(shard.table())
        record = shard.record([part.num_rows for part in parts], last=last)
        # The listing first: a shard that is there has its rejections listed.
        if self.settings.list_rejected:
            name = record.name.replace(".parquet", ".csv.gz")
            write_part(self.out, name, str(self.sources[shard.source].path), shard.rejections)
        write_shard(self.out / SHARDS, parts, record)

    def _duplicates(self) -> None:
        records = list(read_records(self.out / SHARDS))

        def advance(done: int) -> None:
            self.report(
                PreparationProgress("removing duplicates", done / len(records), self.molecules, self.rejected)
            )
            if self.stopped():
                raise KeyboardInterrupt

        names = [str(source.path) for source in self.sources]
        remove_duplicates(
            self.out / SHARDS, self.out, names, records, listed=self.settings.list_rejected, advance=advance
        )


@dataclass(eq=False)
class _Shard:
    """A shard as it fills."""

    source: int
    number: int
    capacity: int
    rows: int = 0
    molecules: list[pa.RecordBatch] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)

    def add(self, batch: PreparedBatch) -> None:
        """Take a batch, which never crosses the end of a shard."""
        self.rows += batch.rows
        self.molecules.append(batch.molecules)
        self.rejections.extend(batch.rejections)

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.molecules, SCHEMA)

    def record(self, sizes: Sequence[int], *, last: bool) -> ShardRecord:
        """The record of the shard as it is."""
        return ShardRecord(
            source=self.source,
            number=self.number,
            first=self.number * self.capacity + 1,
            rows=self.rows,
            last=last,
            molecules=(sizes[0], sizes[1], sizes[2]),
            rejected=count_reasons(self.rejections),
        )


def _shard_batches(rows: Iterator[SourceRow], done: int, shard_rows: int) -> Iterator[RowBatch]:
    """Batches that never cross the end of a shard, from shard `done` on."""
    first = done * shard_rows + 1
    while True:
        before = first
        for batch in batches(islice(rows, shard_rows), first, BATCH_ROWS):
            first += len(batch.rows)
            yield batch
        if first - before < shard_rows:
            return


def _refuse_useless(source: Source, records: Iterable[ShardRecord]) -> None:
    """An error that says why, if no row of a source can be used."""
    records = list(records)
    rows = sum(record.rows for record in records)
    if not rows:
        raise SourceError(f"{source.path} has no rows")
    counts = add_counts(count for record in records for count in record.rejected)
    if not any(sum(record.molecules) for record in records) and all(
        count.reason is not RejectionReason.DUPLICATE for count in counts
    ):
        raise SourceError(f"{source.path}: none of its {rows:,} rows can be used: {'; '.join(map(str, counts))}")
