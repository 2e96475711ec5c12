"""Interrupts that wait for the end of a step."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While active, the first Ctrl-C (or SIGTERM) is only noted, in `pending`; a second one interrupts at once.

    Signals reach Python in the main thread alone; in any other this does nothing.
    """

    def __init__(self) -> None:
        self.pending = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            # None: a handler that was not set from Python, which cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.pending:
            raise KeyboardInterrupt
        self.pending = True


def leave_interrupts_to_parent(worker: int) -> None:  # noqa: ARG001
    """Start of a data worker: Ctrl-C reaches it too, but the parent decides, and ends workers by SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
