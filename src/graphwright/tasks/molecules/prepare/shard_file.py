"""One shard: a Parquet file that says itself which rows of which source it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, ValidationError

from graphwright.files import replacing
from graphwright.tasks.molecules.prepare.batch import BLOCK_ROWS, SCHEMA
from graphwright.tasks.molecules.prepare.rejection import ReasonCount
from graphwright.tasks.split import STORED_SPLITS

KEY = b"graphwright.shard"


class ShardRecord(BaseModel):
    """What a shard holds and what became of the rest of its rows.

    source: position in the list of sources. number: counts the shards of a source from 0.
    first, rows: the rows of the source that it stands for, numbered from 1. last: the source ends with them.
    molecules: by split, in the order of `STORED_SPLITS`. rejected: duplicates included.
    """

    model_config = ConfigDict(frozen=True)

    source: int
    number: int
    first: int
    rows: int
    last: bool
    molecules: tuple[int, int, int]
    rejected: tuple[ReasonCount, ...]

    @property
    def name(self) -> str:
        return f"{self.source:03d}-{self.number:06d}.parquet"


def by_split(molecules: pa.Table) -> list[pa.Table]:
    """Molecules of each split, their order kept."""
    return [molecules.filter(pc.equal(molecules["split"], split)) for split in STORED_SPLITS]


def write_shard(folder: Path, parts: Sequence[pa.Table], record: ShardRecord) -> None:
    """Write a shard at once or not at all; no row group holds two splits."""
    schema = SCHEMA.with_metadata({KEY: record.model_dump_json().encode()})
    with (
        replacing(folder / record.name) as draft,
        pq.ParquetWriter(draft, schema, compression="zstd", use_dictionary=["split"]) as writer,
    ):
        for part in parts:
            if part.num_rows:
                writer.write_table(part.cast(schema), row_group_size=BLOCK_ROWS)


def read_record(path: Path) -> ShardRecord:
    """The record in a shard's footer."""
    try:
        return ShardRecord.model_validate_json((pq.read_schema(path).metadata or {})[KEY])
    except (KeyError, ValidationError, pa.ArrowException) as error:
        raise ValueError(f"{path} is not a shard of graphwright, or damaged: {error}") from error


def read_records(folder: Path) -> Iterator[ShardRecord]:
    """Records of all shards in a folder, in the order of sources and rows."""
    for path in sorted(folder.glob("*.parquet")):
        yield read_record(path)
