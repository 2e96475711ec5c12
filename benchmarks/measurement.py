"""What a benchmark measures: our time and peak memory beside a named peer's, in the same run.

Times are of the wall, by rounds that a shared machine disturbs least. Memory is told on Linux only: the peak of
the resident set comes from /proc, where it can be reset (`ru_maxrss` cannot, and starts at the peak of the process
that started this one).
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

from rich.table import Table


@dataclass(frozen=True)
class Row:
    """Milliseconds per sample, ours and the peer's, and the objective each reached (None: not a solver)."""

    name: str
    n: int
    batch: int
    threads: int
    ours_ms: float
    peer: str
    peer_ms: float
    ours_objective: float | None = None
    peer_objective: float | None = None
    extras: Mapping[str, float] = field(default_factory=dict)
    """What a benchmark measures besides, by name."""

    @property
    def ratio(self) -> float:
        """How many times faster than the peer."""
        return self.peer_ms / self.ours_ms

    def to_json(self) -> dict[str, Any]:
        """As `--json` writes it."""
        facts = asdict(self)
        extras = facts.pop("extras")
        return {**facts, "ratio": self.ratio, **extras}


@dataclass(frozen=True)
class Remark:
    """One line for the reader: what could not be measured here, and what would make it possible."""

    text: str


Measured = Iterator[Row | Remark]
"""What a benchmark yields, as it goes on."""


TEXTS = ("what", "peer")
NUMBERS = ("n", "batch", "threads", "ours ms", "peer ms", "ratio", "ours obj.", "peer obj.")


def table(sections: Mapping[str, Sequence[Row]]) -> Table:
    """The rows of one or more benchmarks, by the benchmark's name, as one table for the terminal.

    Where it is narrow words go to the next line; a figure is never cut.
    """
    result = Table(title=f"bench {', '.join(sections)}", title_justify="left")
    rows = {name: [_cells(row) for row in section] for name, section in sections.items()}
    for heading in TEXTS:
        result.add_column(heading, overflow="fold")
    for at, heading in enumerate(NUMBERS, start=1):  # cells begin with the peer
        cells = [cells[at] for section in rows.values() for cells in section]
        result.add_column(heading, justify="right", overflow="fold", min_width=max(map(len, cells), default=0))
    if any(row.extras for section in sections.values() for row in section):
        result.add_column("besides", overflow="fold")
    for name, section in sections.items():
        result.add_section()
        for row, cells in zip(section, rows[name], strict=True):
            title = row.name if len(sections) == 1 else f"{name}: {row.name}"
            result.add_row(title, *cells)
    return result


def _cells(row: Row) -> list[str]:
    times = (f"{row.ours_ms:.4f}", f"{row.peer_ms:.4f}", _ratio(row.ratio))
    objectives = (_number(row.ours_objective), _number(row.peer_objective))
    cells = [row.peer, str(row.n), str(row.batch), str(row.threads), *times, *objectives]
    besides = ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in row.extras.items())
    return [*cells, besides] if besides else cells


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5f}"


def _ratio(value: float) -> str:
    """Two decimals where they say which side is faster."""
    return f"{value:.2f}x" if value < 2 else f"{value:.1f}x"


Result = TypeVar("Result")

LEAST_SECONDS = 0.02
"""A round shorter than this is repeated until it is not: the clock and the scheduler would be most of it."""


def median_milliseconds(call: Callable[[], object], repeats: int) -> float:
    """Median of `repeats` rounds after one call to warm up."""
    return interleaved_milliseconds([call], repeats)[0]


def interleaved_milliseconds(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The median of every call, round by round in turn, so that a slow minute of the machine slows them all."""
    for call in calls:
        call()
    times = [[seconds(call)] for call in calls]
    counts = [max(1, round(LEAST_SECONDS / max(first, 1e-9))) for (first,) in times]
    for own, count in zip(times, counts, strict=True):
        if count > 1:  # too short to count as a round
            own.clear()
    for _ in range(repeats):
        for call, count, own in zip(calls, counts, times, strict=True):
            if len(own) < repeats:
                own.append(seconds(call, count) / count)
    return [1000 * median(own) for own in times]


def seconds(call: Callable[[], object], count: int = 1) -> float:
    """What `count` calls in a row take."""
    start = perf_counter()
    for _ in range(count):
        call()
    return perf_counter() - start


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    """What one call returns, and the seconds that it takes."""
    start = perf_counter()
    result = call()
    return result, perf_counter() - start


STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")
MEBIBYTE = 2**20


def can_measure() -> bool:
    """Whether this system can tell the peak of a process."""
    return STATUS.exists() and RESET.exists()


def peak_mebibytes(call: Callable[[], object]) -> float:
    """By how much the resident set of this process rises at most while `call` runs."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # memory that was freed but kept would be used again unseen
        trim(0)
    RESET.write_text("5")  # the peak becomes the present size
    before = _status("VmHWM")
    call()
    return (_status("VmHWM") - before) / MEBIBYTE


def peaks(ours: Callable[[], object], peer: Callable[[], object]) -> dict[str, float]:
    """What our call and the peer's need at most in this process; nothing where the system cannot tell."""
    if not can_measure():
        return {}
    return {"ours_peak_mib": peak_mebibytes(ours), "peer_peak_mib": peak_mebibytes(peer)}


def _status(name: str) -> int:
    value = _memory(STATUS, name)
    if value is None:
        raise RuntimeError(f"{STATUS} does not tell {name}")
    return value


def peak_so_far(process: int) -> int | None:
    """The largest resident set, in bytes, that another process has had; None of one that has ended."""
    return _memory(Path(f"/proc/{process}/status"), "VmHWM")


def _memory(status: Path, name: str) -> int | None:
    line = re.search(rf"^{name}:\s+(\d+) kB", status.read_text(), re.MULTILINE)
    return None if line is None else 1024 * int(line[1])
