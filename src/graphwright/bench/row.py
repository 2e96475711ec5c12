"""One line of a benchmark: our time beside a named peer's, measured in the same run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

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
        """The row of DESIGN's contract."""
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
    rows = {name: [_cells(row) for row in found] for name, found in sections.items()}
    for heading in TEXTS:
        result.add_column(heading, overflow="fold")
    for at, heading in enumerate(NUMBERS, start=1):  # cells begin with the peer
        cells = [cells[at] for found in rows.values() for cells in found]
        result.add_column(heading, justify="right", overflow="fold", min_width=max(map(len, cells), default=0))
    if any(row.extras for found in sections.values() for row in found):
        result.add_column("besides", overflow="fold")
    for name, found in sections.items():
        result.add_section()
        for row, cells in zip(found, rows[name], strict=True):
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
