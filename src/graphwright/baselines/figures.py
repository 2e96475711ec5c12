"""A baseline beside a model, on the samples of the model's evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from graphwright.baselines.nearest import NearestSettings
from graphwright.baselines.predict import NEAREST, predict_samples
from graphwright.inference.evaluate import Evaluated
from graphwright.metrics import evaluate_graphs


def _unseen(count: int) -> None:
    """Progress that nobody watches."""


def nearest_figures(result: Evaluated, advance: Callable[[int], None] = _unseen) -> dict[str, Any]:
    """The nearest training samples in place of a model's predictions, on the same samples; all figures.

    Generated training samples are searched in part, those of files all. `method` says how.
    """
    task, evaluation = result.model.task, result.evaluation
    settings = NearestSettings() if task.generated else NearestSettings(references=None)
    answered = predict_samples(NEAREST, task, result.data, evaluation.indices, settings=settings, advance=advance)
    report = replace(evaluate_graphs(answered.graphs, evaluation.targets), groups=evaluation.report.groups)
    extras = task.extras(answered.graphs, evaluation.targets)
    figures = replace(result, evaluation=replace(evaluation, report=report), extras=extras).figures()
    method = {"name": NEAREST, "likeness": answered.likeness} | asdict(answered.settings)
    return figures | {"method": method, "seconds_per_prediction": answered.seconds_per_prediction}
