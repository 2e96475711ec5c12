"""What commands share: exit codes, memory, a bar where it takes time, options, settings among the words."""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from inspect import getdoc
from time import perf_counter
from typing import TYPE_CHECKING

# Everything else is imported where it is wanted: an interrupt in the first moments should meet few imports.
if TYPE_CHECKING:
    from graphwright.settings import Override

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


def process_rank() -> int:
    """Which of the processes that torchrun, SLURM or Fabric started this is."""
    names = ("RANK", "LOCAL_RANK", "SLURM_PROCID")
    return int(next((os.environ[name] for name in names if name in os.environ), "0"))


def is_first_process() -> bool:
    """Whether to speak: of several processes one does."""
    return process_rank() == 0


@contextmanager
def patient_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on the error stream, told how much is done, where something takes longer than `PATIENCE`."""
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    begun, console = perf_counter(), Console(stderr=True)

    class PatientProgress(Progress):
        """A progress bar that stays away from what is done soon."""

        def get_renderables(self) -> Iterable[RenderableType]:
            return super().get_renderables() if perf_counter() - begun > PATIENCE else ()

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with PatientProgress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda count: progress.advance(task, count)


HANDED_ON = (
    "what the model was handed on with, or fingerprint where answers can be checked, known where the model "
    "recognises graphs as wholes, valid for other molecules, and plain for all else"
)
"""What happens where nobody chooses a decoder."""


def add_decode_option(parser: argparse.ArgumentParser, default: str) -> None:
    """`--decode`; `default` says in words what happens without it."""
    from graphwright.inference.decoders import DECODERS

    ways = "; ".join(f"{name}, {getdoc(DECODERS[name])}" for name in DECODERS)
    parser.add_argument(
        "--decode",
        choices=DECODERS.names(),
        help=f"how logits become graphs: {ways}. Default: {default}",
    )


SHORT = {"--minutes": "train.minutes"}
"""The setting that everybody gives, by a short name."""


def take_overrides(words: Sequence[str], own: Collection[str]) -> tuple[list[str], list[Override]]:
    """The words without the settings, and the settings; options named in `own` stay where they are."""
    from graphwright.settings import Override, SettingsError

    rest: list[str] = []
    overrides: list[Override] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if not name.startswith("--") or name == "--" or name in own:
            rest.append(word)
            continue
        _refuse_misspelt(name, own)
        key = SHORT.get(name, name.removeprefix("--"))
        option = Override(key, None).option  # an unknown name is the error, whether or not a value follows
        if not equals:
            if not waiting or waiting[0].startswith("--"):
                raise SettingsError(f"{name} needs a value, {option.allowed}")
            value = waiting.pop(0)
        overrides.append(Override(key, value))
    return rest, overrides


def _refuse_misspelt(name: str, own: Collection[str]) -> None:
    from graphwright.settings import SettingsError

    near = get_close_matches(name, own, 1, cutoff=0.8)
    if near and "." not in name:
        raise SettingsError(f"{name}: there is no such option; did you mean {near[0]}?")
