"""The three parts of every data set."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
SPLIT_NAMES: dict[str, Split] = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
}
"""What a split may be called in a file."""
StoredSplit = Literal["train", "val", "test"]
STORED_SPLITS: tuple[StoredSplit, ...] = get_args(StoredSplit)
"""What the splits are called in the files of molecules that graphwright writes and ships."""


def check_split(split: str) -> None:
    """Refuse a split that there is not."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")


def check_names(names: Iterable[str | None], column: str, path: Path) -> None:
    """Refuse a column of splits that holds other words: who asks for a split needs all of them understood."""
    unknown = sorted({str(name).strip().lower() for name in names if name is not None} - set(SPLIT_NAMES))
    if unknown:
        raise ValueError(f"{path}: column {column} holds {unknown[0]!r}, expected {', '.join(SPLITS)}")


def split_by_hash(text: str) -> Split:
    """80, 10 and 10 % by a hash: the same for equal texts, on any machine."""
    return {8: SPLITS[1], 9: SPLITS[2]}.get(tenth(text), SPLITS[0])


def tenth(text: str) -> int:
    """A number from 0 to 9 by a hash."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % 10
