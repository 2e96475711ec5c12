"""The folder of a preparation: fresh, to be continued, or not to be touched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
from graphwright.tasks.molecules.prepare.shard_file import DRAFT, ShardRecord, read_records

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The folder for this process alone; the system lets go of it when the process dies, however it does."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.name != "posix":
        yield
        return
    import fcntl

    with (folder / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ManifestError(f"{folder} is being prepared by another process") from error
        yield


def open_folder(folder: Path, now: Manifest) -> Manifest:
    """Start a folder with this manifest, or go on with the one there if it is the same preparation."""
    if (folder / MANIFEST).exists():
        before = read_manifest(folder)
        refuse_difference(folder, before, now)
        _clean(folder)
        return before
    strangers = sorted(path.name for path in folder.iterdir() if path.name not in (LOCK, MANIFEST + DRAFT, SHARDS))
    if strangers or any((folder / SHARDS).glob("*.parquet")):
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
