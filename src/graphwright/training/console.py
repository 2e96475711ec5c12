"""What a person sees while a run goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn
from rich.progress import TimeRemainingColumn as Remaining
from rich.table import Column

SHOWN = ("loss", "presence", "node_labels", "edge_labels", "adjacency", "marginals", "gap")


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
        terms = "  ".join(f"{name} {record[name]:.4f}" for name in SHOWN if record.get(name))
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

    def validated(self, record: dict[str, Any]) -> None:
        self.say(
            f"step {record['step']}: {record['isomorphic']:.1f} % isomorphic, edit {record['edit']:.2f}, "
            f"size {record['size_accuracy']:.1f} %"
        )
