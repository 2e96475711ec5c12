"""What HiGHS prints although it is told not to, kept out of the output."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

STDOUT = 1
NOISE = b"HighsMipSolverData::"
"""Begins lines that HiGHS prints by `printf`, whatever its options say."""

_lock = threading.Lock()


@contextmanager
def without_solver_noise() -> Iterator[None]:
    """Around a call of the solver: what goes to file descriptor 1 meanwhile is passed on without HiGHS's lines.

    The descriptor is the process's: others that print (a progress bar's thread) are late, but lose nothing; and
    one thread at a time may solve, or two would put each other's file in its place for good.
    """
    with _lock, ExitStack() as opened:
        try:
            kept = os.dup(STDOUT)
            opened.callback(os.close, kept)
            caught = opened.enter_context(tempfile.TemporaryFile())
        except OSError:  # nobody listens, or there is no place for it
            yield
            return
        _flush()
        os.dup2(caught.fileno(), STDOUT)
        try:
            yield
        finally:
            _flush()
            os.dup2(kept, STDOUT)
            _pass_on(caught)


def _pass_on(caught: IO[bytes]) -> None:
    caught.seek(0)
    for line in caught:
        if not line.startswith(NOISE):
            os.write(STDOUT, line)


def _flush() -> None:
    """Empty the buffers of Python and of C: what HiGHS prints into a pipe stays in the latter for long."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()
    ctypes.CDLL(None if os.name == "posix" else "ucrtbase").fflush(None)
