"""The paper's propositions on small graphs: brute force over permutations, hypothesis over everything else."""

import networkx as nx
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import bistochastic, permutations

from graphwright.transport import (
    Divergence,
    EdgeTerm,
    MatchingProblem,
    Objective,
    Relaxation,
    SelfLoops,
    conditional_gradient,
    multi_start,
    relaxed_objective,
)

SQUARED = Divergence.SQUARED
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 6)


def random_matrix(generator, n, symmetric=False):
    matrix = torch.rand(n, n, generator=generator, dtype=torch.float64)
    return (matrix + matrix.T) / 2 if symmetric else matrix


def evaluate(plan, A, B, objective, divergence=SQUARED):
    mask = torch.ones(len(plan), plan.shape[1], dtype=torch.float64)
    term = EdgeTerm(A.expand_as(plan), B.expand_as(plan), divergence)
    return relaxed_objective(plan, term, mask, SelfLoops.INCLUDED, Relaxation(objective))


def best_permutation(A, B, divergence=SQUARED):
    plans = torch.stack(list(permutations(len(A))))
    return float(evaluate(plans, A, B, Objective.J, divergence).min())


def best_plan(A, B, seed):
    """(1, n, n) the best plan found for J: from the best permutation, and from several other starts."""
    problem = MatchingProblem(
        torch.zeros(1, *A.shape, dtype=torch.float64),
        (EdgeTerm(A[None], B[None], SQUARED),),
        torch.ones(1, len(A), dtype=torch.float64),
        SelfLoops.INCLUDED,
    )
    every = torch.stack(list(permutations(len(A))))
    permutation = every[evaluate(every, A, B, Objective.J).argmin()][None]
    plans = (
        conditional_gradient(problem, permutation),
        multi_start(problem, conditional_gradient, 4, torch.Generator().manual_seed(seed)),
    )
    return min(plans, key=lambda plan: float(plan.objective[0])).matrix


@given(seeds, sizes, st.sampled_from(list(Divergence)))
@settings(max_examples=40, deadline=None)
def test_the_three_objectives_agree_on_every_permutation(seed, n, divergence):
    generator = torch.Generator().manual_seed(seed)
    A, B = random_matrix(generator, n), random_matrix(generator, n)
    if divergence is not SQUARED:
        A, B = torch.logit(A.clamp(1e-6, 1 - 1e-6)), (B > 0.5).double()
    plans = torch.stack(list(permutations(n)))
    expected = evaluate(plans, A, B, Objective.J, divergence)
    for objective in (Objective.J_A, Objective.J_B):
        torch.testing.assert_close(evaluate(plans, A, B, objective, divergence), expected)


@given(seeds, sizes, st.sampled_from([SQUARED, Divergence.KL]))
@settings(max_examples=60, deadline=None)
def test_J_bounds_the_other_relaxations_at_every_plan(seed, n, divergence):
    """Proposition 3.1 before minimising: J_a <= J and J_b <= J wherever d is convex in each argument."""
    generator = torch.Generator().manual_seed(seed)
    A, B = random_matrix(generator, n), random_matrix(generator, n)
    if divergence is Divergence.KL:
        A = torch.logit(A.clamp(1e-6, 1 - 1e-6))
    plan = bistochastic(generator, 8, n)
    upper = evaluate(plan, A, B, Objective.J, divergence) + 1e-12
    assert (evaluate(plan, A, B, Objective.J_A, divergence) <= upper).all()
    assert (evaluate(plan, A, B, Objective.J_B, divergence) <= upper).all()


@given(seeds, sizes)
@settings(max_examples=30, deadline=None)
def test_minima_are_ordered(seed, n):
    """Proposition 3.1, max(l_a, l_b) <= GW <= l: J_a and J_b at the plan of GW bound their minima from above."""
    generator = torch.Generator().manual_seed(seed)
    A, B = random_matrix(generator, n, symmetric=True), random_matrix(generator, n, symmetric=True)
    plan = best_plan(A, B, seed % 1000)
    gromov = evaluate(plan, A, B, Objective.J).item()
    assert gromov <= best_permutation(A, B) + 1e-12
    for objective in (Objective.J_A, Objective.J_B):
        assert evaluate(plan, A, B, objective).item() <= gromov + 1e-12


@given(seeds, sizes)
@settings(max_examples=30, deadline=None)
def test_J_vanishes_only_where_every_permutation_of_the_mixture_is_an_isomorphism(seed, n):
    """Proposition 3.2, GW = 0 <=> l = 0: J of a mixture is at least the squared weights times J of its parts."""
    generator = torch.Generator().manual_seed(seed)
    A, B = random_matrix(generator, n), random_matrix(generator, n)
    every = torch.stack(list(permutations(n)))
    chosen = torch.randint(len(every), (3,), generator=generator)
    weights = torch.rand(3, generator=generator, dtype=torch.float64).softmax(0)
    mixture = (weights[:, None, None] * every[chosen]).sum(0)
    lower = (weights**2 * evaluate(every[chosen], A, B, Objective.J)).sum()
    assert evaluate(mixture[None], A, B, Objective.J)[0] >= lower - 1e-12
    copy = every[chosen[0]] @ B @ every[chosen[0]].T
    assert evaluate(every[chosen[:1]], copy, B, Objective.J)[0] < 1e-12


def test_C6_and_two_triangles_fool_J_a_but_not_J():
    A = torch.from_numpy(nx.to_numpy_array(nx.cycle_graph(6)))
    B = torch.from_numpy(nx.to_numpy_array(nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))))
    uniform = torch.full((1, 6, 6), 1 / 6, dtype=torch.float64)
    assert evaluate(uniform, A, B, Objective.J_A)[0] < 1e-12
    assert best_permutation(A, B) > 0.1
    assert evaluate(best_plan(A, B, 0), A, B, Objective.J)[0] > 0.1


@given(seeds, sizes)
@settings(max_examples=30, deadline=None)
def test_a_constant_matrix_of_equal_mean_fools_J_b(seed, n):
    B = random_matrix(torch.Generator().manual_seed(seed), n)
    A = B.mean().expand(n, n)
    uniform = torch.full((1, n, n), 1 / n, dtype=torch.float64)
    assert evaluate(uniform, A, B, Objective.J_B)[0] < 1e-12
    assert evaluate(uniform, A, B, Objective.J)[0] > 1e-6
    assert best_permutation(A, B) > 1e-6
