"""Budgets and the learning rate over them."""

import math
from itertools import pairwise

import pytest

from graphwright.settings import Train
from graphwright.training.schedule import Budget, learning_rate

RATES = {"learning_rate": 1.0, "minimum_learning_rate": 0.1}


def rate(progress: float, **options) -> float:
    return learning_rate(Train(steps=1, **RATES | {"warmup": 0.2} | options), progress)


def test_the_rate_rises_linearly_during_warm_up():
    assert [rate(p) for p in (0.05, 0.1, 0.15)] == pytest.approx([0.25, 0.5, 0.75])
    assert rate(0.2) == pytest.approx(1.0)


def test_the_first_step_is_not_lost():
    assert rate(0.0) == pytest.approx(0.01)


def test_the_rate_falls_as_a_cosine_to_the_minimum():
    assert rate(0.6) == pytest.approx(0.55)  # half way down
    assert rate(0.4) == pytest.approx(0.1 + 0.9 * (1 + math.cos(math.pi / 4)) / 2)
    assert rate(1.0) == pytest.approx(0.1)


def test_the_rate_never_jumps():
    values = [rate(at / 1000) for at in range(1001)]
    assert max(abs(b - a) for a, b in pairwise(values)) < 0.006
    assert values.index(max(values)) == 200


def test_without_warm_up_the_rate_starts_at_its_largest():
    assert rate(0.0, warmup=0.0) == pytest.approx(1.0)
    assert rate(1.0, warmup=0.0) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"steps": 100}, Budget(100, None)),
        ({"epochs": 3}, Budget(21, None)),
        ({"minutes": 2.0}, Budget(None, 2.0)),
        ({"epochs": 3, "steps": 20}, Budget(20, None)),
        ({"epochs": 2, "steps": 20, "minutes": 1.0}, Budget(14, 1.0)),
    ],
)
def test_a_budget_is_in_steps_minutes_or_both(given, expected):
    assert Budget.of(Train(**given), steps_per_epoch=7) == expected


def test_progress_in_steps():
    budget = Budget(20, None)
    assert [budget.progress(step, 1e9) for step in (0, 5, 20, 25)] == [0.0, 0.25, 1.0, 1.0]


def test_progress_in_minutes():
    budget = Budget(None, 2.0)
    assert [budget.progress(10**9, seconds) for seconds in (0.0, 30.0, 120.0, 130.0)] == [0.0, 0.25, 1.0, 1.0]


def test_the_strictest_budget_counts():
    budget = Budget(10, 1.0)
    assert budget.progress(5, 6.0) == 0.5
    assert budget.progress(1, 45.0) == 0.75
