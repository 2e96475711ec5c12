"""Files: written whole or not at all, told apart by their bytes, locked, and where those of graphwright lie."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

SHIPPED_DATA = Path(__file__).parent / "data"
"""Data sets that come with the package, a Parquet file each."""
SHIPPED_MODELS = Path(__file__).parent / "shipped"
"""Models that come with the package, a folder each."""
DRAFT = ".draft"
"""Ends the name of a file that is being written."""
LOCK = ".lock"
PATIENCE, PAUSE = 0.1, 0.02
"""Seconds to wait for a lock, and between tries: who only looks whether it is held holds it for an instant."""


class NoCacheError(ValueError):
    """There is no folder for what is made once and kept."""


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_folder() -> Path:
    """$GRAPHWRIGHT_CACHE, or graphwright's folder in the user's cache."""
    own, shared = os.environ.get("GRAPHWRIGHT_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if own:
        return Path(own)
    try:
        return Path(shared or Path.home() / ".cache") / "graphwright"
    except RuntimeError as error:  # a container's user may have no home
        raise NoCacheError("no home folder for a cache; $GRAPHWRIGHT_CACHE names another") from error


def shipped_table(name: str) -> Path | None:
    """The file of a data set that comes with the package, or None if none is called so."""
    path = SHIPPED_DATA / f"{name}.parquet"
    return path if path.is_file() else None


def columns_of(path: Path, separator: str = "\t") -> set[str]:
    """What a table calls its columns; none of a file that cannot be read, which its reader tells better."""
    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            return set(pq.read_schema(path).names)
        with path.open("rb") as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            start = (gzip.GzipFile(fileobj=file) if packed else file).read(2**12)
    except (OSError, EOFError, ValueError, zlib.error):
        return set()
    line = (start.decode("utf-8-sig", "replace").splitlines() or [""])[0]
    return {cell.strip().strip('"').lower() for cell in line.split(separator)}


def draft_of(path: Path) -> Path:
    """Where a file is written before it takes its place: hidden, beside it."""
    return path.with_name(f".{path.name}{DRAFT}")


def commit_draft(draft: Path, path: Path) -> None:
    """Let a finished draft take its place in one step: a kill or a power cut leaves the old file or the new."""
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(draft, path)
    # Elsewhere than on POSIX, making the rename last is left to the system.
    if os.name == "posix":
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A draft to write, committed when all went well and taken away when not; one process at a time."""
    draft = draft_of(path)
    try:
        yield draft
        commit_draft(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a file at once or not at all."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: Path, facts: Mapping[str, Any]) -> None:
    """Write a JSON object at once or not at all."""
    write_text(path, json.dumps(facts, indent=2) + "\n")


@contextmanager
def lock_folder(folder: Path, busy: Exception) -> Iterator[None]:
    """The folder for this process alone, or `busy`; the system lets go of it however the process dies."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=PATIENCE, poll_interval=PAUSE)
    except Timeout as error:
        raise busy from error
    try:
        yield
    finally:
        lock.release()


def is_locked(folder: Path) -> bool:
    """Whether a process is at work in a folder; in one that may not be written to, that cannot be told."""
    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK).acquire(timeout=PATIENCE, poll_interval=PAUSE):
            return False
    except Timeout:
        return True
    except PermissionError:
        return False
