"""The compiled kernels beside the torch path: the same numbers, on easy and on adversarial input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from graphwright.transport import EdgeTerm, MatchingProblem, SelfLoops, mirror_descent, sinkhorn
from graphwright.transport.native import library
from graphwright.transport.native.library import load_kernels

SIZES = (1, 2, 3, 7, 8, 9, 10, 20, 33, 60)

needs_kernels = pytest.mark.skipif(load_kernels() is None, reason="no compiled kernels here")


@pytest.fixture
def by_torch(monkeypatch: pytest.MonkeyPatch):
    """Calls a function with the kernels switched off."""

    def call(function, *arguments, **options):
        with monkeypatch.context() as patch:
            patch.setattr(library, "load_kernels", lambda: None)
            return function(*arguments, **options)

    return call


def plan_and_gradient(cost: Tensor, weight: Tensor, epsilon: float, iterations: int) -> tuple[Tensor, Tensor]:
    variable = cost.clone().requires_grad_()
    plan = sinkhorn(variable, epsilon, iterations).matrix
    (gradient,) = torch.autograd.grad((plan * weight).sum(), variable)
    return plan.detach(), gradient


def matcher_like_cost(generator: torch.Generator, b: int, n: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Costs as the learned matcher makes them: L1 distances, divided by their sum."""
    x, y = torch.randn(2, b, n, 16, generator=generator, dtype=dtype)
    cost = torch.cdist(x, y, p=1)
    return cost / cost.sum((1, 2), keepdim=True)


@needs_kernels
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("temperature", [1.0, 4.5e-3])
def test_single_precision_kernels_are_as_exact_as_double_precision_torch(by_torch, n, temperature):
    generator = torch.Generator().manual_seed(n)
    cost = matcher_like_cost(generator, 5, n)
    weight = torch.randn(5, n, n, generator=generator)
    epsilon = temperature / n**2
    plan, gradient = plan_and_gradient(cost, weight, epsilon, 20)
    exact_plan, exact_gradient = by_torch(plan_and_gradient, cost.double(), weight.double(), epsilon, 20)
    assert (plan - exact_plan).abs().max() < 2e-5
    assert (gradient - exact_gradient).norm() <= 1e-5 * exact_gradient.norm() + 1e-7 / epsilon


@needs_kernels
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("epsilon", [1.0, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("iterations", [1, 2, 20])
def test_double_precision_kernels_equal_torch(by_torch, n, epsilon, iterations):
    generator = torch.Generator().manual_seed(n)
    cost = torch.rand(3, n, n, generator=generator, dtype=torch.float64)
    weight = torch.randn(3, n, n, generator=generator, dtype=torch.float64)
    plan, gradient = plan_and_gradient(cost, weight, epsilon, iterations)
    expected, expected_gradient = by_torch(plan_and_gradient, cost, weight, epsilon, iterations)
    torch.testing.assert_close(plan, expected, rtol=1e-7, atol=1e-9)
    scale = max(1.0, float(expected_gradient.abs().max()))
    torch.testing.assert_close(gradient / scale, expected_gradient / scale, rtol=1e-6, atol=1e-8)


def with_alike_columns(matrix: Tensor, sizes: list[int]) -> Tensor:
    """The matrices with their columns from a size on replaced by the one there."""
    n = matrix.shape[-1]
    first = torch.minimum(torch.arange(n), torch.tensor(sizes)[:, None])
    return matrix.gather(2, first[:, None, :].expand_as(matrix).clamp_max(n - 1)).contiguous()


@needs_kernels
@pytest.mark.parametrize("n", [2, 7, 9, 20, 33])
@pytest.mark.parametrize("epsilon", [1.0, 1e-2, 1e-4, 1e-6])
def test_columns_alike_give_what_torch_gives_and_each_has_a_gradient_of_its_own(by_torch, n, epsilon):
    generator = torch.Generator().manual_seed(n)
    sizes = [0, 1, n // 2, n - 2, n - 1, n]
    cost = with_alike_columns(torch.rand(6, n, n, generator=generator, dtype=torch.float64), sizes)
    weight = torch.randn(6, n, n, generator=generator, dtype=torch.float64)
    plan, gradient = plan_and_gradient(cost, weight, epsilon, 20)
    expected, expected_gradient = by_torch(plan_and_gradient, cost, weight, epsilon, 20)
    torch.testing.assert_close(plan, expected, rtol=1e-7, atol=1e-9)
    scale = max(1.0, float(expected_gradient.abs().max()))
    torch.testing.assert_close(gradient / scale, expected_gradient / scale, rtol=1e-6, atol=1e-8)
    ours, theirs = sinkhorn(cost, epsilon, 20), by_torch(sinkhorn, cost, epsilon, 20)
    torch.testing.assert_close(ours.row_potential, theirs.row_potential, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(ours.column_potential, theirs.column_potential, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(ours.objective, theirs.objective)
    torch.testing.assert_close(ours.row_error, theirs.row_error, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(ours.column_error, theirs.column_error, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("path", ["kernels", "torch"])
def test_a_cost_that_is_not_finite_is_refused_among_columns_alike_too(by_torch, path):
    cost = torch.rand(2, 5, 5, generator=torch.Generator().manual_seed(0))
    cost[1, 2, 3:] = torch.inf
    cost[:, :, 4] = cost[:, :, 3]
    with pytest.raises(ValueError, match="cost"):
        sinkhorn(cost, 0.1, 5) if path == "kernels" else by_torch(sinkhorn, cost, 0.1, 5)


@pytest.mark.parametrize("whole", [int, np.int64])
def test_whole_numbers_of_any_kind_are_numbers(whole):
    cost = torch.rand(3, 6, 6, generator=torch.Generator().manual_seed(0))
    weight = torch.randn(3, 6, 6, generator=torch.Generator().manual_seed(1))
    ours = plan_and_gradient(cost, weight, whole(1), whole(20))
    expected = plan_and_gradient(cost, weight, 1.0, 20)
    assert all(torch.equal(one, other) for one, other in zip(ours, expected, strict=True))
    problem = matching_problem(6, torch.float32, SelfLoops.EXCLUDED, 1)
    ours = mirror_descent(problem, tau=whole(1), outer=whole(5), inner=whole(7), tolerance=whole(1))
    assert torch.equal(ours.matrix, mirror_descent(problem, tau=1.0, outer=5, inner=7, tolerance=1.0).matrix)


def test_no_samples_give_no_plans():
    plan = sinkhorn(torch.zeros(0, 4, 4), 0.1, 5)
    assert plan.matrix.shape == (0, 4, 4)
    assert plan.converged.shape == (0,)


@needs_kernels
def test_potentials_equal_torch(by_torch):
    cost = matcher_like_cost(torch.Generator().manual_seed(0), 4, 12, torch.float64)
    ours, expected = sinkhorn(cost, 1e-4, 7), by_torch(sinkhorn, cost, 1e-4, 7)
    torch.testing.assert_close(ours.row_potential, expected.row_potential)
    torch.testing.assert_close(ours.column_potential, expected.column_potential)


def adversarial_costs() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)
    random = torch.rand(2, 9, 9, generator=generator)
    wide = torch.rand(2, 9, 9, generator=generator) * torch.logspace(-6, 6, 9)
    one_favourite = torch.rand(2, 9, 9, generator=generator)
    one_favourite[:, :, 0] -= 5.0  # every row wants the same column: the other columns start with next to nothing
    permutation = 1 - torch.eye(9)[torch.randperm(9, generator=generator)].expand(2, 9, 9)
    return {
        "one node": torch.rand(3, 1, 1, generator=generator),
        "all equal": torch.full((2, 9, 9), 0.3),
        "zero": torch.zeros(2, 9, 9),
        "huge": 1e6 * random,
        "tiny": 1e-6 * random,
        "negative": -random,
        "wide": wide,
        "one favourite": one_favourite,
        "permutation": permutation.contiguous(),
        "two alike rows": random[:, [0, 0, 2, 3, 4, 5, 6, 7, 8]],
        "padding": random[:, :, [0, 1, 2, 3, 4, 4, 4, 4, 4]],
        "padding alone wanted": one_favourite[:, :, [8, 7, 6, 5, 0, 0, 0, 0, 0]],
        "padding never wanted": one_favourite[:, :, [0, 1, 2, 3, 4, 5, 8, 8, 8]] + 4 * (torch.arange(9) > 5),
    }


@pytest.mark.parametrize("name", adversarial_costs())
@pytest.mark.parametrize("epsilon", [1.0, 1e-3, 1e-5, 1e-8])
@pytest.mark.parametrize("path", ["kernels", "torch"])
def test_promises_hold_on_adversarial_input(by_torch, name, epsilon, path):
    cost = adversarial_costs()[name]
    weight = torch.randn(cost.shape, generator=torch.Generator().manual_seed(0))
    if path == "kernels":
        plan, gradient = plan_and_gradient(cost, weight, epsilon, 20)
    else:
        plan, gradient = by_torch(plan_and_gradient, cost, weight, epsilon, 20)
    n = cost.shape[1]
    assert plan.isfinite().all()
    assert gradient.isfinite().all()
    assert plan.min() >= 0
    assert plan.max() <= 1 + 1e-5
    torch.testing.assert_close(plan.sum((1, 2)), torch.full((len(cost),), float(n)), rtol=1e-5, atol=1e-5)
    assert plan.sum(1).min() > 0.5 - 1e-5
    assert plan.sum(2).min() > 0.5 - 1e-5


@needs_kernels
@pytest.mark.parametrize("name", adversarial_costs())
@pytest.mark.parametrize("epsilon", [1.0, 1e-3, 1e-5, 1e-8])
def test_both_paths_agree_on_adversarial_input_in_double_precision(by_torch, name, epsilon):
    cost = adversarial_costs()[name].double()
    weight = torch.randn(cost.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    # Beyond 1e10 the rounding of cost / epsilon in double precision is visible in the plan itself.
    if float(cost.abs().max()) / epsilon > 1e10:
        epsilon = float(cost.abs().max()) / 1e10
    plan, gradient = plan_and_gradient(cost, weight, epsilon, 20)
    expected, expected_gradient = by_torch(plan_and_gradient, cost, weight, epsilon, 20)
    torch.testing.assert_close(plan, expected, rtol=1e-4, atol=1e-5)
    scale = max(1.0, float(expected_gradient.abs().max()))
    torch.testing.assert_close(gradient / scale, expected_gradient / scale, rtol=1e-4, atol=1e-5)


@needs_kernels
def test_kernels_pass_gradcheck():
    generator = torch.Generator().manual_seed(1)
    cost = torch.rand(2, 5, 5, generator=generator, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda c: sinkhorn(c, 0.05, 6).matrix, cost)


@needs_kernels
def test_some_rows_far_from_the_others_are_absorbed_anew(by_torch):
    generator = torch.Generator().manual_seed(0)
    cost = torch.rand(2, 16, 16, generator=generator)
    cost[:, :5, 1:] += 200
    weight = torch.randn(2, 16, 16, generator=generator)
    plan, gradient = plan_and_gradient(cost, weight, 1.0, 60)
    exact_plan, exact_gradient = by_torch(plan_and_gradient, cost.double(), weight.double(), 1.0, 60)
    assert (plan - exact_plan).abs().max() < 2e-5
    assert (gradient - exact_gradient).abs().max() < 1e-3


@needs_kernels
def test_a_transposed_cost_is_read_as_it_stands(by_torch):
    cost = torch.rand(3, 6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64).mT
    weight = torch.randn(3, 6, 6, dtype=torch.float64)
    for ours, expected in zip(
        plan_and_gradient(cost, weight, 0.01, 5),
        by_torch(plan_and_gradient, cost, weight, 0.01, 5),
        strict=True,
    ):
        torch.testing.assert_close(ours, expected)


@needs_kernels
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads):
    cost = matcher_like_cost(torch.Generator().manual_seed(0), 64, 30)
    weight = torch.randn(64, 30, 30, generator=torch.Generator().manual_seed(1))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = plan_and_gradient(cost, weight, 5e-6, 20)
        torch.set_num_threads(threads)
        together = plan_and_gradient(cost, weight, 5e-6, 20)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))


def matching_problem(n: int, dtype: torch.dtype, self_loops: SelfLoops, channels: int) -> MatchingProblem:
    generator = torch.Generator().manual_seed(n)
    b = 4
    mask = (torch.arange(n) < torch.randint(1, n + 1, (b, 1), generator=generator)).to(dtype)
    terms = []
    for _ in range(channels):
        target = (torch.rand(b, n, n, generator=generator) < 0.4).to(dtype).triu(1)
        logits = 2 * torch.randn(b, n, n, generator=generator, dtype=dtype)
        terms.append(EdgeTerm(logits, target + target.mT, weight=0.5))
    linear = torch.rand(b, n, n, generator=generator, dtype=dtype) / n
    return MatchingProblem(linear, tuple(terms), mask, self_loops)


@needs_kernels
@pytest.mark.parametrize("n", [1, 2, 5, 8, 13, 20])
@pytest.mark.parametrize("self_loops", list(SelfLoops))
@pytest.mark.parametrize("channels", [1, 3])
def test_mirror_descent_equals_torch(by_torch, n, self_loops, channels):
    problem = matching_problem(n, torch.float64, self_loops, channels)
    ours = mirror_descent(problem, outer=15)
    expected = by_torch(mirror_descent, problem, outer=15)
    torch.testing.assert_close(ours.matrix, expected.matrix, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(ours.objective, expected.objective)
    torch.testing.assert_close(ours.row_potential, expected.row_potential, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(ours.column_potential, expected.column_potential, rtol=1e-6, atol=1e-8)
    assert torch.equal(ours.iterations, expected.iterations)
    assert torch.equal(ours.converged, expected.converged)


def padded_problem(n: int, self_loops: SelfLoops, divergence: str | None, channels: int) -> MatchingProblem:
    """As the loss makes them: padding is alike in the linear term and in nothing else."""
    problem = matching_problem(n, torch.float64, self_loops, channels)
    linear = with_alike_columns(problem.linear, problem.mask.sum(1).long().tolist())
    terms = problem.terms
    if divergence is not None:
        terms = tuple(EdgeTerm(each.prediction.sigmoid(), each.target, divergence=divergence) for each in terms)
    return replace(problem, linear=linear, terms=terms)


@needs_kernels
@pytest.mark.parametrize("n", [2, 5, 8, 13, 20])
@pytest.mark.parametrize("self_loops", list(SelfLoops))
@pytest.mark.parametrize("divergence", [None, "squared"])
@pytest.mark.parametrize("channels", [1, 3])
def test_mirror_descent_with_padding_equals_torch(by_torch, n, self_loops, divergence, channels):
    problem = padded_problem(n, self_loops, divergence, channels)
    ours = mirror_descent(problem, outer=15)
    expected = by_torch(mirror_descent, problem, outer=15)
    torch.testing.assert_close(ours.matrix, expected.matrix, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(ours.row_potential, expected.row_potential, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(ours.column_potential, expected.column_potential, rtol=1e-6, atol=1e-8)
    assert torch.equal(ours.iterations, expected.iterations)


@needs_kernels
def test_mirror_descent_from_a_plan_that_tells_padding_apart_equals_torch(by_torch):
    problem = padded_problem(8, SelfLoops.EXCLUDED, None, 2)
    start = sinkhorn(torch.rand(4, 8, 8, generator=torch.Generator().manual_seed(2)).double(), 0.1, 50).matrix
    ours, expected = mirror_descent(problem, start), by_torch(mirror_descent, problem, start)
    torch.testing.assert_close(ours.matrix, expected.matrix, rtol=1e-6, atol=1e-8)


@needs_kernels
def test_mirror_descent_with_a_target_cost_equals_torch(by_torch):
    problem = matching_problem(9, torch.float64, SelfLoops.EXCLUDED, 1)
    term = problem.terms[0]
    squared = EdgeTerm(term.prediction.sigmoid(), term.target, divergence="squared")
    problem = MatchingProblem(problem.linear, (squared,), problem.mask, SelfLoops.EXCLUDED)
    assert problem.quadratic_form().target_cost is not None
    ours, expected = mirror_descent(problem), by_torch(mirror_descent, problem)
    torch.testing.assert_close(ours.matrix, expected.matrix, rtol=1e-6, atol=1e-8)


@needs_kernels
@pytest.mark.parametrize("self_loops", list(SelfLoops))
def test_mirror_descent_with_a_soft_mask_equals_torch(by_torch, self_loops):
    problem = matching_problem(9, torch.float64, self_loops, 2)
    soft = 0.7 * problem.mask * torch.rand(problem.mask.shape, generator=torch.Generator().manual_seed(0))
    problem = replace(problem, mask=soft)
    ours, expected = mirror_descent(problem), by_torch(mirror_descent, problem)
    torch.testing.assert_close(ours.matrix, expected.matrix, rtol=1e-6, atol=1e-8)


@needs_kernels
@pytest.mark.parametrize("tau", [1.0, 0.1, 1e-3])
def test_mirror_descent_from_a_permutation_equals_torch(by_torch, tau):
    problem = matching_problem(7, torch.float64, SelfLoops.EXCLUDED, 1)
    start = torch.eye(7, dtype=torch.float64)[torch.randperm(7, generator=torch.Generator().manual_seed(0))]
    start = start.expand(4, 7, 7)
    ours, expected = mirror_descent(problem, start, tau=tau), by_torch(mirror_descent, problem, start, tau=tau)
    torch.testing.assert_close(ours.matrix, expected.matrix, rtol=1e-6, atol=1e-7)
