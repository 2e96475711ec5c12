"""What happened between two log lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any


@dataclass
class Window:
    """Sums since the last log line. Part of a checkpoint, so that a resumed run logs what it would have logged."""

    sums: dict[str, float] = field(default_factory=dict)
    health: dict[str, float] = field(default_factory=dict)
    """The matcher's last figures."""
    steps: int = 0
    skipped: int = 0
    """Further steps whose gradient was not finite; they are in no mean."""

    def __post_init__(self) -> None:
        self._start = perf_counter()
        self._samples = 0

    @classmethod
    def from_json(cls, facts: Mapping[str, Any] | None) -> Window:
        """The window that `to_json` described; an empty one for None."""
        return cls(**facts) if facts else cls()

    def to_json(self) -> dict[str, Any]:
        """All but the clock."""
        return asdict(self)

    def add(self, values: Mapping[str, float], health: Mapping[str, float], samples: int) -> None:
        """One step: its loss terms, the matcher's health, how many samples it saw."""
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.health |= health
        self.steps += 1
        self._samples += samples

    def skip(self, samples: int) -> None:
        """One step that changed nothing."""
        self.skipped += 1
        self._samples += samples

    def record(self) -> dict[str, float]:
        """Means over the steps, and samples per second of this session."""
        means = {name: value / self.steps for name, value in self.sums.items()}
        rate = self._samples / (perf_counter() - self._start)
        return means | self.health | {"skipped": self.skipped, "samples_per_second": rate}
