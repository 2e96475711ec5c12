"""The three parts of every data set."""

from __future__ import annotations

from typing import Literal, get_args

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


def check_split(split: str) -> None:
    """Refuse a split that there is not."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
