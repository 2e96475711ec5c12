"""graphwright learns to predict whole graphs from anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphwright import graphs, losses, transport

if TYPE_CHECKING:
    from graphwright.inference.model import SavedModel

__version__ = "0.1.0"

__all__ = ["__version__", "graphs", "load", "losses", "transport"]


def load(source: str) -> SavedModel:
    """A trained model: a run's folder, a shipped model's name, or a model's .json file."""
    # Models need far more than the solvers and losses that many come for.
    from graphwright.inference.model import load_model

    return load_model(source)
