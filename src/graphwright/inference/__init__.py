"""Trained models: loading, predicting, evaluating, handing on."""

from graphwright.inference.decoders import DECODERS, Decoder
from graphwright.inference.evaluate import Evaluated, Evaluation, evaluate_predictor, evaluate_saved
from graphwright.inference.model import PredictedGraph, SavedModel, build_predictor, load_model

__all__ = [
    "DECODERS",
    "Decoder",
    "Evaluated",
    "Evaluation",
    "PredictedGraph",
    "SavedModel",
    "build_predictor",
    "evaluate_predictor",
    "evaluate_saved",
    "load_model",
]
