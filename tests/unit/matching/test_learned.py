"""The learned matcher: its symmetries, its temperature, its gradients."""

import numpy as np
import pytest
import torch

from graphwright.graphs import GraphBatch
from graphwright.matching.learned import row_entropy
from graphwright.settings import SlotView
from graphwright.transport import inner_product_plan, l1_plan
from tiny import (
    LABELLED,
    PLAIN,
    complete,
    cycle,
    learned_matcher,
    random_batch,
    random_prediction,
    sure_prediction,
)

PLANS = [l1_plan, inner_product_plan]


def states(batch: int, slots: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(batch, slots, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(
        dtype
    )


def order_of(batch: GraphBatch, seed: int) -> torch.Tensor:
    keys = torch.rand(batch.mask.shape, generator=torch.Generator().manual_seed(seed))
    return (keys + (~batch.mask) * 10).argsort(1)


@pytest.mark.parametrize("embedding_plan", PLANS)
@pytest.mark.parametrize("seed", range(3))
def test_without_positions_a_permuted_target_permutes_the_plans_columns(embedding_plan, seed):
    torch.manual_seed(seed)
    target = random_batch(np.random.default_rng(seed), [6, 4, 1], 6)
    matcher, order = learned_matcher(slots=6, embedding_plan=embedding_plan), order_of(target, seed)
    plan = matcher.plan(states(3, 6), target)
    moved = matcher.plan(states(3, 6), target.permute(order))
    assert plan.std() > 0.05
    torch.testing.assert_close(moved, plan.gather(2, order[:, None, :].expand_as(plan)), atol=1e-9, rtol=0)


@pytest.mark.parametrize("embedding_plan", PLANS)
@pytest.mark.parametrize("graph", [cycle(5), cycle(6), complete(4)], ids=["cycle 5", "cycle 6", "complete 4"])
@pytest.mark.parametrize("padding", [0, 3])
def test_on_a_vertex_transitive_target_the_plan_is_uniform_over_the_real_columns(embedding_plan, graph, padding):
    torch.manual_seed(0)
    n = graph.size + padding
    target = GraphBatch.collate([graph], n)
    plan = learned_matcher(PLAIN, slots=n, embedding_plan=embedding_plan).plan(states(1, n), target)[0]
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
    plan = matcher.plan(states(1, graph.size), target)[0]
    assert (plan - 1 / graph.size).abs().max() > 0.05
    order = torch.arange(graph.size).roll(1)[None]
    assert (matcher.plan(states(1, graph.size), target.permute(order))[0] - plan[:, order[0]]).abs().max() > 0.01


def test_permuted_slots_do_not_permute_rows_since_every_slot_has_a_code():
    torch.manual_seed(0)
    target = random_batch(np.random.default_rng(0), [5], 5)
    matcher, seen = learned_matcher(slots=5), states(1, 5)
    matcher.slot_code.data.normal_()
    flipped = matcher.plan(seen.flip(1), target)
    assert (flipped - matcher.plan(seen, target).flip(1)).abs().max() > 0.05
    matcher.slot_code.data.zero_()
    torch.testing.assert_close(matcher.plan(seen.flip(1), target), matcher.plan(seen, target).flip(1))


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_the_plan_is_that_of_the_embeddings_of_slots_nodes_and_padding(embedding_plan):
    torch.manual_seed(0)
    target, seen = random_batch(np.random.default_rng(1), [5, 2], 5), states(2, 5)
    matcher = learned_matcher(slots=5, embedding_plan=embedding_plan, epsilon=3e-3, iterations=7)
    slots = matcher.project_slots(seen + matcher.slot_code)
    nodes = matcher.project_nodes(matcher.target_encoder(target)[target.mask])
    beyond = matcher.project_nodes(matcher.padding)
    expected = embedding_plan(slots, nodes, target.sizes, beyond, 3e-3, 7)
    torch.testing.assert_close(matcher.plan(seen, target), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_the_plan_does_not_depend_on_the_scale_of_the_embeddings(embedding_plan):
    torch.manual_seed(0)
    target, seen = random_batch(np.random.default_rng(1), [5], 5), states(1, 5)
    matcher = learned_matcher(slots=5, embedding_plan=embedding_plan)
    before = matcher.plan(seen, target)
    with torch.no_grad():
        for module in (matcher.project_slots[1], matcher.project_nodes):
            module.weight *= 7
            module.bias *= 7
    torch.testing.assert_close(matcher.plan(seen, target), before)


def test_a_smaller_epsilon_gives_a_sharper_plan():
    torch.manual_seed(0)
    target, seen = random_batch(np.random.default_rng(2), [6, 6, 6], 6), states(3, 6)
    matcher = learned_matcher(slots=6)
    entropies = []
    for epsilon in (1.0, 1e-2, 1e-3, 1e-4):
        matcher.epsilon = epsilon
        entropies.append(row_entropy(matcher.plan(seen, target), target))
    assert entropies == sorted(entropies, reverse=True)
    assert entropies[0] == pytest.approx(np.log(6), abs=1e-3)
    assert entropies[-1] < 0.5


def test_more_iterations_bring_the_marginals_closer():
    torch.manual_seed(0)
    target, seen = random_batch(np.random.default_rng(2), [6, 4, 5], 6), states(3, 6)
    matcher = learned_matcher(slots=6, epsilon=1e-3)

    def error(iterations: int) -> float:
        matcher.iterations = iterations
        plan = matcher.plan(seen, target).detach()
        return float((plan.sum(2) - 1).abs().max() + (plan.sum(1) - 1).abs().max())

    assert error(1) > 2 * error(20) > 4 * error(400)


@pytest.mark.parametrize("detach", [False, True])
def test_gradients_reach_both_encoders_and_the_predictor_unless_its_states_are_detached(detach):
    torch.manual_seed(0)
    target, seen = random_batch(np.random.default_rng(3), [4, 5], 6), states(2, 6).requires_grad_()
    matcher = learned_matcher(slots=6, positions=3, detach=detach)
    plan = matcher.plan(seen, target)
    (plan * torch.randn(plan.shape, dtype=plan.dtype)).sum().backward()
    for name, parameter in matcher.named_parameters():
        assert parameter.grad is not None, name
        # A constant added to all nodes of the L1 cost is not idle, nor is one added to all slots.
        assert parameter.grad.abs().max() > 0, name
    assert (seen.grad is None) == detach
    if not detach:
        assert seen.grad.abs().max() > 0


@pytest.mark.parametrize("embedding_plan", PLANS)
def test_the_gradient_is_that_of_the_plan(embedding_plan):
    torch.manual_seed(0)
    target = random_batch(np.random.default_rng(4), [3, 4], 4)
    matcher = learned_matcher(slots=4, embedding_plan=embedding_plan, epsilon=1e-2, iterations=5)
    assert torch.autograd.gradcheck(lambda seen: matcher.plan(seen, target), states(2, 4).requires_grad_())


def test_a_match_has_nothing_besides_the_plan_to_learn():
    torch.manual_seed(0)
    target = random_batch(np.random.default_rng(5), [4, 2], 4)
    prediction = random_prediction(torch.Generator().manual_seed(0), 2, 4)
    match = learned_matcher(slots=4)(states(2, 4), prediction, target)
    assert torch.equal(match.auxiliary, torch.zeros(2, dtype=torch.float64))
    assert match.plan.requires_grad
    assert set(match.health) == {"row_entropy"}


def test_row_entropy_is_that_of_the_real_columns():
    target = random_batch(np.random.default_rng(6), [2, 1], 3)
    plan = torch.full((2, 3, 3), 1 / 3)
    plan[0, :, :2] = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert row_entropy(plan, target) == pytest.approx(np.log(3) / 3, abs=1e-6)
    assert row_entropy(plan, random_batch(np.random.default_rng(6), [0, 0], 3)) == 0.0


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
    plan = matcher.plan(seen, target)
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
    plan = matcher.plan(states(2, 4, dtype=torch.float32), random_batch(np.random.default_rng(8), [4, 2], 4))
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
    plan = matcher.plan(states(2, 4, dtype=torch.float32), random_batch(np.random.default_rng(8), [4, 2], 4))
    (plan * torch.randn(plan.shape, generator=torch.Generator().manual_seed(0))).sum().backward()
    assert torch.isfinite(plan).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in matcher.parameters())


def test_one_slot_is_a_plan_of_one():
    target = random_batch(np.random.default_rng(9), [1, 0], 1)
    for embedding_plan in PLANS:
        plan = learned_matcher(slots=1, embedding_plan=embedding_plan).plan(states(2, 1), target)
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
        plan = matcher.plan(seen, target)
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
    plan = matcher.plan(seen, target)
    torch.testing.assert_close(matcher.plan(seen.expand(2, -1, -1), together)[1], plan[0], atol=1e-4, rtol=0)
    columns = plan[0, :, 4:]
    torch.testing.assert_close(columns[:, 0], columns[:, 1])  # padding is one vector


@pytest.mark.parametrize("seed", range(3))
def test_a_matcher_that_sees_the_predicted_graph_matches_a_right_prediction_before_it_has_learnt_anything(seed):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    target = random_batch(rng, [6, 5, 6], 6)
    slots = torch.stack([torch.from_numpy(rng.permutation(6)) for _ in range(3)])
    matcher = learned_matcher(slots=6, epsilon=1e-4, iterations=100, slot_view=SlotView.GRAPH)
    plan = matcher.plan(states(3, 6, seed), target, sure_prediction(target, slots))
    nodes = matcher.target_encoder(target)  # nodes that a symmetry exchanges are one as good as the other
    apart = torch.cdist(nodes.gather(1, slots[:, :, None].expand_as(nodes)), nodes)
    real = target.mask[:, None, :].expand_as(plan)
    assert (plan * apart)[real].max() < 0.05
    assert apart[real].max() > 1


def test_a_matcher_that_sees_the_predicted_graph_trains_it_unless_it_is_detached():
    torch.manual_seed(0)
    target = random_batch(np.random.default_rng(1), [5, 4], 5)
    for detach in (False, True):
        prediction = random_prediction(torch.Generator().manual_seed(1), 2, 5, requires_grad=True)
        matcher = learned_matcher(slots=5, epsilon=1e-2, slot_view=SlotView.GRAPH, detach=detach)
        matcher(states(2, 5), prediction, target).plan.square().sum().backward()
        for logits in (prediction.presence, prediction.edges, prediction.node_labels):
            assert (logits.grad is None) if detach else (logits.grad.abs().max() > 0)
        assert matcher.target_encoder.labels.weight.grad.abs().max() > 0


def test_a_matcher_that_sees_predicted_graphs_must_be_given_some():
    matcher = learned_matcher(slots=4, slot_view=SlotView.GRAPH)
    with pytest.raises(ValueError, match="given none"):
        matcher.plan(states(1, 4), random_batch(np.random.default_rng(0), [4], 4))
