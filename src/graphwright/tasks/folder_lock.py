"""A folder for one process at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

LOCK = ".lock"
TRIES, PAUSE = 5, 0.02
"""Of taking a lock, and seconds between: who only looks whether a folder is locked holds it for an instant."""


@contextmanager
def lock_folder(folder: Path, busy: Exception) -> Iterator[None]:
    """The folder for this process alone, or `busy`; the system lets go of it however the process dies."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.name != "posix":
        yield
        return
    import fcntl

    with (folder / LOCK).open("w") as file:
        for left in reversed(range(TRIES)):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if not left:
                    raise busy from error
                sleep(PAUSE)
        yield


def is_locked(folder: Path) -> bool:
    """Whether a process is at work in a folder."""
    if os.name != "posix" or not (folder / LOCK).exists():
        return False
    import fcntl

    with (folder / LOCK).open("r") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
