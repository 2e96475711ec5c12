"""Mirror descent, conditional gradient, multi-start and assignment, against POT and brute force."""

from dataclasses import replace
from functools import partial

import ot
import pytest
import torch
from oracles import bistochastic, permutations

from graphwright.transport import (
    Divergence,
    EdgeTerm,
    MatchingProblem,
    Objective,
    Relaxation,
    SelfLoops,
    assign,
    assignment_potentials,
    conditional_gradient,
    mirror_descent,
    multi_start,
    permutation_matrix,
    round_to_permutation,
    sinkhorn,
    uniform_plan,
)
from graphwright.transport.relaxations import safe_log
from graphwright.transport.solvers import _exact_step


def make_problem(
    batch=4, n=6, seed=0, divergence=Divergence.SQUARED, fused=True, loops=SelfLoops.INCLUDED, noise=0.2
):
    """Noisy permuted graphs, with node costs when fused; float64."""
    generator = torch.Generator().manual_seed(seed)
    upper = (torch.rand(batch, n, n, generator=generator) < 0.5).double().triu(1)
    clean = upper + upper.mT
    blur = noise * torch.randn(batch, n, n, generator=generator, dtype=torch.float64)
    prediction = clean + blur + blur.mT
    if divergence is not Divergence.SQUARED:
        prediction = 6 * (prediction - 0.5)
    order = torch.rand(batch, n, generator=generator).argsort(1)
    move = torch.eye(n, dtype=torch.float64)[order]
    linear = torch.rand(batch, n, n, generator=generator, dtype=torch.float64) / n
    term = EdgeTerm(prediction, move @ clean @ move.mT, divergence, weight=0.7)
    mask = torch.ones(batch, n, dtype=torch.float64)
    return MatchingProblem(linear if fused else torch.zeros_like(linear), (term,), mask, loops)


def brute_force(problem):
    plans = torch.stack(
        [problem.objective(p.expand(problem.batch, -1, -1)) for p in permutations(problem.capacity)]
    )
    return plans.amin(0)


@pytest.mark.parametrize("solver", [mirror_descent, conditional_gradient])
def test_objective_marginals_and_counts_describe_the_plan(solver):
    problem = make_problem()
    plan = solver(problem)
    torch.testing.assert_close(plan.objective, problem.objective(plan.matrix))
    torch.testing.assert_close(plan.row_error, (plan.matrix.sum(2) - 1).abs().amax(1))
    torch.testing.assert_close(plan.column_error, (plan.matrix.sum(1) - 1).abs().amax(1))
    assert plan.row_potential.shape == plan.column_potential.shape == (4, 6)
    assert ((plan.iterations >= 1) & (plan.iterations <= 20)).all()


@pytest.mark.parametrize("solver", [partial(mirror_descent, outer=200, inner=100), conditional_gradient])
def test_solvers_descend_from_the_uniform_plan_and_stay_in_the_polytope(solver):
    problem = make_problem(n=8)
    plan = solver(problem)
    assert (plan.objective < problem.objective(uniform_plan(4, 8, problem.linear))).all()
    assert plan.row_error.max() < 1e-2
    assert plan.column_error.max() < 1e-2


@pytest.mark.parametrize("divergence", Divergence)
@pytest.mark.parametrize("loops", SelfLoops)
def test_many_starts_find_the_best_permutation(divergence, loops):
    """Without noise the true permutation is the minimum of the relaxation too; several starts find it."""
    problem = make_problem(n=6, divergence=divergence, loops=loops, noise=0.0, fused=False)
    plan = multi_start(problem, conditional_gradient, 30, torch.Generator().manual_seed(0))
    rounded = permutation_matrix(round_to_permutation(plan.matrix), plan.matrix)
    torch.testing.assert_close(problem.objective(rounded), brute_force(problem))


def test_more_starts_are_never_worse_and_reproducible():
    problem = make_problem(batch=16, n=10, noise=0.4, fused=False)
    few, many, again = (
        multi_start(problem, conditional_gradient, starts, torch.Generator().manual_seed(1))
        for starts in (1, 8, 8)
    )
    assert (many.objective <= few.objective).all()
    assert (many.objective < few.objective).any()
    torch.testing.assert_close(many.matrix, again.matrix, rtol=0, atol=0)


def test_mirror_descent_is_POTs_batched_solver_without_the_averaged_step():
    """Same tau, same steps: with inner problems solved to convergence the averaging changes nothing."""
    problem = make_problem(fused=False)
    term = problem.terms[0]
    ours = mirror_descent(problem, tau=0.35, outer=8, inner=500, tolerance=1e-300)
    theirs = ot.batch.solve_gromov_batch(
        term.prediction, term.target, reg=0.5, max_iter=8, max_iter_inner=500, tol=0, tol_inner=1e-14
    )  # weight 0.7 of the term against tau = 0.35 is weight 1 against reg = 0.5
    torch.testing.assert_close(ours.matrix, theirs.plan * 6, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.objective, 0.7 * theirs.value, rtol=1e-4, atol=1e-6)


def test_mirror_descent_with_labels_is_POTs_fused_batched_solver():
    problem = make_problem()
    term = problem.terms[0]
    ours = mirror_descent(problem, tau=0.7, outer=8, inner=500, tolerance=1e-300)
    # ours = <linear, T> + 0.7 GW; theirs = (1 - a) <M, T> + a GW per unit mass: a = 0.5, M = n linear / 0.7.
    theirs = ot.batch.solve_gromov_batch(
        term.prediction,
        term.target,
        M=6 * problem.linear / 0.7,
        alpha=0.5,
        reg=0.5,
        max_iter=8,
        max_iter_inner=500,
        tol=0,
        tol_inner=1e-14,
    )
    torch.testing.assert_close(ours.matrix, theirs.plan * 6, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.objective, 1.4 * theirs.value, rtol=1e-4, atol=1e-6)


def test_mirror_steps_equal_algorithm_2_by_hand():
    problem = make_problem()
    plan = uniform_plan(4, 6, problem.linear)
    for _ in range(3):
        cost = 6 * problem.gradient(plan) - 0.2 * safe_log(plan)
        plan = sinkhorn(cost, 0.2, 5).matrix
    torch.testing.assert_close(mirror_descent(problem, tau=0.2, outer=3, inner=5).matrix, plan)


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.filterwarnings("ignore")  # POT warns that so few steps have not converged
def test_conditional_gradient_is_POTs_step_by_step(steps):
    """Labels leave no ties between assignments: at equal steps the plans are the same to rounding."""
    problem = make_problem(batch=6, n=7, noise=0.3)
    noise = torch.randn(6, 7, 7, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    term, start = problem.terms[0], sinkhorn(noise, 1.0, 300).matrix
    ours = conditional_gradient(problem, start, iterations=steps, tolerance=1e-15)
    for sample in range(6):
        theirs = ot.gromov.fused_gromov_wasserstein(
            7 * problem.linear[sample] / 0.7, term.prediction[sample], term.target[sample], alpha=0.5,
            G0=start[sample] / 7, max_iter=steps, tol_rel=1e-300, tol_abs=1e-300,
        )  # fmt: skip
        torch.testing.assert_close(ours.matrix[sample], 7 * theirs, rtol=0, atol=1e-9)


def test_mirror_potentials_are_the_duals_of_its_last_step():
    problem = make_problem()
    before, after = (mirror_descent(problem, tau=0.3, outer=steps, inner=6, tolerance=1e-300) for steps in (2, 3))
    cost = 6 * problem.gradient(before.matrix) - 0.3 * before.matrix.log()
    exponent = (after.row_potential[:, :, None] + after.column_potential[:, None, :] - cost) / 0.3
    torch.testing.assert_close(exponent.exp(), after.matrix)


def test_the_line_search_is_exact():
    """Against a grid, for convex, linear and concave objectives whose slope points either way at the start."""
    linear, quadratic = (t.flatten() for t in torch.meshgrid(*[torch.linspace(-2, 2, 17)] * 2, indexing="ij"))
    grid = torch.linspace(0, 1, 1001)
    best = (linear[:, None] * grid + quadratic[:, None] * grid**2).amin(1)
    step = _exact_step(linear, quadratic)
    assert ((step >= 0) & (step <= 1)).all()
    torch.testing.assert_close(linear * step + quadratic * step**2, best, rtol=0, atol=1e-5)


def test_gromov_loss_is_POTs_at_any_plan():
    problem = make_problem(fused=False)
    term, plan = problem.terms[0], bistochastic(torch.Generator().manual_seed(0), 4, 6)
    a = torch.full((4, 6), 1 / 6, dtype=torch.float64)
    theirs = ot.batch.loss_quadratic_batch(a, a, term.prediction, term.target, plan / 6)
    torch.testing.assert_close(problem.objective(plan), 0.7 * theirs)
    constant, left, right = ot.gromov.init_matrix(term.prediction[0], term.target[0], a[0], a[0])
    loss = ot.gromov.gwloss(constant, left, right, plan[0] / 6)
    torch.testing.assert_close(problem.objective(plan)[0], 0.7 * loss)
    gradient = ot.gromov.gwggrad(constant, left, right, plan[0] / 6)
    torch.testing.assert_close(6 * problem.gradient(plan)[0], 0.7 * gradient)


def test_linear_step_is_POTs_emd():
    cost = torch.randn(5, 9, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ones = torch.ones(9, dtype=torch.float64)
    for matrix, columns in zip(cost, assign(cost), strict=True):
        torch.testing.assert_close(permutation_matrix(columns[None], cost)[0], ot.emd(ones, ones, matrix))


def test_assignment_potentials_are_optimal_duals():
    cost = torch.randn(6, 8, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    columns = assign(cost)
    rows, cols = assignment_potentials(cost, columns)
    assert (rows[:, :, None] + cols[:, None, :] <= cost + 1e-12).all()
    primal = cost.gather(2, columns[:, :, None]).sum((1, 2))
    torch.testing.assert_close(rows.sum(1) + cols.sum(1), primal)


def test_conditional_gradient_potentials_certify_its_gap():
    problem = make_problem(n=8)
    plan = conditional_gradient(problem, iterations=500, tolerance=1e-14)
    gradient = problem.gradient(plan.matrix)
    bound = plan.row_potential.sum(1) + plan.column_potential.sum(1)
    gap = (gradient * plan.matrix).sum((1, 2)) - bound
    assert gap.abs().max() < 1e-3


def test_rounding_takes_the_heaviest_permutation():
    plan = torch.tensor([[[0.6, 0.4, 0.0], [0.5, 0.1, 0.4], [0.0, 0.5, 0.5]]])
    best = max(permutations(3), key=lambda p: float((p * plan[0].double()).sum()))
    torch.testing.assert_close(permutation_matrix(round_to_permutation(plan), plan)[0].double(), best)


def test_warm_start_from_the_solution_stays_there():
    problem = make_problem(noise=0.01, fused=False)
    best = permutation_matrix(
        round_to_permutation(
            multi_start(problem, conditional_gradient, 20, torch.Generator().manual_seed(0)).matrix
        ),
        problem.linear,
    )
    for solver in (mirror_descent, conditional_gradient):
        plan = solver(problem, best)
        torch.testing.assert_close(plan.matrix, best, rtol=0, atol=1e-3)
        assert plan.converged.all()
        assert plan.iterations.max() <= 3


@pytest.mark.parametrize("objective", [Objective.J_A, Objective.J_B])
def test_mirror_descent_minimises_the_other_relaxations_too(objective):
    base = make_problem(divergence=Divergence.KL, noise=0.1, fused=False)
    problem = MatchingProblem(base.linear, base.terms, base.mask, base.self_loops, Relaxation(objective))
    noise = torch.randn(4, 6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    start = sinkhorn(noise, 0.5, 100).matrix
    plan = mirror_descent(problem, start, tau=5.0)
    assert (plan.objective < problem.objective(start) - 1e-3).all()


def test_conditional_gradient_refuses_what_is_not_quadratic():
    base = make_problem()
    problem = MatchingProblem(base.linear, base.terms, base.mask, relaxation=Relaxation(Objective.J_A))
    with pytest.raises(ValueError, match="J_a is not quadratic"):
        conditional_gradient(problem)


@pytest.mark.parametrize("solver", [mirror_descent, conditional_gradient])
def test_a_sample_does_not_depend_on_its_batch(solver):
    sizes = torch.tensor([7, 3, 5, 1, 7, 0])
    problem = replace(make_problem(batch=6, n=7), mask=(torch.arange(7) < sizes[:, None]).double())
    together = solver(problem)
    assert together.iterations.unique().numel() > 1, "no sample froze before another"
    for sample in range(6):
        alone = solver(problem.take(torch.tensor([sample])))
        torch.testing.assert_close(alone.matrix[0], together.matrix[sample])
        assert alone.iterations[0] == together.iterations[sample]
        assert alone.converged[0] == together.converged[sample]


def test_frozen_samples_stop_counting():
    easy, hard = make_problem(batch=1, noise=0.0), make_problem(batch=1, seed=3, noise=0.5, fused=False)
    linear = torch.cat([10 * torch.eye(6, dtype=torch.float64)[None] * -1, hard.linear])
    term = EdgeTerm(
        torch.cat([easy.terms[0].prediction, hard.terms[0].prediction]),
        torch.cat([easy.terms[0].target, hard.terms[0].target]),
        Divergence.SQUARED,
    )
    problem = MatchingProblem(linear, (term,), torch.ones(2, 6, dtype=torch.float64))
    plan = mirror_descent(problem, outer=50)
    assert plan.converged[0]
    assert plan.iterations[0] < plan.iterations[1]


def test_an_empty_batch_is_solved():
    problem = MatchingProblem(torch.zeros(0, 3, 3), (), torch.zeros(0, 3))
    assert mirror_descent(problem).matrix.shape == (0, 3, 3)
    assert conditional_gradient(problem).matrix.shape == (0, 3, 3)
    assert sinkhorn(torch.zeros(0, 3, 3), 1.0, 2).matrix.shape == (0, 3, 3)


def test_a_plan_at_rest_with_wrong_sums_has_not_converged():
    """Sharp costs that a single inner step cannot balance: the plan stands still and misses its marginals."""
    linear = torch.zeros(1, 3, 3, dtype=torch.float64)
    linear[0, :, 0] = -50.0
    problem = MatchingProblem(linear, (), torch.ones(1, 3, dtype=torch.float64))
    few = mirror_descent(problem, outer=200, inner=1)
    assert few.converged.all() == (torch.maximum(few.row_error, few.column_error) < 0.01).all()
    weak = make_problem(batch=32, n=10, divergence=Divergence.CROSS_ENTROPY, noise=1.0, fused=False)
    plan = mirror_descent(weak, outer=60, inner=2)
    assert not plan.converged[torch.maximum(plan.row_error, plan.column_error) >= 0.01].any()
