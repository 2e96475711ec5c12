"""Logs that every tool reads: JSONL and CSV always, TensorBoard if it is installed."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, Protocol

COLUMNS = (
    "step", "seconds", "learning_rate", "samples_per_second", "loss", "presence", "node_labels", "edge_labels",
    "adjacency", "diffusion", "marginals", "auxiliary", "gradient_norm", "row_entropy", "gap", "solver",
    "validation_loss", "isomorphic", "edit", "aligned_exact", "aligned_edit", "size_accuracy", "node_accuracy",
    "edge_precision", "edge_recall",
)  # fmt: skip
"""The CSV's columns: fixed, so that a resumed run appends to the same table."""


class _Writer(Protocol):
    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...

    def close(self) -> None: ...


class RunLog:
    """`log.jsonl`, `log.csv` and, where tensorboard is installed, its event files, all in the run's folder."""

    def __init__(self, folder: Path, first_step: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.jsonl = folder / "log.jsonl"
        self.csv = folder / "log.csv"
        self._forget_after(first_step)
        self._board = _tensorboard(folder)

    def write(self, record: dict[str, Any]) -> None:
        """Append one record, {"step": ..., name: number, ...}."""
        with self.jsonl.open("a") as file:
            file.write(json.dumps(record) + "\n")
        fresh = not self.csv.exists()
        with self.csv.open("a", newline="") as file:
            table = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
            if fresh:
                table.writeheader()
            table.writerow(record)
        if self._board is not None:
            for name, value in record.items():
                if isinstance(value, int | float) and name != "step":
                    self._board.add_scalar(name, value, record["step"])

    def close(self) -> None:
        """Flush what buffers."""
        if self._board is not None:
            self._board.close()

    def _forget_after(self, step: int) -> None:
        """Drop what a killed session logged beyond its last checkpoint: those steps will be taken again."""
        records = read_log(self.jsonl)
        for path in (self.jsonl, self.csv):
            path.unlink(missing_ok=True)
        self._board = None
        for record in records:
            if record["step"] <= step:
                self.write(record)


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


def _tensorboard(folder: Path) -> _Writer | None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    writer: _Writer = SummaryWriter(folder / "tensorboard")  # type: ignore[no-untyped-call]
    return writer
