"""Intervals against what theory says of them."""

import numpy as np
import pytest
from scipy.stats import norm

from graphwright.metrics import Interval, bootstrap_interval, evaluation


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_it_is_the_normal_interval_of_a_share(share: float, level: float) -> None:
    values = np.arange(1000) < 1000 * share
    half = norm.ppf((1 + level) / 2) * np.sqrt(share * (1 - share) / 1000)
    found = bootstrap_interval(values, level=level, resamples=20_000)
    assert found.low == pytest.approx(share - half, abs=0.1 * half)
    assert found.high == pytest.approx(share + half, abs=0.1 * half)


def test_it_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    intervals = [bootstrap_interval(rng.normal(3, 2, 80), resamples=400, seed=run) for run in range(300)]
    covered = np.mean([interval.low <= 3 <= interval.high for interval in intervals])
    assert 0.9 < covered < 0.98


def test_groups_widen_it_as_much_as_they_repeat() -> None:
    rng = np.random.default_rng(2)
    once = rng.random(200)
    values, groups = np.repeat(once, 9), [f"formula {at}" for at in np.repeat(np.arange(200), 9)]
    alone, grouped = bootstrap_interval(values), bootstrap_interval(values, groups)
    assert (grouped.high - grouped.low) / (alone.high - alone.low) == pytest.approx(3, rel=0.1)
    single = bootstrap_interval(once)
    assert (grouped.low, grouped.high) == pytest.approx((single.low, single.high))


def test_groups_of_one_are_no_groups_and_their_names_do_not_matter() -> None:
    values = np.random.default_rng(3).random(50)
    assert bootstrap_interval(values, list(range(50))) == bootstrap_interval(values)
    assert bootstrap_interval(values, [("a", at) for at in range(50)]) == bootstrap_interval(values)


def test_larger_groups_weigh_more() -> None:
    values, groups = [0.0] * 90 + [1.0] * 10, ["large"] * 90 + ["small"] * 10
    # Two draws of two groups give means 0, 0.1, 0.1 and 1; averaging groups would give 0, 0.5, 0.5 and 1.
    assert bootstrap_interval(values, groups, level=0.4) == Interval(pytest.approx(0.1), pytest.approx(0.1))


def test_all_alike_leave_nothing_open_and_a_seed_repeats() -> None:
    assert bootstrap_interval([True] * 20) == Interval(1.0, 1.0)
    assert bootstrap_interval([7]) == Interval(7.0, 7.0)
    values = np.random.default_rng(4).random(30)
    assert bootstrap_interval(values, seed=5) == bootstrap_interval(values, seed=5)
    assert bootstrap_interval(values, seed=5) != bootstrap_interval(values, seed=6)


def test_the_memory_bound_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(5).random(30)
    whole = bootstrap_interval(values)
    monkeypatch.setattr(evaluation, "DRAWS_TOGETHER", 100)
    assert bootstrap_interval(values) == whole


def test_wrong_input_is_named() -> None:
    for values, message in (([], "values must have shape"), ([[1.0]], "values must have shape")):
        with pytest.raises(ValueError, match=message):
            bootstrap_interval(values)
    with pytest.raises(ValueError, match=r"values\[1\] is not finite"):
        bootstrap_interval([0.0, np.nan])
    with pytest.raises(ValueError, match="groups has 1 entries for 2 values"):
        bootstrap_interval([0, 1], ["a"])
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 95"):
        bootstrap_interval([0, 1], level=95)
    with pytest.raises(ValueError, match="resamples must be positive, got 0"):
        bootstrap_interval([0, 1], resamples=0)
