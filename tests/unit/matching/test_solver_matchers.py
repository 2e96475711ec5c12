"""Matchers that compute their plans, and the one that refines a learned plan."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from graphwright.losses import LossSettings, graph_loss, marginal_penalty, matching_problem
from graphwright.matching import LabelMatcher, RefinedMatcher, SolverMatcher
from graphwright.transport import conditional_gradient, mirror_descent
from tiny import LABELLED, learned_matcher, random_batch, random_prediction

LOSS = LossSettings()


def solve_mirror(problem):
    return mirror_descent(problem, tau=0.2, outer=7, inner=5).matrix


def solve_conditional_gradient(problem):
    return conditional_gradient(problem, iterations=6).matrix


def case(seed: int, sizes: tuple[int, ...] = (5, 3, 1, 0), n: int = 5, **options):
    target = random_batch(np.random.default_rng(seed), list(sizes), n)
    generator = torch.Generator().manual_seed(seed)
    prediction = random_prediction(generator, len(sizes), n, **options)
    states = torch.randn(len(sizes), n, 6, generator=generator).to(prediction.presence.dtype)
    return states.requires_grad_(), prediction, target


@pytest.mark.parametrize("solve", [solve_mirror, solve_conditional_gradient])
def test_a_solver_matchers_plan_is_the_solvers_and_carries_no_gradient(solve):
    states, prediction, target = case(0, requires_grad=True)
    match = SolverMatcher(solve, LOSS)(states, prediction, target)
    assert torch.equal(match.plan, solve(matching_problem(prediction, target, LOSS)).detach())
    assert not match.plan.requires_grad
    assert not match.auxiliary.any()
    graph_loss(prediction, target, match.plan, LOSS).total.sum().backward()
    assert states.grad is None
    assert prediction.edges.grad.abs().max() > 0


def test_a_solver_sees_the_weights_of_the_loss():
    states, prediction, target = case(1)
    plain, only_labels = LOSS, LossSettings(presence=0.0, adjacency=0.0, edge_labels=0.0)
    plans = [SolverMatcher(solve_mirror, loss)(states, prediction, target).plan for loss in (plain, only_labels)]
    assert (plans[0] - plans[1]).abs().max() > 0.05


@pytest.mark.parametrize("seed", range(5))
def test_the_label_matcher_equals_brute_force_over_permutations(seed):
    states, prediction, target = case(seed, (4, 3, 2, 1), n=4)
    plan = LabelMatcher(LOSS)(states, prediction, target).plan
    presence, labels = prediction.presence, prediction.node_labels.log_softmax(2)
    for at, graph in enumerate(target.graphs()):
        m = graph.size
        costs = {}
        for slots in itertools.permutations(range(4)):  # slots[j] is put on target position j
            kept = sum(torch.nn.functional.softplus(-presence[at, slots[j]]) for j in range(m))
            left = sum(torch.nn.functional.softplus(presence[at, slots[j]]) for j in range(m, 4))
            named = sum(-labels[at, slots[j], graph.node_labels[j]] for j in range(m))
            costs[slots] = float((kept + left) / 4 + named / m)
        chosen = tuple(plan[at].argmax(0).tolist())
        assert costs[chosen] == pytest.approx(min(costs.values()), abs=1e-12)
        assert torch.equal(plan[at].sum(0), torch.ones(4, dtype=plan.dtype))


def test_the_label_matcher_ignores_edges_and_diffused_labels():
    states, prediction, target = case(2, diffusion=True)
    matcher = LabelMatcher(LOSS)
    plan = matcher(states, prediction, target).plan
    shuffled = replace(prediction, edges=-3 * prediction.edges, diffusion=100 * prediction.diffusion.flip(1))
    assert torch.equal(matcher(states, shuffled, target).plan, plan)
    empty = replace(target, edge_labels=torch.zeros_like(target.edge_labels))
    assert torch.equal(matcher(states, prediction, empty).plan, plan)


def test_the_label_matchers_plan_carries_no_gradient():
    states, prediction, target = case(3, requires_grad=True)
    match = LabelMatcher(LOSS)(states, prediction, target)
    assert not match.plan.requires_grad
    assert set(match.plan.unique().tolist()) == {0.0, 1.0}


def refined(steps: int, n: int = 5, tau: float = 0.1, *, unrolled: bool = False) -> RefinedMatcher:
    torch.manual_seed(0)
    learned = learned_matcher(slots=n, epsilon=1e-2)
    return RefinedMatcher(learned, LOSS, tau=tau, steps=steps, inner=20, unrolled=unrolled)


def test_refined_its_learned_matcher_hears_how_far_the_training_is():
    matcher = refined(2)
    matcher.learned.temperature = replace(matcher.learned.temperature, warm=100 * matcher.learned.temperature.cold)
    matcher.at(0.25)
    assert matcher.learned.epsilon == pytest.approx(1e-1)


def test_refined_by_no_steps_is_the_learned_plan():
    states, prediction, target = case(4)
    matcher = refined(0)
    match = matcher(states, prediction, target)
    assert torch.equal(match.plan, matcher.learned.plan(states, target, prediction))
    assert match.plan.requires_grad
    assert not match.auxiliary.any()


def test_refined_is_mirror_descent_from_the_learned_plan():
    states, prediction, target = case(5)
    matcher = refined(2)
    match = matcher(states, prediction, target)
    learned = matcher.learned.plan(states, target, prediction)
    problem = matching_problem(prediction, target, LOSS)
    expected = mirror_descent(problem, learned.detach(), tau=0.1, outer=2, inner=20).matrix
    assert torch.equal(match.plan, expected)
    assert not match.plan.requires_grad
    torch.testing.assert_close(match.auxiliary, problem.objective(learned) + marginal_penalty(learned))


def test_the_refined_matcher_pays_for_its_own_plans_marginals():
    states, prediction, target = case(5)
    matcher = refined(2)
    matcher.learned.epsilon, matcher.learned.iterations = 1e-4, 1  # far from converged
    learned = matcher.learned.plan(states, target, prediction)
    objective = matching_problem(prediction, target, LOSS).objective(learned)
    paid = matcher(states, prediction, target).auxiliary - objective
    assert paid.max() > 1e-2
    torch.testing.assert_close(paid, LOSS.marginals * marginal_penalty(learned))


def test_unrolled_refinement_is_the_same_plan_with_its_gradient():
    states, prediction, target = case(5)
    detached, unrolled = refined(2), refined(2, unrolled=True)
    match = unrolled(states, prediction, target)
    torch.testing.assert_close(match.plan, detached(states, prediction, target).plan, rtol=1e-4, atol=1e-6)
    assert not match.auxiliary.any()
    graph_loss(prediction, target, match.plan, LOSS).total.sum().backward()
    gradients = [parameter.grad for parameter in unrolled.parameters()]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)
    assert any(gradient.abs().sum() > 0 for gradient in gradients)


def test_the_unrolled_steps_are_differentiated_through_the_objective_too():
    states, prediction, target = case(5)
    matcher = refined(2, unrolled=True)
    plan = matcher.learned.plan(states, target, prediction).detach().requires_grad_()
    problem = matching_problem(prediction, target, LOSS)
    assert torch.autograd.gradcheck(lambda start: matcher._unroll(problem, start), plan, atol=1e-6)


def test_more_refinement_does_not_raise_the_objective():
    states, prediction, target = case(6, (6,) * 40, n=6, scale=0.5)
    problem = matching_problem(prediction, target, LOSS)
    values = []
    for steps in (0, 1, 3, 10):
        plan = refined(steps, n=6)(states, prediction, target).plan.detach()
        values.append(problem.objective(plan))
    for before, after in itertools.pairwise(values):
        assert after.mean() < before.mean()
        assert (after < before + 1e-3).double().mean() > 0.9


@pytest.mark.parametrize("steps", [0, 2])
def test_the_refined_matcher_learns_and_the_predictor_learns_on_the_refined_plan(steps):
    states, prediction, target = case(7, requires_grad=True)
    matcher = refined(steps)
    match = matcher(states, prediction, target)
    (graph_loss(prediction, target, match.plan, LOSS).total + match.auxiliary).sum().backward()
    # Without positions an edge of the target is all that the relation weights see: there is one here.
    for name, parameter in matcher.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
    direct = random_prediction(torch.Generator().manual_seed(7), 4, 5, LABELLED, requires_grad=True)
    graph_loss(direct, target, match.plan.detach(), LOSS).total.sum().backward()
    torch.testing.assert_close(prediction.edges.grad, direct.edges.grad)


@pytest.mark.parametrize(
    "make",
    [
        partial(SolverMatcher, solve_mirror, LOSS),
        partial(SolverMatcher, solve_conditional_gradient, LOSS),
        partial(LabelMatcher, LOSS),
    ],
    ids=["mirror", "conditional gradient", "labels"],
)
@pytest.mark.parametrize("scale", [0.0, 1e3, 1e8])
def test_solvers_stay_finite_in_float32_with_adversarial_logits(make, scale):
    states, prediction, target = case(8, scale=scale, dtype=torch.float32)
    plan = make()(states, prediction, target).plan
    assert torch.isfinite(plan).all()
    if scale < 1e8:  # beyond, a plan's logarithm has no digits left
        assert (plan.sum((1, 2)) - 5).abs().max() < 1e-2


@pytest.mark.parametrize("scale", [0.0, 1e3, 1e8])
def test_the_refined_matcher_stays_finite_in_float32_with_adversarial_logits(scale):
    states, prediction, target = case(9, scale=scale, dtype=torch.float32)
    matcher = refined(3).float()
    match = matcher(states, prediction, target)
    match.auxiliary.sum().backward()
    assert torch.isfinite(match.plan).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in matcher.parameters())


@pytest.mark.parametrize("kind", ["mirror", "labels", "refined"])
def test_plans_under_mixed_precision_equal_those_in_single(kind):
    states, prediction, target = case(10, dtype=torch.float32)
    matcher = {
        "mirror": SolverMatcher(solve_mirror, LOSS),
        "labels": LabelMatcher(LOSS),
        "refined": refined(2).float(),
    }
    plain = matcher[kind](states, prediction, target)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = matcher[kind](states, prediction, target)
    assert mixed.plan.dtype is torch.float32
    tolerance = 0.1 if kind == "refined" else 0.0  # its encoders are in half precision
    torch.testing.assert_close(mixed.plan, plain.plan, atol=tolerance, rtol=0)
