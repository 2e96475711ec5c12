"""Training: the loop and its state."""

from graphwright.training.assembly import TrainingModel, build, build_matcher
from graphwright.training.loop import DivergenceError, LostProcessError, RunBusyError, Trained, train

__all__ = [
    "DivergenceError",
    "LostProcessError",
    "RunBusyError",
    "Trained",
    "TrainingModel",
    "build",
    "build_matcher",
    "train",
]
