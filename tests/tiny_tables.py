"""Small tables of inputs and graphs, shared by tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def path_row(at: int, **changes: Any) -> dict[str, Any]:
    """A path of three to five nodes beside a set of as many points on a line; rows go to splits in turn."""
    size = 3 + at % 3
    rng = np.random.default_rng(at)
    return {
        "id": f"row{at}",
        "points": [[round(float(x), 3), float(step)] for step, x in enumerate(rng.random(size))],
        "nodes": ["end" if step in (0, size - 1) else "inner" for step in range(size)],
        "edges": [[step, step + 1] for step in range(size - 1)],
        "split": "validation" if at % 6 == 4 else "test" if at % 6 == 5 else "train",
    } | changes


def rows(count: int = 60, change: Callable[[int], dict[str, Any]] = lambda _: {}) -> list[dict[str, Any]]:
    """Rows that `change` may alter."""
    return [path_row(at, **change(at)) for at in range(count)]


def write_jsonl(path: Path, given: Sequence[dict[str, Any]]) -> Path:
    """A line of JSON for every row."""
    path.write_text("".join(json.dumps(row) + "\n" for row in given))
    return path
