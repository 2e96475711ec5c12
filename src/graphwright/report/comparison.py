"""Simple methods beside a model, on the same samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from graphwright.metrics import bootstrap_interval, evaluate_graphs
from graphwright.report.evaluation import Evaluated
from graphwright.tasks import Compared


def baseline_figures(result: Evaluated) -> dict[str, dict[str, Any]]:
    """The figures of every simple method that the task knows, by name.

    model_better_by: by how many per cent of the molecules the model is exact more often, and the 95 % interval
    by resampling formulas: of the difference, since both err on the same hard molecules.
    """
    task, evaluation, membership = result.model.task, result.evaluation, result.membership
    if not isinstance(task, Compared) or membership is None:
        raise ValueError(f"there are no simple methods to compare with for {task.name}")
    facts = {}
    for each in task.baselines(result.data, evaluation.indices):
        report = replace(evaluate_graphs(each.graphs, evaluation.targets), groups=membership.groups)
        extras = task.extras(each.graphs, evaluation.targets)
        figures = replace(result, evaluation=replace(evaluation, report=report), extras=extras).figures()
        exact = evaluation.report.isomorphic.astype(np.float64) - report.isomorphic
        means, groups = membership.by_molecule(exact)
        interval = bootstrap_interval(means, groups)
        better = [float(means.mean()), interval.low, interval.high]
        facts[each.name] = figures | {"model_better_by": [100 * value for value in better]}
    return facts
