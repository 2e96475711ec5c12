"""The folder of a preparation and its manifest: fresh, to be continued with the same, or not to be touched."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from graphwright.files import DRAFT, LOCK, draft_of, lock_folder, write_text
from graphwright.tasks.molecules.fingerprint import BITS, RADIUS
from graphwright.tasks.molecules.prepare.batch import BLOCK_ROWS, PrepareSettings
from graphwright.tasks.molecules.prepare.rejection import PARTS
from graphwright.tasks.molecules.prepare.shard_file import ShardRecord, read_records
from graphwright.tasks.molecules.prepare.sources import Source, SourceKind
from graphwright.tasks.molecules.prepare.standard import SPLIT_RULE

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
    return lock_folder(folder, ManifestError(f"{folder} is being prepared by another process"))


def open_folder(folder: Path, now: Manifest) -> Manifest:
    """Start a folder with this manifest, or go on with the one there if it is the same preparation."""
    if (folder / MANIFEST).exists():
        before = read_manifest(folder)
        refuse_difference(folder, before, now)
        _clean(folder)
        return before
    ours = {LOCK, draft_of(folder / MANIFEST).name, SHARDS}
    if any(path.name not in ours for path in folder.iterdir()) or any((folder / SHARDS).glob("*.parquet")):
        raise ManifestError(f"{folder} is not empty and has no {MANIFEST}: choose another --out")
    (folder / SHARDS).mkdir(exist_ok=True)
    _clean(folder)
    write_manifest(folder, now)
    return now


def prefixes(folder: Path, sources: int) -> list[list[ShardRecord]]:
    """For each source, the shards there without a gap from its start; what comes after a gap is made again."""
    found: list[list[ShardRecord]] = [[] for _ in range(sources)]
    for record in read_records(folder / SHARDS):
        if record.source >= sources:
            raise ManifestError(f"{folder / SHARDS / record.name} is of no source of this preparation")
        own = found[record.source]
        if record.number == len(own) and not (own and own[-1].last):
            own.append(record)
        else:
            (folder / SHARDS / record.name).unlink()
    return found


def _clean(folder: Path) -> None:
    """Take away what a killed process was about to write."""
    for part in (folder, folder / SHARDS, folder / PARTS):
        for draft in part.glob("*" + DRAFT) if part.is_dir() else ():
            draft.unlink()
