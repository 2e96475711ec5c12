"""The learned matcher: its symmetries, its temperature, its gradients."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from oracles import permutations

from graphwright.graphs import Attribute, Graph, GraphBatch, Prediction, Vocabulary
from graphwright.losses import LossSettings, graph_loss, matching_problem
from graphwright.matching import LearnedMatcher
from graphwright.matching.learned import epsilon_of, plan_entropy
from graphwright.transport import conditional_gradient, inner_product_plan, l1_plan
from tiny import (
    LABELLED,
    PLAIN,
    complete,
    cycle,
    embeddings,
    learned_matcher,
    random_batch,
    random_prediction,
    sure_prediction,
    tiny_settings,
    undecided,
)

PLANS = [l1_plan, inner_product_plan]


def states(batch: int, slots: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(batch, slots, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(
        dtype
    )


def plan_of(matcher: LearnedMatcher, seen: torch.Tensor, target: GraphBatch) -> torch.Tensor:
    """Of a matcher that looks at states, and would find nothing in the prediction."""
    return soft_plan(matcher, seen, target, undecided(target, seen.dtype))


def soft_plan(
    matcher: LearnedMatcher, seen: torch.Tensor, target: GraphBatch, prediction: Prediction
) -> torch.Tensor:
    """Of states and, where the matcher looks at them, of the prediction's linear costs."""
    linear = matching_problem(prediction, target, matcher.loss).linear if matcher.linear_costs else None
    return matcher.plan(seen, target, linear)


def order_of(batch: GraphBatch, seed: int) -> torch.Tensor:
    keys = torch.rand(batch.mask.shape, generator=torch.Generator().manual_seed(seed))
    return (keys + (~batch.mask) * 10).argsort(1)


@pytest.mark.parametrize("embedding_plan", PLANS)
@pytest.mark.parametrize("seed", range(3))
def test_without_positions_a_permuted_target_permutes_the_plans_columns(embedding_plan, seed):
    torch.manual_seed(seed)
    target = random_batch(np.random.default_rng(seed), [6, 4, 1], 6)
    matcher, order = learned_matcher(slots=6, embedding_plan=embedding_plan), order_of(target, seed)
    plan = plan_of(matcher, states(3, 6), target)
    moved = plan_of(matcher, states(3, 6), target.permute(order))
    assert plan.std() > 0.05
    torch.testing.assert_close(moved, plan.gather(2, order[:, None, :].expand_as(plan)), atol=1e-9, rtol=0)


@pytest.mark.parametrize("embedding_plan", PLANS)
@pytest.mark.parametrize("graph", [cycle(5), cycle(6), complete(4)], ids=["cycle 5", "cycle 6", "complete 4"])
@pytest.mark.parametrize("padding", [0, 3])
def test_on_a_vertex_transitive_target_the_plan_is_uniform_over_the_real_columns(embedding_plan, graph, padding):
    torch.manual_seed(0)
    n = graph.size + padding
    target = GraphBatch.collate([graph], n)
    plan = plan_of(learned_matcher(PLAIN, slots=n, embedding_plan=embedding_plan), states(1, n), target)[0]
    real = plan[:, : graph.size]
    torch.testing.assert_close(real, real.mean(1, keepdim=True).expand_as(real), atol=1e-10, rtol=0)
    if not padding:
        torch.testing.assert_close(plan, torch.full_like(plan, 1 / n), atol=1e-10, rtol=0)
    else:
        assert (plan[:, 0] - plan[:, -1]).abs().max() > 0.01


@pytest.mark.parametrize("graph", [cycle(5), cycle(6), complete(4)], ids=["cycle 5", "cycle 6", "complete 4"])
def test_positions_break_that_symmetry(graph):
    torch.manual_seed(0)
    target = GraphBatch.collate([graph])
    matcher = learned_matcher(PLAIN, slots=graph.size, positions=4)
    plan = plan_of(matcher, states(1, graph.size), target)[0]
    assert (plan - 1 / graph.size).abs().max() > 0.05
    order = torch.arange(graph.size).roll(1)[None]
    assert (
        plan_of(matcher, states(1, graph.size), target.permute(order))[0] - plan[:, order[0]]
    ).abs().max() > 0.01


def test_permuted_slots_do_not_permute_rows_since_every_slot_has_a_code():
    torch.manual_seed(0)
    target = random_batch(np.random.default_rng(0), [5], 5)
    matcher, seen = learned_matcher(slots=5), states(1, 5)
    matcher.slot_code.data.normal_()
    flipped = plan_of(matcher, seen.flip(1), target)
    assert (flipped - plan_of(matcher, seen, target).flip(1)).abs().max() > 0.05
    matcher.slot_code.data.zero_()
    torch.testing.assert_close(plan_of(matcher, seen.flip(1), target), plan_of(matcher, seen, target).flip(1))


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_the_plan_is_that_of_the_embeddings_of_slots_nodes_and_padding(embedding_plan):
    torch.manual_seed(0)
    target, seen = random_batch(np.random.default_rng(1), [5, 2], 5), states(2, 5)
    matcher = learned_matcher(slots=5, embedding_plan=embedding_plan, epsilon=3e-3, iterations=7)
    slots = matcher.project_slots(seen + matcher.slot_code)
    nodes = matcher.project_nodes(matcher.target_encoder(target)[target.mask])
    padding = matcher.project_nodes(matcher.padding)
    expected = embedding_plan(slots, nodes, target.sizes, padding, 3e-3, 7)
    torch.testing.assert_close(plan_of(matcher, seen, target), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_the_plan_does_not_depend_on_the_scale_of_the_embeddings(embedding_plan):
    torch.manual_seed(0)
    target, seen = random_batch(np.random.default_rng(1), [5], 5), states(1, 5)
    matcher = learned_matcher(slots=5, embedding_plan=embedding_plan)
    before = plan_of(matcher, seen, target)
    with torch.no_grad():
        for module in (matcher.project_slots[1], matcher.project_nodes):
            module.weight *= 7
            module.bias *= 7
    torch.testing.assert_close(plan_of(matcher, seen, target), before)


def test_a_smaller_epsilon_gives_a_sharper_plan():
    torch.manual_seed(0)
    target, seen = random_batch(np.random.default_rng(2), [6, 6, 6], 6), states(3, 6)
    matcher = learned_matcher(slots=6)
    entropies = []
    for epsilon in (1.0, 1e-2, 1e-3, 1e-4):
        matcher.epsilon = epsilon
        entropies.append(plan_entropy(plan_of(matcher, seen, target), target))
    assert entropies == sorted(entropies, reverse=True)
    assert entropies[0] == pytest.approx(np.log(6), abs=1e-3)
    assert entropies[-1] < 0.5


def test_more_iterations_bring_the_marginals_closer():
    torch.manual_seed(0)
    target, seen = random_batch(np.random.default_rng(2), [6, 4, 5], 6), states(3, 6)
    matcher = learned_matcher(slots=6, epsilon=1e-3)

    def error(iterations: int) -> float:
        matcher.iterations = iterations
        plan = plan_of(matcher, seen, target).detach()
        return float((plan.sum(2) - 1).abs().max() + (plan.sum(1) - 1).abs().max())

    assert error(1) > 2 * error(20) > 4 * error(400)


def test_gradients_reach_both_encoders_and_the_predictor():
    torch.manual_seed(0)
    target, seen = random_batch(np.random.default_rng(3), [4, 5], 6), states(2, 6).requires_grad_()
    matcher = learned_matcher(slots=6, positions=3)
    plan = plan_of(matcher, seen, target)
    (plan * torch.randn(plan.shape, dtype=plan.dtype)).sum().backward()
    for name, parameter in matcher.named_parameters():
        assert parameter.grad is not None, name
        # A constant added to all nodes of the L1 cost is not idle, nor is one added to all slots.
        assert parameter.grad.abs().max() > 0, name
    assert seen.grad.abs().max() > 0


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_the_gradient_is_that_of_the_plan(embedding_plan):
    torch.manual_seed(0)
    target = random_batch(np.random.default_rng(4), [3, 4], 4)
    matcher = learned_matcher(slots=4, embedding_plan=embedding_plan, epsilon=1e-2, iterations=5)
    assert torch.autograd.gradcheck(lambda seen: plan_of(matcher, seen, target), states(2, 4).requires_grad_())


def test_a_match_has_nothing_besides_the_plan_to_learn():
    torch.manual_seed(0)
    target = random_batch(np.random.default_rng(5), [4, 2], 4)
    prediction = random_prediction(torch.Generator().manual_seed(0), 2, 4)
    matcher = learned_matcher(slots=4)
    for mode in (True, False):
        match = matcher.train(mode)(states(2, 4), prediction, target)
        assert torch.equal(match.plan, soft_plan(matcher, states(2, 4), target, prediction))
        assert torch.equal(match.auxiliary, torch.zeros(2, dtype=torch.float64))
        assert match.plan.requires_grad
        assert set(match.health) == {"plan_entropy", "marginal_error"} | ({"gap"} if mode else set())


def test_health_is_the_plans_entropy_its_worst_marginal_and_what_it_costs_beside_a_solvers():
    torch.manual_seed(0)
    target, seen = random_batch(np.random.default_rng(5), [5, 4, 2], 5), states(3, 5)
    prediction = random_prediction(torch.Generator().manual_seed(0), 3, 5, diffusion=True)
    settings = LossSettings(marginals=0.6, diffusion=0.3)
    matcher = learned_matcher(slots=5, epsilon=1e-4, iterations=2, loss=settings)  # far from converged
    plan = soft_plan(matcher, seen, target, prediction).detach()
    health = matcher(seen, prediction, target).health
    assert health["plan_entropy"] == pytest.approx(plan_entropy(plan, target))
    worst = max(float((plan.sum(axis) - 1).abs().max()) for axis in (1, 2))
    assert worst > 0.01
    assert health["marginal_error"] == pytest.approx(worst)
    cost = graph_loss(prediction, target, plan, settings).total.sum()
    solved = conditional_gradient(matching_problem(prediction, target, settings)).matrix
    least = graph_loss(prediction, target, solved, settings).total.sum()
    assert health["gap"] == pytest.approx(float(cost / least) - 1, rel=1e-6)
    assert health["gap"] > 0.1


def test_the_gap_is_looked_at_in_the_first_step_and_then_every_few_and_the_count_is_part_of_the_state():
    torch.manual_seed(0)
    target, seen = random_batch(np.random.default_rng(5), [4, 2], 4), states(2, 4)
    prediction = random_prediction(torch.Generator().manual_seed(0), 2, 4)
    matcher, other = (learned_matcher(slots=4, probe_every=3) for _ in range(2))
    assert ["gap" in matcher(seen, prediction, target).health for _ in range(5)] == [
        True,
        False,
        False,
        True,
        False,
    ]
    matcher.eval()(seen, prediction, target)
    other.load_state_dict(matcher.state_dict())
    assert ["gap" in other(seen, prediction, target).health for _ in range(2)] == [False, True]


@pytest.mark.parametrize("objective", ["J_a", "J_b"])
def test_without_a_quadratic_objective_there_is_no_solver_to_be_compared_with(objective):
    target, seen = random_batch(np.random.default_rng(5), [4, 2], 4), states(2, 4)
    prediction = random_prediction(torch.Generator().manual_seed(0), 2, 4)
    settings = LossSettings(divergence="kl", objective=objective)
    matcher = learned_matcher(slots=4, loss=settings, rounded=True)
    match = matcher(seen, prediction, target)
    assert set(match.health) == {"plan_entropy", "marginal_error"}
    assert match.auxiliary.requires_grad


def rounded_case(**options):
    torch.manual_seed(0)
    target = random_batch(np.random.default_rng(12), [5, 4, 2], 5)
    generator = torch.Generator().manual_seed(12)
    prediction = random_prediction(generator, 3, 5, diffusion=True, requires_grad=True)
    settings = LossSettings(marginals=0.6, adjacency=0.9)
    matcher = learned_matcher(slots=5, epsilon=1e-2, positions=3, loss=settings, rounded=True, **options)
    return matcher, states(3, 5).requires_grad_(), prediction, target, settings


def test_a_rounded_plan_is_the_permutation_that_has_most_of_the_soft_one():
    matcher, seen, prediction, target, _ = rounded_case()
    soft = soft_plan(matcher, seen, target, prediction).detach()
    plan = matcher(seen, prediction, target).plan
    assert not plan.requires_grad
    assert set(plan.unique().tolist()) == {0.0, 1.0}
    assert all(torch.equal(plan.sum(axis), torch.ones(3, 5, dtype=plan.dtype)) for axis in (1, 2))
    most = torch.stack([(soft * each).sum((1, 2)) for each in permutations(5)]).amax(0)
    torch.testing.assert_close((soft * plan).sum((1, 2)), most)
    assert soft.max() < 0.95  # there was something to round


def test_a_matcher_whose_plans_are_rounded_learns_from_the_objective_of_its_soft_ones():
    matcher, seen, prediction, target, settings = rounded_case()
    match = matcher(seen, prediction, target)
    soft = soft_plan(matcher, seen, target, prediction)
    torch.testing.assert_close(match.auxiliary, graph_loss(prediction, target, soft, settings).total)
    match.auxiliary.sum().backward()
    for name, parameter in matcher.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
    for logits in (prediction.presence, prediction.edges, prediction.node_labels, prediction.diffusion):
        assert logits.grad is None


def test_a_rounding_matchers_own_loss_reaches_the_states():
    matcher, seen, prediction, target, _ = rounded_case()
    matcher(seen, prediction, target).auxiliary.sum().backward()
    assert seen.grad.abs().max() > 0


def test_the_predictor_learns_from_the_permutation_alone():
    matcher, seen, prediction, target, settings = rounded_case()
    match = matcher(seen, prediction, target)
    graph_loss(prediction, target, match.plan, settings).total.sum().backward()
    assert prediction.edges.grad.abs().max() > 0
    assert seen.grad is None
    assert all(parameter.grad is None for parameter in matcher.parameters())


def test_in_evaluation_nothing_is_rounded_and_nothing_changes():
    matcher, seen, prediction, target, _ = rounded_case()
    before = {name: value.clone() for name, value in matcher.eval().state_dict().items()}
    match = matcher(seen, prediction, target)
    assert torch.equal(match.plan, soft_plan(matcher, seen, target, prediction))
    assert not match.auxiliary.any()
    assert all(torch.equal(value, before[name]) for name, value in matcher.state_dict().items())


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_linear_costs_are_added_to_the_distances_in_nats_and_carry_no_gradient(embedding_plan):
    torch.manual_seed(0)
    target, seen = random_batch(np.random.default_rng(13), [5, 2], 5), states(2, 5)
    prediction = random_prediction(torch.Generator().manual_seed(13), 2, 5, diffusion=True, requires_grad=True)
    settings = LossSettings(diffusion=0.4)
    options = {"slots": 5, "embedding_plan": embedding_plan, "epsilon": 3e-3, "loss": settings}
    matcher = learned_matcher(**options, linear_costs=0.7)
    slots = matcher.project_slots(seen + matcher.slot_code)
    nodes = matcher.project_nodes(matcher.target_encoder(target)[target.mask])
    padding = matcher.project_nodes(matcher.padding)
    # Of one slot and one node: the mean over slots is taken back, and that over nodes is N / m.
    linear = torch.stack(
        [
            5 * graph_loss(prediction, target, only.expand(2, 5, 5), settings).presence
            + 5 * graph_loss(prediction, target, only.expand(2, 5, 5), settings).node_labels
            + 5 * 0.4 * graph_loss(prediction, target, only.expand(2, 5, 5), settings).diffusion
            for only in torch.eye(25, dtype=torch.float64).view(25, 5, 5)
        ],
        1,
    ).view(2, 5, 5)
    expected = embedding_plan(slots, nodes, target.sizes, padding, 3e-3, 20, 0.7 * linear.detach())
    plan = soft_plan(matcher, seen, target, prediction)
    torch.testing.assert_close(plan, expected, atol=1e-10, rtol=0)
    without = learned_matcher(**options)
    without.load_state_dict(matcher.state_dict())
    assert (plan - soft_plan(without, seen, target, prediction)).abs().max() > 0.01
    plan.square().sum().backward()
    for logits in (prediction.presence, prediction.edges, prediction.node_labels, prediction.diffusion):
        assert logits.grad is None
    assert matcher.project_nodes.weight.grad.abs().max() > 0


def test_with_linear_costs_a_right_prediction_is_matched_before_anything_is_learnt():
    torch.manual_seed(0)
    rng = np.random.default_rng(14)
    target = random_batch(rng, [6, 5, 6], 6)
    slots = torch.stack([torch.from_numpy(rng.permutation(6)) for _ in range(3)])
    prediction = sure_prediction(target, slots)
    linear = matching_problem(prediction, target).linear
    costs = []
    for weight in (0.0, 1.0):
        matcher = learned_matcher(slots=6, epsilon=1e-4, iterations=100, linear_costs=weight)
        plan = soft_plan(matcher, states(3, 6), target, prediction).detach()
        costs.append(float((plan * linear).sum()))
    assert costs[1] < 0.01 * costs[0]


@pytest.mark.parametrize("linear_costs", [0.0, 1.0])
def test_linear_costs_leave_padding_one_column(linear_costs):
    torch.manual_seed(0)
    target = random_batch(np.random.default_rng(15), [2, 4], 6)
    prediction = random_prediction(torch.Generator().manual_seed(15), 2, 6)
    matcher = learned_matcher(slots=6, linear_costs=linear_costs)
    plan = soft_plan(matcher, states(2, 6), target, prediction)
    for sample, size in enumerate((2, 4)):
        rest = plan[sample, :, size:]
        torch.testing.assert_close(rest, rest[:, :1].expand_as(rest), atol=1e-12, rtol=0)


@pytest.mark.parametrize(("slots", "dimension"), [(10, 256), (20, 256), (10, 64), (32, 128), (1, 1)])
def test_a_temperature_is_epsilon_times_the_square_of_the_slots_at_a_width_of_256(slots, dimension):
    epsilon = epsilon_of(4.5e-3, slots, dimension)
    assert epsilon == pytest.approx(4.5e-3 * (256 / dimension) ** 0.5 / slots**2, rel=1e-12)


def test_relative_contrasts_of_distances_shrink_as_the_root_of_the_width():
    """What the width's factor is for: plans of random embeddings are about as decided at every width."""
    entropies = []
    for dimension in (16, 64, 256, 1024):
        slots, nodes, padding = embeddings([10] * 40, 10, dimension, dtype=torch.float32)
        epsilon = epsilon_of(2e-2, 10, dimension)
        plan = l1_plan(slots, nodes, torch.full((40,), 10), padding, epsilon, 50)
        entropies.append(-float((plan * plan.clamp_min(1e-30).log()).sum()) / 400)
    assert max(entropies) < 1.1 * min(entropies)
    assert 0.5 < entropies[0] < 2.0


def test_plan_entropy_is_that_of_the_real_columns():
    target = random_batch(np.random.default_rng(6), [2, 1], 3)
    plan = torch.full((2, 3, 3), 1 / 3)
    plan[0, :, :2] = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert plan_entropy(plan, target) == pytest.approx(np.log(3) / 3, abs=1e-6)
    assert plan_entropy(plan, random_batch(np.random.default_rng(6), [0, 0], 3)) == 0.0


@pytest.mark.parametrize("embedding_plan", PLANS)
@pytest.mark.parametrize("scale", [0.0, 1e-20, 1e-3, 1e3, 1e18])
@pytest.mark.parametrize("epsilon", [1e-6, 4.5e-5, 1e-1])
def test_plans_and_gradients_stay_finite_in_float32_whatever_the_states(embedding_plan, scale, epsilon):
    torch.manual_seed(0)
    target = random_batch(np.random.default_rng(7), [10, 5, 1, 0], 10)
    matcher = learned_matcher(
        slots=10, embedding_plan=embedding_plan, epsilon=epsilon, positions=4, dtype=torch.float32
    )
    seen = (scale * states(4, 10, dtype=torch.float32)).requires_grad_()
    plan = plan_of(matcher, seen, target)
    plan.square().sum().backward()
    assert torch.isfinite(plan).all()
    assert plan.sum((1, 2)).sub(10).abs().max() < 1e-2
    assert torch.isfinite(seen.grad).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in matcher.parameters())


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_embeddings_that_are_all_alike_give_the_uniform_plan_and_finite_gradients(embedding_plan):
    matcher = learned_matcher(slots=4, embedding_plan=embedding_plan, epsilon=4.5e-5, dtype=torch.float32)
    with torch.no_grad():
        for module in (matcher.project_slots[1], matcher.project_nodes):
            module.weight.zero_()
            module.bias.fill_(0.3)
    plan = plan_of(matcher, states(2, 4, dtype=torch.float32), random_batch(np.random.default_rng(8), [4, 2], 4))
    plan.square().sum().backward()
    torch.testing.assert_close(plan, torch.full_like(plan, 0.25))
    assert all(torch.isfinite(parameter.grad).all() for parameter in matcher.parameters())


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_embeddings_that_have_all_but_vanished_have_finite_gradients(embedding_plan):
    matcher = learned_matcher(slots=4, embedding_plan=embedding_plan, epsilon=4.5e-5, dtype=torch.float32)
    with torch.no_grad():
        for module in (matcher.project_slots[1], matcher.project_nodes):
            module.weight *= 1e-36
            module.bias.zero_()
    plan = plan_of(matcher, states(2, 4, dtype=torch.float32), random_batch(np.random.default_rng(8), [4, 2], 4))
    (plan * torch.randn(plan.shape, generator=torch.Generator().manual_seed(0))).sum().backward()
    assert torch.isfinite(plan).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in matcher.parameters())


def test_one_slot_is_a_plan_of_one():
    target = random_batch(np.random.default_rng(9), [1, 0], 1)
    for embedding_plan in PLANS:
        plan = plan_of(learned_matcher(slots=1, embedding_plan=embedding_plan), states(2, 1), target)
        torch.testing.assert_close(plan, torch.ones_like(plan))


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_under_mixed_precision_the_plan_is_float32_and_keeps_its_marginals(embedding_plan):
    torch.manual_seed(0)
    target = random_batch(np.random.default_rng(10), [10, 6], 10)
    matcher = learned_matcher(
        slots=10, embedding_plan=embedding_plan, epsilon=1e-3, iterations=200, dtype=torch.float32
    )
    seen = states(2, 10, dtype=torch.float32).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        plan = plan_of(matcher, seen, target)
    assert plan.dtype is torch.float32
    assert (plan.sum(1) - 1).abs().max() < 1e-3
    plan.square().sum().backward()
    assert torch.isfinite(seen.grad).all()


def test_padding_of_the_target_encoder_does_not_leak_into_the_plan():
    torch.manual_seed(0)
    rng = np.random.default_rng(11)
    target = random_batch(rng, [4], 6, LABELLED)
    matcher, seen = learned_matcher(slots=6, positions=3), states(1, 6)
    together = GraphBatch.collate([random_batch(rng, [6], 6)[0], target[0]], 6)
    plan = plan_of(matcher, seen, target)
    torch.testing.assert_close(plan_of(matcher, seen.expand(2, -1, -1), together)[1], plan[0], atol=1e-4, rtol=0)
    columns = plan[0, :, 4:]
    torch.testing.assert_close(columns[:, 0], columns[:, 1])  # padding is one vector


def test_a_learned_matcher_sees_attributes_in_the_target_and_in_the_linear_costs():
    """Nodes that only a number tells apart: without it all columns of the plan are alike."""
    torch.manual_seed(0)
    vocabulary = Vocabulary(attributes=(Attribute("x"),))
    graph = Graph.build(4, vocabulary=vocabulary, attributes=[[0.0], [1.0], [2.0], [3.0]])
    target = GraphBatch.collate([graph])
    options = {"slots": 4, "positions": 0, "epsilon": 1e-3, "iterations": 200}
    blind = learned_matcher(PLAIN, **options)
    plan = blind.plan(states(1, 4), GraphBatch.collate([Graph.build(4)]))
    torch.testing.assert_close(plan, plan[:, :, :1].expand_as(plan), atol=1e-9, rtol=0)
    seeing = learned_matcher(**options, vocabulary=vocabulary)
    plan = seeing.plan(states(1, 4), target)
    assert (plan - plan[:, :, :1]).abs().max() > 0.01
    order = torch.tensor([[2, 0, 3, 1]])
    turned = seeing.plan(states(1, 4), target.permute(order))
    torch.testing.assert_close(turned, plan[:, :, order[0]], atol=1e-9, rtol=0)
    said = {"presence": torch.full((1, 4), 9.0).double(), "edges": torch.full((1, 4, 4), -9.0).double()}
    prediction = Prediction(**said, attributes=target.attributes[:, order[0]].double())
    told = learned_matcher(**options, vocabulary=vocabulary, linear_costs=1.0)
    assert soft_plan(told, states(1, 4), target, prediction).argmax(2).tolist() == order.tolist()


def test_every_setting_that_it_is_built_from_is_declared():
    """A run's key leaves out what its matching does not read."""
    run, seen = tiny_settings(matching={"kind": "learned"}), set()

    class Watched:
        def __getattr__(self, name):
            seen.add(name)
            return getattr(run.matching, name)

    watched = SimpleNamespace(matching=Watched(), model=run.model, loss=run.loss)
    LearnedMatcher.check(watched)
    LearnedMatcher.build(watched, LABELLED, slots=4)
    assert seen == LearnedMatcher.reads
