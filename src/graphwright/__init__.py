"""graphwright learns to predict whole graphs from anything."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphwright import graphs, losses, transport
    from graphwright.inference import PredictedGraph, SavedModel

__version__ = "0.1.0"

__all__ = ["PredictedGraph", "SavedModel", "__version__", "fit", "graphs", "load", "losses", "transport"]

PACKAGES = ("graphs", "losses", "transport")
CLASSES = ("SavedModel", "PredictedGraph")
"""Imported when first asked for: torch takes seconds, and who only wants the version or help needs none."""


def __getattr__(name: str) -> Any:
    if name in PACKAGES:
        return import_module(f"graphwright.{name}")
    if name in CLASSES:
        return getattr(import_module("graphwright.inference"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load(source: str | PathLike[str]) -> SavedModel:
    """A trained model: a shipped model's name, a run's folder, or a model's .json file."""
    from graphwright.inference.model import load_model

    return load_model(str(source))


def fit(
    source: str | PathLike[str],
    *,
    minutes: float | None = None,
    out: str | PathLike[str] | None = None,
    verbose: bool = False,
    **settings: str | float | None,
) -> SavedModel:
    """Train a model, of a preset's name, a YAML file, or data alone: SMILES, spectra, your own table.

    minutes: how long; without it as the preset says. Settings are called as on the command line: train.batch_size
    is `batch_size`, or `train__batch_size` where several sections have one of that name.
    out: the run's folder, which `graphwright evaluate`, `report` and `train --resume` take; without it only the
    model is kept. verbose: say what was chosen from the data, and how far it is.
    """
    from graphwright.training.fit import fit_model

    return fit_model(source, minutes=minutes, out=out, verbose=verbose, **settings)
