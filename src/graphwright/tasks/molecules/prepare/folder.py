"""The folder of a preparation: its manifest, its shards, and one molecule per connectivity in them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from graphwright.files import DRAFT, HOLDER, LOCK, draft_of, lock_folder, replacing, write_text
from graphwright.tasks.molecules.fingerprint import BITS, RADIUS
from graphwright.tasks.molecules.prepare.batch import BLOCK_ROWS, SCHEMA, PrepareSettings
from graphwright.tasks.molecules.prepare.sources import Source, SourceKind
from graphwright.tasks.molecules.prepare.standard import (
    PARTS,
    SPLIT_RULE,
    ReasonCount,
    Rejection,
    RejectionReason,
    add_counts,
    count_reasons,
    write_part,
)
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
    """Rewrite every shard that repeats a connectivity: the first in the order of sources and rows stays.

    Restartable at any shard: taking away what is no first occurrence changes nothing about which are. `advance`
    hears how many shards were looked at.
    """
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


MANIFEST, SHARDS = "manifest.json", "shards"
HEAD_BYTES = 2**20


class ManifestError(ValueError):
    """A folder that does not hold what it should."""


class SourceFingerprint(BaseModel):
    """A source as it was: its size and the hash of its first and last megabyte."""

    model_config = ConfigDict(frozen=True)

    path: str
    bytes: int
    sha256_of_ends: str
    kind: SourceKind
    smiles_column: str | None
    id_column: str | None

    @classmethod
    def of(cls, source: Source) -> SourceFingerprint:
        """The fingerprint of a file; a second's work, whatever its size."""
        size = source.path.stat().st_size
        digest = hashlib.sha256()
        with source.path.open("rb") as file:
            digest.update(file.read(HEAD_BYTES))
            file.seek(max(size - HEAD_BYTES, 0))
            digest.update(file.read(HEAD_BYTES))
        return cls(
            path=str(source.path),
            bytes=size,
            sha256_of_ends=digest.hexdigest(),
            kind=source.kind,
            smiles_column=source.smiles_column,
            id_column=source.id_column,
        )


class Manifest(BaseModel):
    """The whole preparation; `shards` is filled when it is complete."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    complete: bool = False
    settings: PrepareSettings
    sources: tuple[SourceFingerprint, ...]
    rdkit: str
    fingerprint_radius: int = RADIUS
    fingerprint_bits: int = BITS
    block_rows: int = BLOCK_ROWS
    split_rule: str = SPLIT_RULE
    shards: tuple[ShardRecord, ...] = ()

    @classmethod
    def of(cls, sources: Sequence[Source], settings: PrepareSettings) -> Manifest:
        """The manifest of a preparation that is about to start."""
        from rdkit import rdBase

        return cls(
            settings=settings,
            sources=tuple(SourceFingerprint.of(source) for source in sources),
            rdkit=rdBase.rdkitVersion,
        )


def read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ManifestError(f"{folder} holds no prepared molecules: {path} does not exist") from error
    except (ValidationError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path} is damaged or of another version: {error}") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest at once or not at all."""
    write_text(folder / MANIFEST, manifest.model_dump_json(indent=1) + "\n")


def refuse_difference(folder: Path, before: Manifest, now: Manifest) -> None:
    """Refuse, by name, whatever would make the rest of a folder another preparation's."""
    again = "Give the same command again, or another --out."
    if len(before.sources) != len(now.sources):
        raise ManifestError(
            f"{folder} was started from {len(before.sources)} sources, not {len(now.sources)}. {again}"
        )
    for old, new in zip(before.sources, now.sources, strict=True):
        if (old.bytes, old.sha256_of_ends) != (new.bytes, new.sha256_of_ends):
            raise ManifestError(
                f"{new.path} is not the source that {folder} was started from: {old.path} had {old.bytes:,} bytes "
                f"and the hash {old.sha256_of_ends[:12]}, this has {new.bytes:,} and {new.sha256_of_ends[:12]}. "
                f"{again}"
            )
        for field in ("kind", "smiles_column", "id_column"):
            if getattr(old, field) != getattr(new, field):
                raise ManifestError(
                    f"{new.path}: {field} was {getattr(old, field)} when {folder} was started, "
                    f"now it is {getattr(new, field)}. {again}"
                )
    for field in PrepareSettings.model_fields:
        was, is_now = getattr(before.settings, field), getattr(now.settings, field)
        if was != is_now:
            raise ManifestError(f"{field} was {was} when {folder} was started, now it is {is_now}. {again}")
    for field in ("rdkit", "fingerprint_radius", "fingerprint_bits", "block_rows", "split_rule"):
        was, is_now = getattr(before, field), getattr(now, field)
        if was != is_now:
            raise ManifestError(f"{folder} was started with {field} {was}, this is {is_now}. {again}")


def lock_preparation(folder: Path) -> AbstractContextManager[None]:
    """A preparation's folder for this process alone."""
    return lock_folder(folder, lambda holder: ManifestError(f"{folder} is being prepared by {holder}"))


def open_folder(folder: Path, now: Manifest) -> Manifest:
    """Start a folder with this manifest, or go on with the one there if it is the same preparation."""
    if (folder / MANIFEST).exists():
        before = read_manifest(folder)
        refuse_difference(folder, before, now)
        _clean(folder)
        return before
    ours = {LOCK, HOLDER, draft_of(folder / MANIFEST).name, SHARDS}
    if any(path.name not in ours for path in folder.iterdir()) or any((folder / SHARDS).glob("*.parquet")):
        raise ManifestError(f"{folder} is not empty and has no {MANIFEST}: choose another --out")
    (folder / SHARDS).mkdir(exist_ok=True)
    _clean(folder)
    write_manifest(folder, now)
    return now


def prefixes(folder: Path, sources: int) -> list[list[ShardRecord]]:
    """For each source, the shards there without a gap from its start; what comes after a gap is made again."""
    records: list[list[ShardRecord]] = [[] for _ in range(sources)]
    for record in read_records(folder / SHARDS):
        if record.source >= sources:
            raise ManifestError(f"{folder / SHARDS / record.name} is of no source of this preparation")
        own = records[record.source]
        if record.number == len(own) and not (own and own[-1].last):
            own.append(record)
        else:
            (folder / SHARDS / record.name).unlink()
    return records


def _clean(folder: Path) -> None:
    """Take away what a killed process was about to write."""
    for part in (folder, folder / SHARDS, folder / PARTS):
        for draft in part.glob("*" + DRAFT) if part.is_dir() else ():
            draft.unlink()
