"""The fixed list of models that a server answers for: the shipped ones, and the runs of one folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from graphwright.files import SHIPPED_MODELS

Sources = Mapping[str, tuple[str, str]]
"""By name: where the model is, and whether it is `shipped` or a `run`."""


def catalogue(runs: Path | None = None) -> Sources:
    """Shipped models, then the runs in a folder; of one name the shipped model keeps it."""
    sources = {path.parent.name: (str(path), "shipped") for path in sorted(SHIPPED_MODELS.glob("*/model.json"))}
    if runs is None:
        return sources
    if not runs.is_dir():
        raise ValueError(f"{runs} is not a folder of runs")
    folders = (path for path in sorted(runs.resolve().iterdir()) if _is_run(path))
    return sources | {_free(path.name, sources): (str(path), "run") for path in folders}


def _is_run(folder: Path) -> bool:
    return any((folder / "checkpoints" / f"{name}.json").is_file() for name in ("best", "last"))


def _free(name: str, taken: Sources) -> str:
    return f"{name} (run)" if name in taken else name
