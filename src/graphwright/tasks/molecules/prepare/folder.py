"""The folder of a preparation: fresh, to be continued, or not to be touched."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from graphwright.files import DRAFT, LOCK, draft_of, lock_folder
from graphwright.tasks.molecules.prepare.listing import PARTS
from graphwright.tasks.molecules.prepare.manifest import (
    MANIFEST,
    SHARDS,
    Manifest,
    ManifestError,
    read_manifest,
    refuse_difference,
    write_manifest,
)
from graphwright.tasks.molecules.prepare.shard_file import ShardRecord, read_records


def locked(folder: Path) -> AbstractContextManager[None]:
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
    for place in (folder, folder / SHARDS, folder / PARTS):
        for draft in place.glob("*" + DRAFT) if place.is_dir() else ():
            draft.unlink()
