"""The marginal penalty, in both directions."""

import pytest
import torch

from graphwright.losses import PenaltyDirection, marginal_penalty

FORWARD, REVERSE = PenaltyDirection.FORWARD, PenaltyDirection.REVERSE


@pytest.mark.parametrize("direction", PenaltyDirection)
def test_zero_exactly_on_bistochastic_plans(direction):
    uniform = torch.full((1, 4, 4), 0.25, dtype=torch.float64)
    assert marginal_penalty(uniform, direction).item() == pytest.approx(0, abs=1e-12)
    lighter = uniform.clone()
    lighter[0, 0, 0] = 0.2
    assert marginal_penalty(lighter, direction).item() > 1e-4


def test_values_are_the_generalised_divergences():
    plan = torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.1
    sums = torch.cat([plan.sum(2), plan.sum(1)], 1)
    torch.testing.assert_close(marginal_penalty(plan, FORWARD), (sums * sums.log() - sums + 1).sum(1))
    torch.testing.assert_close(marginal_penalty(plan, REVERSE), (sums - sums.log() - 1).sum(1))


def test_dropping_all_mass_is_penalised():
    """Plain sum p log p would be 0 at T = 0, the escape that the penalty is there to close."""
    assert marginal_penalty(torch.zeros(1, 4, 4), FORWARD).item() == pytest.approx(8, abs=1e-4)
    assert marginal_penalty(torch.zeros(1, 4, 4), REVERSE).item() > 50


@pytest.mark.parametrize("direction", PenaltyDirection)
@pytest.mark.parametrize("mass", [0.0, 1e-38, 1e-20, 1e-7, 1e-3, 1.0, 1e3])
def test_value_and_gradient_are_finite_and_push_small_marginals_up(direction, mass):
    plan = torch.full((1, 2, 2), mass / 2, requires_grad=True)
    penalty = marginal_penalty(plan, direction)
    penalty.sum().backward()
    assert torch.isfinite(penalty).all()
    assert torch.isfinite(plan.grad).all()
    if mass < 1:
        assert (plan.grad < 0).all()


@pytest.mark.parametrize("direction", PenaltyDirection)
def test_gradient_passes_gradcheck(direction):
    plan = torch.rand(2, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 0.05
    assert torch.autograd.gradcheck(lambda p: marginal_penalty(p, direction), plan.requires_grad_())


def test_a_malformed_plan_or_direction_is_refused():
    with pytest.raises(ValueError, match=r"plan is not finite \(sample 0\)"):
        marginal_penalty(torch.full((1, 2, 2), torch.nan))
    with pytest.raises(ValueError, match="plan must have shape"):
        marginal_penalty(torch.ones(2, 2))
    with pytest.raises(ValueError, match="'back' is not a valid PenaltyDirection"):
        marginal_penalty(torch.ones(1, 2, 2), "back")
    torch.testing.assert_close(
        marginal_penalty(2 * torch.ones(1, 2, 2), "forward"), marginal_penalty(2 * torch.ones(1, 2, 2))
    )
