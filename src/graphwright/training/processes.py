"""The processes of a run: how many share a batch, how many threads each has, and how they are interrupted."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

import torch

from graphwright.models.arithmetic import half_is_fast
from graphwright.settings import CORES, Accelerator, Precision, Run

_PR_SET_PDEATHSIG = 1
LEAST_BATCH = 16
"""Samples of a step that are worth a process of their own."""


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_cores(run: Run, available: int) -> Run:
    """The run with `train.devices cores` in numbers: a process for each core, or fewer, so that each has a fair
    share of the batch; what cores are left are threads.

    Two processes of one thread each are faster than one of two threads: small products do not fill two threads.
    Where there is an accelerator and nobody says cpu, it is taken.
    """
    train = run.train
    if train.devices != CORES:
        return run
    if device_of(run).type == "cuda":
        return _with(run, devices="auto")
    # torchrun has started the processes already.
    asked = int(os.environ.get("LOCAL_WORLD_SIZE", min(available, max(1, train.batch_size // LEAST_BATCH))))
    count = next(
        count for count in range(asked, 0, -1) if train.batch_size % (count * train.nodes) == 0 or count == 1
    )
    threads = train.threads or max(1, available // count)
    return _with(run, accelerator=Accelerator.CPU, devices=str(count), threads=threads)


def in_this_process(run: Run) -> Run:
    """The run as a program that calls `train` has it: for `train.devices cores` one process, its threads, or the
    accelerator; for `train.precision auto` the faster one."""
    if run.train.devices == CORES:
        run = _with(run, accelerator=Accelerator(device_of(run).type), devices="1")
    if run.train.precision is Precision.AUTO:
        fast = half_is_fast(device_of(run))
        run = _with(run, precision=Precision.BFLOAT16 if fast else Precision.FLOAT32)
    return run


def device_of(run: Run) -> torch.device:
    """The kind of device that a run works on: `auto` is CUDA where there is any, and the processor elsewhere.

    Apple's MPS has no double precision, in which losses are added up and Laplacians solved.
    """
    asked = run.train.accelerator is not Accelerator.CPU
    return torch.device("cuda" if asked and torch.cuda.is_available() else "cpu")


def products_of(run: Run) -> torch.dtype:
    """The precision in which a run, as this process has it, multiplies."""
    return torch.bfloat16 if run.train.precision is Precision.BFLOAT16 else torch.float32


def _with(run: Run, **changes: object) -> Run:
    return run.model_copy(update={"train": run.train.model_copy(update=changes)})


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many torch threads inside; 0: as many as before."""
    before = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While active, the first Ctrl-C (or SIGTERM) is only noted, in `pending`; a second one interrupts at once.

    Signals reach Python in the main thread alone; in any other this does nothing.
    """

    def __init__(self) -> None:
        self.pending = False
        self._before: dict[signal.Signals, Any] = {}
        self._deaf = False

    def ignore_termination(self) -> None:
        """For a process that is about to end by itself: torchrun terminates those that another has left alone,
        and they are to have their last word."""
        self._deaf = True

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            if self._deaf and number is signal.SIGTERM:
                signal.signal(number, signal.SIG_IGN)
                continue
            # None: a handler that was not set from Python, which cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self._deaf and number == signal.SIGTERM:
            return
        if self.pending:
            raise KeyboardInterrupt
        self.pending = True


def leave_interrupts_to_parent(worker: int) -> None:  # noqa: ARG001
    """Start of a data worker: Ctrl-C reaches it too, but the parent decides, and ends workers by SIGTERM.

    Where the parent is killed, its workers end with it: until then they hold the lock of its folder, too.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
