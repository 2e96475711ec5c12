"""Which data a path stood for: a file keeps its name when its contents change."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from graphwright.files import sha256_of
from graphwright.settings import TaskSettings
from graphwright.tasks.molecules.prepare.folder import MANIFEST


def data_sha256(task: TaskSettings) -> str | None:
    """SHA-256 of the data file of a task, or of a prepared folder's manifest; None of generated and shipped data.

    None, too, of a file that is not there: the job itself says so.
    """
    name = getattr(task, "data", None)
    if name is None:
        return None
    path = Path(name)
    if path.is_dir():
        path /= MANIFEST
    if not path.is_file():
        return None
    found = path.stat()
    return _sha256(path.resolve(), found.st_size, found.st_mtime_ns)


@cache
def _sha256(path: Path, size: int, changed: int) -> str:  # noqa: ARG001
    """Read once as long as size and time of change are the same: a key is asked for often, and files are large."""
    return sha256_of(path)
