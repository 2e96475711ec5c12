"""What a run says of itself: in JSONL and CSV always, TensorBoard if it is installed, and to a person."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from pydantic import TypeAdapter
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn
from rich.progress import TimeRemainingColumn as Remaining
from rich.table import Column

from graphwright.files import write_text, writing
from graphwright.losses import LOSS_TERMS
from graphwright.metrics import METRICS, Metric

PROGRESS = (
    "step", "seconds", "learning_rate", "samples_per_second", "loss", "auxiliary", "recognition", "gradient_norm",
    "plan_entropy", "gap", "marginal_error", "skipped", "samples",
)  # fmt: skip
"""What a log says besides the terms of the loss and the metrics."""
VALIDATION = "isomorphic"
"""What only the records of validations have."""
LEARNT_FIRST = "size_accuracy"
"""Told beside the headlines: it moves while nothing is exactly right yet."""
SPIKES = "spikes.jsonl"
"""Steps whose loss leapt or whose gradient was not finite, with the indices of their samples."""


def columns() -> tuple[str, ...]:
    """The CSV's columns: the same for every record, so that a resumed run appends to the same table."""
    columns: list[str] = [*PROGRESS]
    for what, names in (("loss term", LOSS_TERMS.names()), ("metric", METRICS.names())):
        taken = sorted(set(names) & set(columns))
        if taken:
            raise ValueError(f"the {what} {taken[0]!r} needs another name: a log has a column of this name")
        columns += names
    return tuple(columns)


class _Writer(Protocol):
    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...

    def close(self) -> None: ...


class RunLog:
    """`log.jsonl`, `log.csv`, `spikes.jsonl` and, where tensorboard is installed, its event files.

    A run that starts at `step`, having validated last at `validated`, keeps what was logged up to there: what a
    killed session logged after its last checkpoint will be logged again.
    """

    def __init__(self, folder: Path, step: int, validated: int) -> None:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.jsonl = folder / "log.jsonl"
        self.csv = folder / "log.csv"
        kept = [
            record
            for record in read_log(self.jsonl)
            if record["step"] <= (validated if VALIDATION in record else step)
        ]
        write_text(self.jsonl, "".join(json.dumps(record) + "\n" for record in kept))
        write_text(self.csv, ",".join(columns()) + "\n" + "".join(map(_row, kept)))
        self.spikes = folder / SPIKES
        leaps = read_log(self.spikes)
        if leaps:
            write_text(self.spikes, "".join(json.dumps(one) + "\n" for one in leaps if one["step"] <= step))
        self._board = _tensorboard(folder, step)

    def write(self, record: dict[str, Any]) -> None:
        """Append one record, {"step": ..., name: number, ...}."""
        with writing(self.jsonl), self.jsonl.open("a") as file:
            file.write(json.dumps(record) + "\n")
        with writing(self.csv), self.csv.open("a") as file:
            file.write(_row(record))
        if self._board is not None:
            for name, value in record.items():
                if isinstance(value, int | float) and name != "step":
                    self._board.add_scalar(name, value, record["step"])

    def write_spike(self, record: dict[str, Any]) -> None:
        """Append a step that went wrong."""
        with writing(self.spikes), self.spikes.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def close(self) -> None:
        if self._board is not None:
            self._board.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """The records of a `log.jsonl`, without a last line that a kill cut short."""
    if not path.exists():
        return []
    records = []
    for line in path.read_text().splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return records


def _row(record: dict[str, Any]) -> str:
    line = io.StringIO()
    csv.DictWriter(line, columns(), extrasaction="ignore", lineterminator="\n").writerow(record)
    return line.getvalue()


def _tensorboard(folder: Path, step: int) -> _Writer | None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    # What a killed session wrote after its last checkpoint is hidden.
    writer: _Writer = SummaryWriter(folder / "tensorboard", purge_step=step + 1)
    return writer


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
        return TypeAdapter(cls).validate_python(facts) if facts else cls()

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


class Display:
    """A progress bar with the loss terms, samples per second and the time left; plain lines without a terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    @classmethod
    def silent(cls) -> Display:
        """A display that shows nothing."""
        return cls(Console(quiet=True))

    @contextmanager
    def running(self, fraction: float) -> Iterator[None]:
        """Show the bar for as long as the run goes on."""
        if not self.console.is_terminal:
            yield
            return
        # Of a narrow terminal the terms give way, not the bar, the share or the time left.
        rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        columns = (
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(20, table_column=Column(min_width=20)),
            TaskProgressColumn(show_speed=False, table_column=Column(no_wrap=True, min_width=4)),
            Remaining(table_column=Column(no_wrap=True, min_width=7)),
            TextColumn("{task.fields[terms]}", table_column=rest),
        )
        with Progress(*columns, console=self.console, expand=True) as bar:
            task = bar.add_task("training", total=1.0, terms="")
            bar.update(task, completed=fraction)
            self._bar, self._task = bar, task
            try:
                yield
            finally:
                self._bar = None

    def show(self, record: dict[str, Any], fraction: float) -> None:
        terms = "  ".join(
            f"{name} {record[name]:.4f}" for name in ("loss", *LOSS_TERMS.names(), "gap") if record.get(name)
        )
        text = f"step {record['step']}  {record['samples_per_second']:.0f} samples/s  {terms}"
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=fraction, terms=text)
        else:
            self.console.print(f"{100 * fraction:5.1f} %  {text}", highlight=False)

    def moved(self, fraction: float) -> None:
        """A step, logged or not."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=fraction)

    def say(self, text: str) -> None:
        """A sentence on a line of its own."""
        self.console.print(text, highlight=False)

    def validated(self, record: dict[str, Any], chosen: str) -> None:
        """The headlines of a validation, and the metric that the best model is chosen by."""
        self.say(f"step {record['step']}: {validation_in_words(record, chosen)}")


def told_metrics(chosen: str) -> tuple[Metric, ...]:
    """What a line and a curve of validations show. chosen: what the run's best model is chosen by."""
    return METRICS.headlines(LEARNT_FIRST, chosen)


def validation_in_words(record: Mapping[str, Any], chosen: str) -> str:
    """The figures of a validation that are told first."""
    told = ((metric, record.get(metric.name)) for metric in told_metrics(chosen))
    return ", ".join(metric.in_words(value) for metric, value in told if value is not None)
