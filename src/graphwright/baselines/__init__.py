"""What a model must beat: methods without training on the same samples."""

from graphwright.baselines.barycentre import BarycentreSettings, SizeRule
from graphwright.baselines.figures import nearest_figures
from graphwright.baselines.nearest import NearestSettings
from graphwright.baselines.predict import BASELINES, predict_baseline
from graphwright.baselines.prediction import BaselinePrediction

__all__ = [
    "BASELINES",
    "BarycentreSettings",
    "BaselinePrediction",
    "NearestSettings",
    "SizeRule",
    "nearest_figures",
    "predict_baseline",
]
