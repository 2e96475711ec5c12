"""What a model must beat: methods without training on the same samples."""

from graphwright.baselines.barycentre import BarycentreSettings, SizeRule
from graphwright.baselines.predict import (
    BASELINES,
    BaselinePrediction,
    NearestSettings,
    nearest_figures,
    predict_baseline,
)

__all__ = [
    "BASELINES",
    "BarycentreSettings",
    "BaselinePrediction",
    "NearestSettings",
    "SizeRule",
    "nearest_figures",
    "predict_baseline",
]
