"""What an untrained method answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphwright.baselines.barycentre import BarycentreSettings
from graphwright.baselines.nearest import NearestSettings
from graphwright.graphs import Graph


@dataclass(frozen=True, eq=False)
class BaselinePrediction:
    """Predicted graphs in the order of the samples, and what they cost.

    seconds_per_prediction: wall time over the number of predictions, once the training samples are read.
    preparation_seconds: reading the training samples and, for a kernel, solving with them: once for any number
    of predictions. settings: those used, `references` being how many training samples there were in the end.
    likeness: by what inputs were compared.
    """

    graphs: list[Graph]
    seconds_per_prediction: float
    settings: NearestSettings | BarycentreSettings
    preparation_seconds: float = field(default=0.0, kw_only=True)
    likeness: str = field(kw_only=True)
