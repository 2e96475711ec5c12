"""The compiled conditional gradient beside the torch path and scipy: exact assignments, steps that descend."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from graphwright.transport import EdgeTerm, MatchingProblem, SelfLoops, conditional_gradient
from graphwright.transport.native import library
from graphwright.transport.native.library import load_kernels

pytestmark = pytest.mark.skipif(load_kernels() is None, reason="no compiled kernels here")
SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 13, 20, 33]


def linear_problem(cost: Tensor) -> MatchingProblem:
    return MatchingProblem(cost, (), torch.ones_like(cost[:, 0]), SelfLoops.EXCLUDED)


def costs(kind: str, b: int, n: int) -> Tensor:
    rng = np.random.default_rng(n)
    if kind == "ties":
        return torch.from_numpy(rng.integers(0, 3, (b, n, n)).astype(np.float64))
    if kind == "equal":
        return torch.full((b, n, n), 0.7, dtype=torch.float64)
    if kind == "products":  # the hardest for augmenting paths
        return torch.from_numpy(np.multiply.outer(np.arange(n) + 1.0, np.arange(n) + 1.0)).repeat(b, 1, 1)
    return torch.from_numpy(rng.standard_normal((b, n, n))) * {"small": 1e-6, "large": 1e6}.get(kind, 1.0)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["plain", "ties", "equal", "products", "small", "large"])
def test_a_linear_problem_is_solved_by_the_cheapest_assignment(n, kind):
    cost = costs(kind, 5, n)
    plan = conditional_gradient(linear_problem(cost))
    cheapest = [matrix[linear_sum_assignment(matrix)].sum() for matrix in cost.numpy()]
    torch.testing.assert_close(plan.objective, torch.tensor(cheapest), rtol=1e-12, atol=1e-12)
    assert plan.converged.all()
    # The duals prove it.
    slack = cost - plan.row_potential[:, :, None] - plan.column_potential[:, None, :]
    scale = float(cost.abs().max())
    assert slack.min() >= -1e-12 * scale
    total = plan.row_potential.sum(1) + plan.column_potential.sum(1)
    torch.testing.assert_close(total, plan.objective, rtol=1e-9, atol=1e-9 * scale)


def quadratic_problem(n: int, self_loops: SelfLoops, channels: int, seed: int = 0) -> MatchingProblem:
    generator = torch.Generator().manual_seed(seed + n)
    b = 6
    mask = (torch.arange(n) < torch.randint(1, n + 1, (b, 1), generator=generator)).double()
    terms = []
    for _ in range(channels):
        target = (torch.rand(b, n, n, generator=generator) < 0.4).double().triu(1)
        logits = 2 * torch.randn(b, n, n, generator=generator, dtype=torch.float64)
        terms.append(EdgeTerm(logits, target + target.mT, weight=0.5))
    linear = torch.rand(b, n, n, generator=generator, dtype=torch.float64) / n
    return MatchingProblem(linear, tuple(terms), mask, self_loops)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 13, 20])
@pytest.mark.parametrize("self_loops", list(SelfLoops))
@pytest.mark.parametrize("channels", [1, 3])
def test_it_takes_the_steps_of_torch(monkeypatch, n, self_loops, channels):
    # Random costs have no ties, so that there is one way to go.
    problem = quadratic_problem(n, self_loops, channels)
    start = torch.rand(6, n, n, generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 0.1
    for _ in range(200):
        start = start / start.sum(2, keepdim=True)
        start = start / start.sum(1, keepdim=True)
    ours = conditional_gradient(problem, start, iterations=6)
    monkeypatch.setattr(library, "load_kernels", lambda: None)
    expected = conditional_gradient(problem, start, iterations=6)
    torch.testing.assert_close(ours.objective, expected.objective, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(ours.iterations, expected.iterations)
    assert torch.equal(ours.converged, expected.converged)


@pytest.mark.parametrize("n", [4, 10, 20])
def test_from_the_uniform_plan_it_ends_as_low_as_torch_does_on_the_whole(monkeypatch, n):
    # Where nothing decides between assignments the two may go different ways, neither of them better.
    problems = [quadratic_problem(n, SelfLoops.EXCLUDED, 2, seed) for seed in range(8)]
    ours = torch.stack([conditional_gradient(problem).objective for problem in problems])
    monkeypatch.setattr(library, "load_kernels", lambda: None)
    expected = torch.stack([conditional_gradient(problem).objective for problem in problems])
    assert abs(ours.mean() - expected.mean()) < 0.02 * expected.abs().mean()


def test_threads_and_the_rest_of_the_batch_change_nothing():
    problem = quadratic_problem(20, SelfLoops.EXCLUDED, 2)
    before = torch.get_num_threads()
    plans = []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            plans.append(conditional_gradient(problem).matrix)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(plan, plans[0]) for plan in plans[1:])
    alone = MatchingProblem(
        problem.linear[2:3],
        tuple(EdgeTerm(term.prediction[2:3], term.target[2:3], weight=term.weight) for term in problem.terms),
        problem.mask[2:3],
        problem.self_loops,
    )
    assert torch.equal(conditional_gradient(alone).matrix[0], plans[0][2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_duals_prove_the_last_assignment_after_others(dtype):
    # Costs change from step to step, and the search begins with the duals of the step before.
    problem = quadratic_problem(9, SelfLoops.EXCLUDED, 2)
    terms = tuple(EdgeTerm(t.prediction.to(dtype), t.target.to(dtype), weight=t.weight) for t in problem.terms)
    problem = MatchingProblem(problem.linear.to(dtype), terms, problem.mask.to(dtype), problem.self_loops)
    before, after = (conditional_gradient(problem, iterations=steps, tolerance=1e-30) for steps in (3, 4))
    cost = problem.quadratic_form().gradient(before.matrix).double()
    moved = after.iterations == 4
    assert moved.any()
    rows, columns = after.row_potential.double(), after.column_potential.double()
    rounding = 1e-5 if dtype == torch.float32 else 1e-12
    slack = cost - rows[:, :, None] - columns[:, None, :]
    assert slack[moved].min() > -rounding
    cheapest = torch.tensor([matrix[linear_sum_assignment(matrix)].sum() for matrix in cost.numpy()])
    torch.testing.assert_close((rows.sum(1) + columns.sum(1))[moved], cheapest[moved], rtol=0, atol=9 * rounding)


def test_forms_that_overflow_are_refused():
    target = torch.ones(1, 4, 4) - torch.eye(4)
    problem = MatchingProblem(
        torch.zeros(1, 4, 4), (EdgeTerm(torch.full((1, 4, 4), 3e38), target, weight=100.0),), torch.ones(1, 4)
    )
    with pytest.raises(ValueError, match="finite"):
        conditional_gradient(problem)


def test_an_empty_batch_has_no_plans():
    assert conditional_gradient(linear_problem(torch.zeros(0, 3, 3))).matrix.shape == (0, 3, 3)
