"""A command as a process: what its exit code says, how it keeps memory, and a bar where it takes its time."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

DONE, SOME_FAILED, USAGE, INTERRUPTED, INTERNAL = 0, 1, 2, 3, 4
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LIMIT = 2**31 - 1
PATIENCE = 2.0
"""Seconds that a person waits without being told how far it is."""


def keep_freed_memory() -> None:
    """Stop glibc from returning every large tensor to the kernel: faulting its pages in again costs more.

    Loops that allocate a few megabytes per operation run up to three times faster. A no-op elsewhere.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LIMIT)
        mallopt(_M_TRIM_THRESHOLD, _LIMIT)


def is_first_process() -> bool:
    """Whether to speak: of the processes that torchrun, SLURM or Fabric started, one does."""
    names = ("RANK", "LOCAL_RANK", "SLURM_PROCID")
    return next((os.environ[name] for name in names if name in os.environ), "0") == "0"


class _PatientProgress(Progress):
    """A progress bar that stays away from what is done soon."""

    def __init__(self, *columns: TextColumn | BarColumn | MofNCompleteColumn | TimeElapsedColumn) -> None:
        self._begun = perf_counter()
        console = Console(stderr=True)
        super().__init__(*columns, console=console, transient=True, disable=not console.is_terminal)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Nothing in the first seconds."""
        return super().get_renderables() if perf_counter() - self._begun > PATIENCE else ()


@contextmanager
def patient_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on the error stream, told how much is done, where something takes longer than `PATIENCE`."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with _PatientProgress(*columns) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.advance(task, count)
