"""Sinkhorn against its algorithm, automatic differentiation, POT, and the limits of its arithmetic."""

import math

import ot
import pytest
import torch

from graphwright.transport import Divergence, EdgeTerm, MatchingProblem, mirror_descent, project, sinkhorn
from graphwright.transport.solvers import SAFE_SCALING


def algorithm_1(cost, epsilon, iterations):
    """The paper's Algorithm 1, to the letter, on scalings."""
    kernel = torch.exp(-cost / epsilon)
    v = torch.ones_like(cost[:, 0])
    for _ in range(iterations):
        u = 1 / (kernel @ v[:, :, None])[:, :, 0]
        v = 1 / (kernel.mT @ u[:, :, None])[:, :, 0]
    extra = 1 / (kernel @ v[:, :, None])[:, :, 0]
    return ((u + extra) / 2)[:, :, None] * kernel * v[:, None, :]


def costs(n, seed=0, batch=3, dtype=torch.float64):
    return torch.randn(batch, n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("iterations", [1, 2, 20])
@pytest.mark.parametrize("epsilon", [1.0, 0.1])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_plan_equals_algorithm_1(n, epsilon, iterations):
    cost = costs(n)
    torch.testing.assert_close(sinkhorn(cost, epsilon, iterations).matrix, algorithm_1(cost, epsilon, iterations))


@pytest.mark.parametrize("iterations", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_gradient_is_exact_for_the_steps_taken(n, iterations):
    cost = costs(n).requires_grad_()
    assert torch.autograd.gradcheck(lambda c: sinkhorn(c, 0.5, iterations).matrix, cost)


@pytest.mark.parametrize("epsilon", [1.0, 0.05, 1e-3])
def test_gradient_equals_automatic_differentiation_of_the_algorithm(epsilon):
    """Down to an epsilon where 20 steps are far from converged: implicit differentiation would differ."""
    cost, weight = (costs(8, seed) * 0.01 for seed in (1, 2))
    gradients = []
    for solve in (lambda c: sinkhorn(c, epsilon, 20).matrix, lambda c: algorithm_1(c, epsilon, 20)):
        variable = cost.clone().requires_grad_()
        (solve(variable) * weight).sum().backward()
        gradients.append(variable.grad)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-9, atol=1e-12)


def test_float32_gradient_is_that_of_float64():
    cost, weight = costs(20, 3).softmax(2), costs(20, 4)
    gradients = []
    for dtype in (torch.float32, torch.float64):
        variable = cost.to(dtype).requires_grad_()
        (sinkhorn(variable, 0.01, 20).matrix * weight.to(dtype)).sum().backward()
        gradients.append(variable.grad.double())
    scale = gradients[1].abs().max()
    assert (gradients[0] - gradients[1]).abs().max() < 1e-4 * scale


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("epsilon", [1.0, 1e-2, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("n", [1, 2, 13, 64])
def test_any_scale_gives_a_finite_plan_with_the_stated_marginals(n, epsilon, scale, dtype):
    cost = (scale * costs(n, dtype=dtype)).requires_grad_()
    plan = sinkhorn(cost, epsilon, 20)
    plan.matrix.square().sum().backward()
    rounding = 1e-5 if dtype is torch.float32 else 1e-12
    matrix = plan.matrix.detach()
    assert torch.isfinite(cost.grad).all()
    assert matrix.min() >= 0
    assert matrix.max() <= 1 + rounding
    torch.testing.assert_close(matrix.sum((1, 2)), torch.full((3,), n, dtype=dtype), rtol=rounding, atol=0)
    assert matrix.sum(2).min() >= 0.5 - rounding
    assert matrix.sum(1).min() >= 0.5 - rounding
    torch.testing.assert_close(plan.row_error, (matrix.sum(2) - 1).abs().amax(1))
    torch.testing.assert_close(plan.column_error, (matrix.sum(1) - 1).abs().amax(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("iterations", [20, 200])
@pytest.mark.parametrize("nearly_ambiguous", [False, True])
@pytest.mark.parametrize(("scale", "epsilon"), [(1.0, 1e-8), (1e6, 1e-2), (1e6, 1e-8)])
def test_the_gradient_does_not_grow_with_the_steps(scale, epsilon, nearly_ambiguous, iterations, dtype):
    """The derivative of a step is a contraction in L1, however coarsely the potentials are rounded."""
    cost = costs(64)
    if nearly_ambiguous:
        cost = cost[:, :, :1] + cost[:, :1, :] + 1e-7 * cost
    cost = (scale * cost).to(dtype).requires_grad_()
    weight = costs(64, 1, dtype=dtype)
    (sinkhorn(cost, epsilon, iterations).matrix * weight).sum().backward()
    assert (epsilon * cost.grad).abs().max() < 100


def test_a_constant_on_a_row_costs_no_digits_in_float32():
    """Costs and offsets that float32 holds exactly: what the rows have in common must not eat the differences."""
    cost = torch.randint(1024, (3, 9, 9), generator=torch.Generator().manual_seed(0)) / 1024
    offset = 1024.0 * torch.arange(9)[:, None]
    torch.testing.assert_close(sinkhorn(cost + offset, 0.01, 20).matrix, sinkhorn(cost, 0.01, 20).matrix)


def test_second_derivatives_are_refused_rather_than_wrong():
    cost = costs(3).requires_grad_()
    (gradient,) = torch.autograd.grad(sinkhorn(cost, 0.5, 2).matrix.square().sum(), cost, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_the_objective_is_the_transport_cost():
    cost = costs(5)
    plan = sinkhorn(cost, 0.5, 10)
    torch.testing.assert_close(plan.objective, (plan.matrix * cost).sum((1, 2)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_converged_plans_have_unit_marginals_and_say_so(dtype):
    plan = sinkhorn(costs(32, dtype=dtype), 0.5, 200, tolerance=1e-4)
    assert plan.converged.all()
    torch.testing.assert_close(plan.matrix.sum(2), torch.ones(3, 32, dtype=dtype), rtol=1e-4, atol=0)
    torch.testing.assert_close(plan.matrix.sum(1), torch.ones(3, 32, dtype=dtype), rtol=1e-4, atol=0)


def test_unconverged_plans_say_so():
    assert not sinkhorn(costs(32), 1e-4, 3).converged.any()


def test_converged_plan_is_that_of_POT():
    cost, ones = costs(9, 5), torch.full((9,), 1 / 9, dtype=torch.float64)
    plan = sinkhorn(cost, 0.1, 2000).matrix
    for sample in range(3):
        theirs = ot.sinkhorn(
            ones, ones, cost[sample], reg=0.1, method="sinkhorn_log", numItermax=20000, stopThr=1e-14
        )
        torch.testing.assert_close(plan[sample] / 9, theirs, rtol=1e-6, atol=1e-12)


def test_small_epsilon_finds_the_optimal_assignment_of_POT():
    cost, ones = costs(7, 6), torch.ones(7, dtype=torch.float64)
    plan = sinkhorn(cost, 1e-3, 5000)
    for sample in range(3):
        torch.testing.assert_close(plan.matrix[sample], ot.emd(ones, ones, cost[sample]), rtol=0, atol=1e-2)


def test_potentials_rebuild_the_plan():
    cost = costs(6) + 7
    plan = sinkhorn(cost, 0.3, 4)
    exponent = (plan.row_potential[:, :, None] + plan.column_potential[:, None, :] - cost) / 0.3
    torch.testing.assert_close(exponent.exp(), plan.matrix)


def test_all_equal_costs_give_the_uniform_plan():
    torch.testing.assert_close(sinkhorn(torch.full((2, 5, 5), 3.0), 1e-8, 20).matrix, torch.full((2, 5, 5), 0.2))


def test_memory_kept_for_the_gradient_grows_with_n_not_n_squared_per_step():
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.numel()) or t, lambda t: t):
        sinkhorn(costs(40, batch=1).requires_grad_(), 0.1, 100)
    assert sum(saved) < 5 * 40 * 40 + 2 * 101 * 40


@pytest.mark.parametrize("spread", [1.0, 30.0, 1e3, 1e5])
def test_products_and_log_domain_project_alike(spread):
    """The fast path and the log domain, which takes over where scalings leave the safe range, are one function."""
    log_kernel = spread * costs(12)
    kernel = project(log_kernel, 15)
    exact = sinkhorn(-log_kernel, 1.0, 15)
    torch.testing.assert_close(kernel.matrix, exact.matrix, rtol=1e-7, atol=1e-12)
    torch.testing.assert_close(kernel.log_matrix.exp(), kernel.matrix)


def test_log_domain_takes_over_where_products_underflow():
    adversarial = torch.zeros(1, 3, 3)
    adversarial[0, :, 0] = -200.0  # a column that every row avoids: its scaling would be e^200
    assert math.exp(200) > SAFE_SCALING
    matrix = project(adversarial, 50).matrix
    torch.testing.assert_close(matrix, torch.full((1, 3, 3), 1 / 3), rtol=1e-4, atol=0)


@pytest.mark.parametrize("avoided", [0.0, 200.0])
def test_the_log_plan_outlives_the_underflow_of_the_plan(avoided):
    """On the fast path and in the log domain: an entry that is 0 in float32 can still come back."""
    log_kernel = torch.tensor([[[-avoided, 0, -300], [-avoided, 0, -300], [-300 - avoided, -300, 0]]])
    projected = project(log_kernel, 3)
    assert (projected.log_column.max().exp() > SAFE_SCALING) == (avoided > 0)
    assert projected.matrix[0, 1, 2] == 0
    exact = log_kernel.double() + projected.log_row[:, :, None] + projected.log_column[:, None, :]
    assert exact[0, 1, 2] < -250
    torch.testing.assert_close(projected.log_matrix.double(), exact, rtol=0, atol=1e-3)


def test_mirror_descent_survives_saturated_logits():
    generator = torch.Generator().manual_seed(0)
    logits = 200 * torch.randn(4, 8, 8, generator=generator)
    term = EdgeTerm(logits + logits.mT, (logits + logits.mT > 0).float(), Divergence.CROSS_ENTROPY)
    plan = mirror_descent(MatchingProblem(torch.zeros(4, 8, 8), (term,), torch.ones(4, 8)), tau=0.1)
    assert torch.isfinite(plan.matrix).all()
    assert torch.isfinite(plan.objective).all()
