"""Training: the loop, its state, its evaluation."""

from graphwright.training.assembly import TrainingModel, build, build_matcher, build_predictor
from graphwright.training.evaluation import Evaluation, evaluate_predictor
from graphwright.training.loop import DivergenceError, Trained, train

__all__ = [
    "DivergenceError",
    "Evaluation",
    "Trained",
    "TrainingModel",
    "build",
    "build_matcher",
    "build_predictor",
    "evaluate_predictor",
    "train",
]
