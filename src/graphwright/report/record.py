"""How a figure came about: settings, seed, commit, hardware, data."""

from __future__ import annotations

import platform
from typing import Any

import torch

from graphwright import __version__
from graphwright.tasks import Samples
from graphwright.training.provenance import provenance
from graphwright.training.saved_model import SavedModel


def run_record(model: SavedModel, data: Samples) -> dict[str, Any]:
    """Everything needed to repeat a run, and to know whether its data were the same.

    trained: commit and hardware of every sitting of the training, and the step that it began with; those beside it
    are of the code that made the record.
    """
    return {
        "settings": model.run.model_dump(mode="json"),
        "progress": model.facts.get("progress"),
        "trained": model.facts.get("sittings"),
        "data_sha256": data.digest(),
        **provenance(),
        "graphwright": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
