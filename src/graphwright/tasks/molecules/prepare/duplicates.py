"""One molecule per connectivity: the first in the order of sources and rows stays.

Restartable at any shard: taking away what is no first occurrence changes nothing about which are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphwright.tasks.molecules.prepare.rejection import (
    Rejection,
    RejectionReason,
    add_counts,
    count_reasons,
    write_part,
)
from graphwright.tasks.molecules.prepare.shard_file import ShardRecord, by_split, write_shard

KEYS_IN_MEMORY = 4_000_000
"""Hashes that are sorted at once: about 100 MB. More molecules take more passes over that one column."""


def repeated_rows(
    shards: Sequence[Path], rows: Sequence[int], keys_in_memory: int = KEYS_IN_MEMORY
) -> Iterator[NDArray[np.uint8]]:
    """For each shard of so many rows, packed bits: whether a row's connectivity has occurred before, in any shard.

    Hashes are dealt to passes by their remainder, so that all rows of one connectivity meet in one pass.
    """
    starts = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    passes = max(1, -(-int(starts[-1]) // keys_in_memory))
    repeated = [np.zeros(-(-count // 8), np.uint8) for count in rows]
    for part in range(passes):
        keys, indices = [], []
        for shard, start in zip(shards, starts, strict=False):
            own = _hashes(shard)
            chosen = np.flatnonzero(own % np.uint64(passes) == part)
            keys.append(own[chosen])
            indices.append(chosen + start)
        later = _not_first(np.concatenate(keys), np.concatenate(indices)) if keys else np.zeros(0, np.int64)
        owner = np.searchsorted(starts, later, side="right") - 1
        for at in np.unique(owner):
            bits = np.zeros(rows[at], bool)
            bits[later[owner == at] - starts[at]] = True
            repeated[at] |= np.packbits(bits)
    yield from repeated


def drop_repeated(
    folder: Path, out: Path, source: str, record: ShardRecord, repeated: NDArray[np.bool_], *, listed: bool
) -> ShardRecord:
    """Rewrite a shard without its repeated rows, after listing them; returns its new record."""
    molecules = pq.read_table(folder / record.name)
    dropped = molecules.filter(pa.array(repeated)).select(["row", "id", "smiles"]).to_pylist()
    rejections = [
        Rejection(row["row"], row["id"], row["smiles"], RejectionReason.DUPLICATE, "the connectivity came before")
        for row in sorted(dropped, key=lambda row: int(row["row"]))
    ]
    if listed:
        write_part(out, record.name.replace(".parquet", "-duplicates.csv.gz"), source, rejections)
    parts = by_split(molecules.filter(pa.array(~repeated)))
    sizes = [part.num_rows for part in parts]
    changed = record.model_copy(
        update={
            "molecules": (sizes[0], sizes[1], sizes[2]),
            "rejected": add_counts([*record.rejected, *count_reasons(rejections)]),
        }
    )
    write_shard(folder, parts, changed)
    return changed


def remove_duplicates(
    folder: Path,
    out: Path,
    sources: Sequence[str],
    records: Sequence[ShardRecord],
    *,
    listed: bool,
    advance: Callable[[int], None],
) -> None:
    """Rewrite every shard that repeats a connectivity; `advance` hears how many shards were looked at."""
    paths = [folder / record.name for record in records]
    sizes = [sum(record.molecules) for record in records]
    for done, (record, packed) in enumerate(zip(records, repeated_rows(paths, sizes), strict=True), 1):
        repeated = np.unpackbits(packed, count=sum(record.molecules)).astype(bool)
        if repeated.any():
            drop_repeated(folder, out, sources[record.source], record, repeated, listed=listed)
        advance(done)


def _hashes(shard: Path) -> NDArray[np.uint64]:
    """The connectivity of every row."""
    column = pq.read_table(shard, columns=["connectivity"], use_threads=False)["connectivity"]
    return np.asarray(column.to_numpy(), np.uint64)


def _not_first(keys: NDArray[np.uint64], indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of all keys that came earlier too; indices ascend."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    return indices[order[again]]
