"""How a figure came about: settings, seed, commit, hardware, data."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from graphwright import __version__
from graphwright.inference.model import SavedModel
from graphwright.tasks import Samples


def provenance() -> dict[str, Any]:
    """Commit and hardware, for a record."""
    return {"commit": commit(), "hardware": hardware()}


def commit() -> str | None:
    """The commit that the code stands at, with "+" if it was changed since; None outside a checkout."""
    here = Path(__file__).parent
    try:
        name = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--", ":/src"], cwd=here, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return name + ("+" if changed.strip() else "")


def hardware() -> dict[str, Any]:
    """Processor, cores, threads used, accelerator."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def sessions_of(facts: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Commit and hardware of every session of a training, from a checkpoint's facts; older ones say sittings."""
    sessions: list[dict[str, Any]] | None = facts.get("sessions", facts.get("sittings"))
    return sessions


def run_record(model: SavedModel, data: Samples) -> dict[str, Any]:
    """Everything needed to repeat a run, and to know whether its data were the same.

    trained: commit and hardware of every session of the training, and the step that it began with; those beside it
    are of the code that made the record.
    """
    return {
        "settings": model.run.model_dump(mode="json"),
        "progress": model.facts.get("progress"),
        "trained": sessions_of(model.facts),
        "data_sha256": data.digest(),
        **provenance(),
        "graphwright": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
