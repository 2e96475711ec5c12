"""One line of a benchmark: our time beside a named peer's, measured in the same run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def table(title: str, rows: Sequence[Row]) -> Table:
    """The rows as a table for the terminal."""
    result = Table(title=title, title_justify="left")
    for heading in ("what", "peer"):
        result.add_column(heading, no_wrap=True)
    for heading in ("n", "batch", "threads", "ours ms", "peer ms", "ratio", "ours obj.", "peer obj."):
        result.add_column(heading, justify="right", no_wrap=True)
    extras = list(dict.fromkeys(name for row in rows for name in row.extras))
    for name in extras:
        result.add_column(name.replace("_", " "), justify="right", no_wrap=True)
    for row in rows:
        result.add_row(
            row.name,
            row.peer,
            str(row.n),
            str(row.batch),
            str(row.threads),
            f"{row.ours_ms:.4f}",
            f"{row.peer_ms:.4f}",
            f"{row.ratio:.1f}x",
            _number(row.ours_objective),
            _number(row.peer_objective),
            *(f"{row.extras[name]:.3g}" if name in row.extras else "" for name in extras),
        )
    return result


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5f}"
