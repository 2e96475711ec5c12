"""Files: written whole or not at all, told apart by their bytes, locked, and where those of graphwright lie."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import json
import logging
import os
import platform
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from filelock import FileLock, Timeout

SHIPPED_DATA = Path(__file__).parent / "data"
"""Data sets that come with the package, a Parquet file each."""
SHIPPED_MODELS = Path(__file__).parent / "shipped"
"""Models that come with the package, a folder each."""
DRAFT = ".draft"
"""Ends the name of a file that is being written."""
LOCK = ".lock"
HOLDER = ".holder"
"""Says which process has the lock: the lock's own file may be emptied by who tries it."""
PATIENCE, PAUSE = 0.1, 0.02
"""Seconds to wait for a lock, and between tries: who only looks whether it is held holds it for an instant."""


class NoCacheError(ValueError):
    """There is no folder for what is made once and kept."""


class WriteError(OSError):
    """A file that cannot be written, by name: the disk is full, the folder is read-only or gone."""


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


def cached(path: Path) -> Path:
    """Where a file of the cache is or is to be made: here, or under the system's temporary folder.

    There, and told so, where the cache is read-only; in a folder of this user's alone, for what lies in it is run.
    """
    if path.exists():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.access(path.parent, os.W_OK):
            return path
        reason = "it is read-only"
    except OSError as error:
        reason = error.strerror or str(error)
    own = _temporary_cache()
    logging.getLogger("graphwright").warning(
        "graphwright: cannot write to %s (%s): %s is used; name a lasting folder in $GRAPHWRIGHT_CACHE",
        path.parent,
        reason,
        own,
    )
    return own / path.name


def _temporary_cache() -> Path:
    """The same one in every process of this user, or a new one where another has made it."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"graphwright-cache-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    safe = folder.is_dir() and not folder.is_symlink() and status.st_uid == user and not status.st_mode & 0o022
    return folder if safe or not hasattr(os, "getuid") else Path(tempfile.mkdtemp(prefix="graphwright-cache-"))


def shipped_table(name: str) -> Path | None:
    """The file of a data set that comes with the package, or None if none is called so."""
    path = SHIPPED_DATA / f"{name}.parquet"
    return path if path.is_file() else None


def columns_of(path: Path, separator: str | None = "\t") -> set[str]:
    """What a table calls its columns; none of a file that cannot be read, which its reader tells better.

    separator: what stands between cells; None: that of `separator_of`.
    """
    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            return set(pq.read_schema(path).names)
        with path.open("rb") as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            start = (gzip.GzipFile(fileobj=file) if packed else file).read(2**12)
    except (OSError, EOFError, ValueError, zlib.error):
        return set()
    line = (start.decode(encoding_of(start), "replace").splitlines() or [""])[0]
    return {cell.strip().strip('"').lower() for cell in line.split(separator or separator_of(line))} - {""}


class ParquetError(OSError):
    """A Parquet file that says of itself what cannot be."""


ROWS_PER_BYTE = 1000
"""Rows of a Parquet file, which has equal ones but once: more are nobody's data."""


def check_row_counts(path: Path) -> None:
    """Refuse a Parquet file that claims rows which it has not: memory would be taken for each.

    Of its columns nothing is asked: what is wrong with their description ends the process inside pyarrow.
    """
    import pyarrow.parquet as pq

    facts = pq.read_metadata(path)
    counted = sum(facts.row_group(at).num_rows for at in range(facts.num_row_groups))
    if counted != facts.num_rows:
        raise ParquetError(f"it says {facts.num_rows:,} rows, and its parts say {counted:,}")
    if counted > ROWS_PER_BYTE * path.stat().st_size:
        raise ParquetError(f"it says {counted:,} rows in {path.stat().st_size:,} bytes")


SEPARATORS = ",;\t"
"""Between the cells of a table: semicolons come from spreadsheets in half of Europe."""


def separator_of(header: str) -> str:
    """What stands between the cells of a table with this first line."""
    return max(SEPARATORS, key=header.count)


def encoding_of(start: bytes) -> str:
    """UTF-8, or UTF-16 where a text's first bytes say so, as spreadsheets write it."""
    return "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"


class TightlyPackedError(OSError):
    """A gzip file that unpacks to far more than text does: its reader would fill the memory, or never end."""


MOST_RATIO, LEAST_SUSPECT = 200, 2**24
"""Text unpacks to 5 to 60 times its size, a bomb to 1,000; files of a few megabytes do no harm."""


def unpacked(file: BinaryIO) -> BinaryIO:
    """What a gzip file holds, or the file itself where it is none; a bomb is refused at its beginning."""
    start = file.read(2)
    file.seek(0)
    if start != b"\x1f\x8b":
        return file
    _refuse_bomb(file)
    file.seek(0)
    return cast(BinaryIO, gzip.GzipFile(fileobj=file))


def _refuse_bomb(file: BinaryIO) -> None:
    """Unpack until there is as much as could do harm; what is damaged is told by who reads it."""
    unpacker, read, made = zlib.decompressobj(31), 0, 0
    while made < LEAST_SUSPECT and (block := file.read(2**12)):
        read += len(block)
        try:
            while block:
                made += len(unpacker.decompress(block))
                block = unpacker.unused_data
                if unpacker.eof:
                    unpacker = zlib.decompressobj(31)
        except zlib.error:
            return
    if made >= LEAST_SUSPECT and made > MOST_RATIO * read:
        raise TightlyPackedError(f"its first {read:,} bytes unpack to {made:,}: no file of text does")


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
def writing(path: Path) -> Iterator[None]:
    """Errors of the system inside are of writing this file, and name it: that a disk is full names nothing."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        if error.filename not in (None, str(path), str(draft_of(path)), str(path.parent)):
            raise
        raise WriteError(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A draft to write, committed when all went well and taken away when not; one process at a time."""
    draft = draft_of(path)
    try:
        with writing(path):
            yield draft
            commit_draft(draft, path)
    finally:
        # Where nothing can be written, nothing can be taken away.
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def refuse_overwriting(inputs: Iterable[Path], **outputs: Path | None) -> None:
    """Never write onto what is read: an error names the option and the file."""
    taken = {path.resolve() for path in inputs}
    for option, path in outputs.items():
        if path is not None and path.resolve() in taken:
            raise ValueError(f"--{option} {path} is an input: write to another file")


def write_text(path: Path, text: str) -> None:
    """Write a file at once or not at all."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: Path, facts: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write JSON at once or not at all."""
    write_text(path, json.dumps(facts, indent=2) + "\n")


@contextmanager
def lock_folder(folder: Path, busy: Callable[[str], Exception]) -> Iterator[None]:
    """The folder for this process alone; the system lets go of it however the process dies.

    busy: the error where another has it, which is told who that is.
    """
    with writing(folder / LOCK):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        try:
            lock.acquire(timeout=PATIENCE, poll_interval=PAUSE)
        except Timeout as error:
            raise busy(holder_of(folder)) from error
    holder = folder / HOLDER
    try:
        with writing(holder):
            holder.write_text(f"{os.getpid()} {platform.node()}", encoding="utf-8")
        yield
    finally:
        with suppress(OSError):
            holder.unlink(missing_ok=True)
        lock.release()


def holder_of(folder: Path) -> str:
    """Who has the lock of a folder, in words."""
    try:
        number, _, machine = (folder / HOLDER).read_text(encoding="utf-8").partition(" ")
    except (OSError, UnicodeDecodeError):
        return "another process"
    return f"process {number}" if machine == platform.node() else f"process {number} on {machine}"


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
