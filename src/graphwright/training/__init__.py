"""Training: the loop and its state."""

from graphwright.training.assembly import TrainingModel, build, build_matcher
from graphwright.training.loop import DivergenceError, Trained, train

__all__ = ["DivergenceError", "Trained", "TrainingModel", "build", "build_matcher", "train"]
