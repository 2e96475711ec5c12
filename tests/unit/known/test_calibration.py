"""Temperatures: confidence that is accuracy."""

import numpy as np
import pytest

from graphwright.known.decoding import LEAST, MOST, temperature


def mean_confidence(logits, at: float) -> float:
    return float(np.mean([np.exp(each / at).max() / np.exp(each / at).sum() for each in logits]))


@pytest.mark.parametrize("accuracy", [0.2, 0.5, 0.9])
def test_mean_confidence_is_the_accuracy(accuracy):
    rng = np.random.default_rng(0)
    logits = [3 * rng.standard_normal(size) for size in rng.integers(5, 40, 200)]
    assert mean_confidence(logits, temperature(logits, accuracy)) == pytest.approx(accuracy, abs=1e-6)


def test_a_model_that_is_sure_and_right_is_left_sure_and_one_that_is_never_right_is_not():
    logits = [np.array([5.0, 0.0]), np.array([3.0, 0.0])]
    assert temperature(logits, 1.0) == pytest.approx(LEAST, rel=1e-3)
    assert temperature(logits, 0.0) == pytest.approx(MOST, rel=1e-3)
