"""Discrepancies of pairs, and the factorisation that makes the objective cubic."""

import itertools

import pytest
import torch
from oracles import scalar_divergence

from graphwright.transport import Divergence, factorise, pair_divergence

N = 3


def pairs(divergence, classes):
    """A prediction and a soft target, one graph, neither symmetric."""
    generator = torch.Generator().manual_seed(0)
    shape = (1, classes, N, N) if classes else (1, N, N)
    prediction = torch.randn(shape, generator=generator, dtype=torch.float64)
    target = torch.rand(shape, generator=generator, dtype=torch.float64)
    if classes and divergence is not Divergence.SQUARED:
        target = target / target.sum(1, keepdim=True)
    return prediction, target


@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize("divergence", Divergence)
def test_factors_give_d_of_every_two_pairs(divergence, classes):
    prediction, target = pairs(divergence, classes)
    factors = factorise(divergence, prediction, target)
    target_cost = torch.zeros(1, N, N) if factors.target_cost is None else factors.target_cost
    for i, k, j, other in itertools.product(range(N), repeat=4):
        expected = scalar_divergence(divergence, prediction[0, ..., i, k], target[0, ..., j, other])
        product = (factors.left[0, :, i, k] * factors.right[0, :, j, other]).sum()
        value = factors.prediction_cost[0, i, k] + target_cost[0, j, other] - product
        assert value.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize("divergence", Divergence)
def test_d_pair_by_pair_is_its_definition(divergence, classes):
    prediction, target = pairs(divergence, classes)
    values = pair_divergence(divergence, prediction, target)
    assert values.shape == (1, N, N)
    for i, k in itertools.product(range(N), repeat=2):
        expected = scalar_divergence(divergence, prediction[0, ..., i, k], target[0, ..., i, k])
        assert values[0, i, k].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("function", [factorise, pair_divergence])
def test_shapes_that_could_be_misread_as_classes_are_refused(function):
    with pytest.raises(ValueError, match="prediction must have shape"):
        function(Divergence.KL, torch.zeros(2, 3), torch.zeros(2, 3))
    with pytest.raises(ValueError, match="target must have shape"):
        function(Divergence.KL, torch.zeros(2, 3, 3), torch.zeros(2, 3, 2))
