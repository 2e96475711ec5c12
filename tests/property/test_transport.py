"""Invariances that hold for every input: order of nodes, padding, batch, scale."""

from functools import partial

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import one_hot, pad

from graphwright.transport import (
    Divergence,
    EdgeTerm,
    MatchingProblem,
    Objective,
    Order,
    Reading,
    Relaxation,
    SelfLoops,
    conditional_gradient,
    mirror_descent,
    sinkhorn,
)

seeds = st.integers(0, 2**32 - 1)
relaxations = st.builds(
    Relaxation, st.sampled_from(list(Objective)), st.sampled_from(list(Order)), st.sampled_from(list(Reading))
)


def make_problem(seed, n, divergence=Divergence.CROSS_ENTROPY, relaxation=Relaxation(), batch=2, classes=3):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(batch, classes, n, n, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (batch, n, n), generator=generator).triu(1)
    sizes = torch.randint(1, n + 1, (batch,), generator=generator)
    mask = (torch.arange(n) < sizes[:, None]).double()
    labels = (labels + labels.mT) * (mask[:, :, None] * mask[:, None, :]).long()
    target = one_hot(labels, classes).permute(0, 3, 1, 2).double()
    linear = torch.rand(batch, n, n, generator=generator, dtype=torch.float64)
    term = EdgeTerm(logits + logits.mT, target, divergence, 0.5)
    plan = torch.rand(batch, n, n, generator=generator, dtype=torch.float64)
    return MatchingProblem(linear, (term,), mask, SelfLoops.EXCLUDED, relaxation), plan


def moved(problem, slots, nodes):
    """The same problem with slots and target nodes in other orders."""
    term = problem.terms[0]
    return MatchingProblem(
        problem.linear[:, slots][:, :, nodes],
        (EdgeTerm(term.prediction[..., slots, :][..., slots], term.target[..., nodes, :][..., nodes],
                  term.divergence, term.weight),),
        problem.mask[:, nodes],
        problem.self_loops,
        problem.relaxation,
    )  # fmt: skip


@given(seeds, st.integers(1, 6), st.sampled_from([Divergence.CROSS_ENTROPY, Divergence.KL]), relaxations)
@settings(max_examples=60, deadline=None)
def test_objective_and_gradient_are_equivariant(seed, n, divergence, relaxation):
    problem, plan = make_problem(seed, n, divergence, relaxation)
    generator = torch.Generator().manual_seed(seed)
    slots, nodes = torch.randperm(n, generator=generator), torch.randperm(n, generator=generator)
    other, other_plan = moved(problem, slots, nodes), plan[:, slots][:, :, nodes]
    torch.testing.assert_close(other.objective(other_plan), problem.objective(plan))
    torch.testing.assert_close(other.gradient(other_plan), problem.gradient(plan)[:, slots][:, :, nodes])


@given(seeds, st.integers(2, 6))
@settings(max_examples=15, deadline=None)
def test_solvers_are_equivariant(seed, n):
    problem, _ = make_problem(seed, n)
    generator = torch.Generator().manual_seed(seed)
    slots, nodes = torch.randperm(n, generator=generator), torch.randperm(n, generator=generator)
    # One step of the conditional gradient: an exact line search leaves ties that rounding breaks either way.
    for solver in (mirror_descent, partial(conditional_gradient, iterations=1)):
        plan, other = solver(problem), solver(moved(problem, slots, nodes))
        torch.testing.assert_close(other.matrix, plan.matrix[:, slots][:, :, nodes], rtol=1e-5, atol=1e-7)


@given(seeds, st.integers(1, 8), st.sampled_from([1.0, 0.1, 1e-3]))
@settings(max_examples=40, deadline=None)
def test_sinkhorn_is_equivariant_and_blind_to_row_constants(seed, n, epsilon):
    generator = torch.Generator().manual_seed(seed)
    cost = torch.randn(2, n, n, generator=generator, dtype=torch.float64)
    rows, columns = torch.randperm(n, generator=generator), torch.randperm(n, generator=generator)
    plan = sinkhorn(cost, epsilon, 10).matrix
    torch.testing.assert_close(
        sinkhorn(cost[:, rows][:, :, columns], epsilon, 10).matrix, plan[:, rows][:, :, columns]
    )
    shift = torch.randn(2, n, 1, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(sinkhorn(cost + shift, epsilon, 10).matrix, plan, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(sinkhorn(8 * cost, 8 * epsilon, 10).matrix, plan)


@given(seeds, st.integers(1, 5), st.integers(1, 4), relaxations)
@settings(max_examples=40, deadline=None)
def test_padding_changes_neither_objective_nor_gradient(seed, n, extra, relaxation):
    """Slots added beyond the capacity, put on padding by the plan, are not seen."""
    problem, plan = make_problem(seed, n, Divergence.KL, relaxation)
    term = problem.terms[0]
    grow = (0, extra, 0, extra)
    target = pad(term.target, grow)
    target[:, 0, n:, :] = target[:, 0, :, n:] = 1
    noise = torch.randn(target.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    prediction = noise + noise.mT
    prediction[..., :n, :n] = term.prediction
    larger_plan = pad(plan, grow)
    larger_plan[:, range(n, n + extra), range(n, n + extra)] = 1
    larger = MatchingProblem(
        pad(problem.linear, grow),
        (EdgeTerm(prediction, target, term.divergence, term.weight),),
        pad(problem.mask, (0, extra)),
        problem.self_loops,
        problem.relaxation,
    )
    torch.testing.assert_close(larger.objective(larger_plan), problem.objective(plan))
    torch.testing.assert_close(larger.gradient(larger_plan)[:, :n, :n], problem.gradient(plan))


@given(seeds, st.integers(1, 5), relaxations)
@settings(max_examples=30, deadline=None)
def test_a_sample_alone_is_the_sample_in_its_batch(seed, n, relaxation):
    problem, plan = make_problem(seed, n, relaxation=relaxation, batch=3)
    for sample in range(3):
        alone = problem.take(torch.tensor([sample]))
        torch.testing.assert_close(alone.objective(plan[[sample]])[0], problem.objective(plan)[sample])
        torch.testing.assert_close(alone.gradient(plan[[sample]])[0], problem.gradient(plan)[sample])
