"""Settings of a run."""

from graphwright.settings.schema import (
    ColoringTask,
    CostKind,
    EncoderKind,
    Loss,
    Matching,
    MatchingKind,
    Model,
    Precision,
    Run,
    Train,
)

__all__ = [
    "ColoringTask",
    "CostKind",
    "EncoderKind",
    "Loss",
    "Matching",
    "MatchingKind",
    "Model",
    "Precision",
    "Run",
    "Train",
]
