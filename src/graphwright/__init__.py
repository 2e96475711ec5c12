"""graphwright learns to predict whole graphs from anything."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphwright import graphs, losses, transport
    from graphwright.inference.model import SavedModel

__version__ = "0.1.0"

__all__ = ["__version__", "graphs", "load", "losses", "transport"]

PACKAGES = ("graphs", "losses", "transport")
"""Imported when first asked for: torch takes seconds, and who only wants the version or help needs none."""


def __getattr__(name: str) -> Any:
    if name in PACKAGES:
        return import_module(f"graphwright.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load(source: str) -> SavedModel:
    """A trained model: a run's folder, a shipped model's name, or a model's .json file."""
    from graphwright.inference.model import load_model

    return load_model(source)
