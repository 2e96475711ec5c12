"""Settings to objects, and the step that they compute."""

from itertools import product

import numpy as np
import pytest
import torch

from graphwright.graphs import GraphBatch
from graphwright.losses import LossSettings, graph_loss, matching_problem
from graphwright.matching import LabelMatcher, LearnedMatcher
from graphwright.matching.matcher import ConditionalGradientMatcher, MirrorMatcher, OrderMatcher
from graphwright.settings import MATCHINGS
from graphwright.tasks.coloring import ColoringDataset
from graphwright.training import TrainingModel, build, build_matcher
from graphwright.training.assembly import StepResult, term_names
from graphwright.transport import SelfLoops, conditional_gradient, inner_product_plan, l1_plan, mirror_descent
from tiny import WITH_STATE, random_batch, random_prediction, tiny_settings

KINDS = {
    "learned": LearnedMatcher,
    "mirror": MirrorMatcher,
    "conditional_gradient": ConditionalGradientMatcher,
    "labels": LabelMatcher,
    "order": OrderMatcher,
}


def batch(run):
    images, target = ColoringDataset(run.task.config, "train").batch(range(4))
    return images, target.mask, target.node_labels, target.edge_labels


def model_of(**sections) -> TrainingModel:
    torch.manual_seed(0)
    return build(tiny_settings(**sections))


def step(model: TrainingModel) -> StepResult:
    result: StepResult = model(*batch(tiny_settings()))
    return result


def test_every_kind_of_matching_has_a_matcher():
    assert set(KINDS) == set(MATCHINGS.names())
    for kind, expected in KINDS.items():
        assert type(build_matcher(tiny_settings(matching={"kind": kind}))) is expected


@pytest.mark.parametrize(
    ("kind", "objective"),
    [*product(sorted(set(KINDS) - {"conditional_gradient"}), ["J", "J_a", "J_b"]), ("conditional_gradient", "J")],
)
def test_every_matching_trains_every_parameter_under_every_objective(kind, objective):
    model = model_of(matching={"kind": kind}, loss={"objective": objective, "divergence": "kl"})
    result = step(model)
    result.loss.backward()
    assert torch.isfinite(result.loss)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        # On graphs this small a plan may already be exact, and a relation's weight idle; never the predictor's.
        assert parameter.grad.abs().max() > 0 or name.startswith("matcher."), name


def test_conditional_gradient_refuses_an_objective_that_is_not_quadratic():
    with pytest.raises(ValueError, match=r"needs loss\.objective J"):
        step(model_of(matching={"kind": "conditional_gradient"}, loss={"objective": "J_a"}))


def test_the_loss_is_the_weighted_sum_of_its_terms_plus_the_auxiliary():
    model = model_of(matching=WITH_STATE, loss={"adjacency": 0.3, "presence": 2.0})
    result = step(model)
    terms = dict(zip(term_names(model.loss), result.terms.tolist(), strict=True))
    weights = {name: model.loss.weight(name) for name in model.loss.terms()}
    weights |= {"auxiliary": 1.0, "recognition": 0.0}
    assert set(weights) == set(terms)
    expected = sum(weights[name] * terms[name] for name in terms)
    assert float(result.loss.detach()) == pytest.approx(expected, rel=1e-5)
    assert terms["auxiliary"] > 0
    assert not result.terms.requires_grad


def test_the_loss_is_that_of_the_matchers_plan():
    model = model_of(matching={"kind": "mirror"})
    images, *_ = tensors = batch(tiny_settings())
    _, target = ColoringDataset(tiny_settings().task.config, "train").batch(range(4))
    predicted = model.predictor(images)
    match = model.matcher(predicted.states, predicted.graphs, target)
    expected = graph_loss(predicted.graphs, target, match.plan, model.loss).total.mean()
    torch.testing.assert_close(model(*tensors).loss, expected)


def test_settings_of_the_loss_reach_it():
    settings = tiny_settings(loss={"objective": "J_b", "order": "target_first"}).loss
    assert settings.relaxation.objective.value == "J_b"
    assert settings.relaxation.order.value == "target_first"


def test_settings_of_a_solver_reach_it():
    target = random_batch(np.random.default_rng(0), [7] * 8, 7)
    prediction = random_prediction(torch.Generator().manual_seed(0), 8, 7)
    problem = matching_problem(prediction, target, LossSettings())

    def solved(**options):
        return build_matcher(tiny_settings(matching=options)).solve(problem)

    mirror = solved(kind="mirror", tau=0.7, outer=4, inner=9)
    assert torch.equal(mirror, mirror_descent(problem, tau=0.7, outer=4, inner=9).matrix)
    one = solved(kind="conditional_gradient", steps=1)
    assert torch.equal(one, conditional_gradient(problem, iterations=1).matrix)
    assert not torch.equal(one, solved(kind="conditional_gradient"))


def test_settings_of_a_learned_matcher_reach_it():
    run = tiny_settings(
        matching={
            "kind": "learned",
            "temperature": 1e-2,
            "iterations": 3,
            "cost": "inner_product",
            "linear_costs": 0.7,
            "plan": "rounded",
            "probe_every": 7,
        },
        loss={"marginals": 0.3, "self_loops": "excluded"},
    )
    matcher = build_matcher(run)
    assert matcher.epsilon == pytest.approx(1e-2 * (256 / 8) ** 0.5 / 4**2)
    assert (matcher.linear_costs, matcher.rounded, matcher.probe_every) == (0.7, True, 7)
    assert matcher.iterations == 3
    assert matcher.embedding_plan is inner_product_plan
    assert matcher.loss == run.loss
    plain = build_matcher(tiny_settings(matching={"kind": "learned"}))
    assert (plain.linear_costs, plain.rounded, plain.loss) == (0.0, False, LossSettings())
    assert plain.embedding_plan is l1_plan


def test_self_loops_count_unless_the_settings_say_otherwise():
    assert tiny_settings().loss.self_loops is SelfLoops.INCLUDED
    excluded = tiny_settings(loss={"self_loops": "excluded"})
    assert excluded.loss.self_loops is SelfLoops.EXCLUDED
    losses = [float(step(model_of(loss={"self_loops": loops.value})).loss.detach()) for loops in SelfLoops]
    assert losses[0] > losses[1] + 0.01  # at first plans are spread, and pay for it


@pytest.mark.parametrize(("pairs", "product"), [("sum", False), ("product", True)])
def test_pairs_are_read_as_the_settings_say(pairs, product):
    assert (model_of(model={"pairs": pairs}).predictor.head.pair_factor is not None) == product


@pytest.mark.parametrize("diffusion", [False, True])
def test_neighbours_colours_are_predicted_and_matched_by_if_the_task_says_so(diffusion):
    model = model_of(task={"diffusion": diffusion})
    assert (model.predictor.head.diffusion is not None) == diffusion
    terms = dict(zip(term_names(LossSettings()), step(model).terms.tolist(), strict=True))
    assert (terms["diffusion"] > 0) == diffusion


@pytest.mark.parametrize("linear_costs", [0.0, 1.0])
def test_under_a_rounded_plan_every_parameter_is_trained(linear_costs):
    options = {"kind": "learned", "plan": "rounded", "linear_costs": linear_costs}
    model = model_of(matching=options)
    result = step(model)
    result.loss.backward()
    terms = dict(zip(term_names(LossSettings()), result.terms.tolist(), strict=True))
    assert terms["auxiliary"] > 0
    assert terms["marginals"] < 1e-6  # of a permutation
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_in_mixed_precision_is_close_to_one_in_single(kind):
    model = model_of(matching={"kind": kind})
    plain = step(model)
    model = model_of(matching={"kind": kind})
    with torch.autocast("cpu", torch.bfloat16):
        mixed = step(model)
    assert mixed.loss.dtype is torch.float32
    mixed.loss.backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
    if kind != "labels":  # an exact assignment may jump
        torch.testing.assert_close(mixed.loss, plain.loss, atol=0.5, rtol=0.1)


def test_more_starts_of_conditional_gradient_are_never_worse():
    images, *tensors = batch(tiny_settings())
    model = model_of(matching={"kind": "conditional_gradient"})
    target = GraphBatch(*tensors, model.vocabulary)
    predicted = model.predictor(images)
    problem = matching_problem(predicted.graphs, target, model.loss)
    one, many = (
        build_matcher(tiny_settings(matching={"kind": "conditional_gradient", "starts": starts}))(
            predicted.states, predicted.graphs, target
        ).plan
        for starts in (1, 6)
    )
    assert (problem.objective(many) <= problem.objective(one) + 1e-6).all()
    assert not torch.equal(one, many)
