"""Matchers that compute their plans."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from graphwright.graphs import Graph, GraphBatch, Prediction
from graphwright.losses import LossSettings, graph_loss, matching_problem
from graphwright.matching import LabelMatcher, SolverMatcher
from graphwright.settings import MATCHINGS
from graphwright.transport import conditional_gradient, mirror_descent
from tiny import random_batch, random_prediction, tiny_settings

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


@pytest.mark.parametrize("kind", ["mirror", "labels"])
def test_plans_under_mixed_precision_equal_those_in_single(kind):
    states, prediction, target = case(10, dtype=torch.float32)
    matcher = {
        "mirror": SolverMatcher(solve_mirror, LOSS),
        "labels": LabelMatcher(LOSS),
    }
    plain = matcher[kind](states, prediction, target)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = matcher[kind](states, prediction, target)
    assert mixed.plan.dtype is torch.float32
    assert torch.equal(mixed.plan, plain.plan)


def hexagon(edge_logit: float) -> tuple[Prediction, GraphBatch]:
    """A ring of six atoms as a target, all of them equivalent, and a prediction of it in another order."""
    ring = [(i, (i + 1) % 6) for i in range(6)]
    target = GraphBatch.collate([Graph.build(["C"] * 6, ring)], capacity=6)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    adjacency = target.adjacency(torch.float64)[:, order][:, :, order]
    return Prediction(
        presence=torch.full((1, 6), 4.0, dtype=torch.float64),
        edges=edge_logit * (2 * adjacency - 1),
        node_labels=torch.zeros(1, 6, 1, dtype=torch.float64),
    ), target


def test_mirror_descent_cannot_tell_equivalent_nodes_apart_unless_it_starts_twice():
    prediction, target = hexagon(5.0)
    states = torch.zeros(1, 6, 6, dtype=torch.float64)
    plans = {}
    for starts in (1, 2):
        run = tiny_settings(matching={"kind": "mirror", "tau": 0.5, "inner": 100, "starts": starts})
        torch.manual_seed(0)
        plans[starts] = MATCHINGS["mirror"].build(run, None, 6)(states, prediction, target).plan
    assert plans[1] == pytest.approx(torch.full((1, 6, 6), 1 / 6), abs=1e-6)
    problem = matching_problem(prediction, target, LOSS)
    uniform, broken = (problem.objective(plans[starts]).item() for starts in (1, 2))
    assert broken < 0.2 * uniform
