"""The labelled loss against its formulas, and what makes it safe to train on."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from oracles import bistochastic, permutations
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, one_hot

from graphwright.graphs import Attribute, Graph, GraphBatch, Prediction, Vocabulary
from graphwright.losses import LossSettings, PenaltyDirection, graph_loss, matching_problem
from graphwright.transport import (
    Divergence,
    Objective,
    SelfLoops,
    conditional_gradient,
    mirror_descent,
)

FIELDS = ("total", "presence", "node_labels", "edge_labels", "adjacency", "diffusion", "attributes", "marginals")
VOCABULARY = Vocabulary(
    ("C", "N", "O"), ("none", "single", "double"), (Attribute("x", 1.0, 2.0), Attribute("size"))
)
CHAIN = [(0, 1), (1, 2), (2, 3), (3, 4)]
N = 5


def targets(capacity=N):
    numbers = np.random.default_rng(0).normal(size=(N, 2))
    graphs = [
        Graph.build(list("CNOCC"), CHAIN, ["single", "double", "single", "single"], VOCABULARY, numbers),
        Graph.build(list("CON"), [(0, 1), (0, 2)], ["double", "single"], VOCABULARY, -numbers[:3]),
        Graph.build(["O"], vocabulary=VOCABULARY, attributes=numbers[:1]),
        Graph.build([], vocabulary=VOCABULARY, attributes=numbers[:0]),
    ]  # fmt: skip
    return GraphBatch.collate(graphs, capacity)


def predict(seed=0, capacity=N, scale=1.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return scale * torch.randn(4, *shape, generator=generator, dtype=torch.float64).to(dtype)

    edges = draw(3, capacity, capacity)
    logits = (draw(capacity), edges + edges.mT, draw(capacity, 3), draw(capacity, 3))
    return Prediction(*logits, attributes=draw(capacity, 2))


def plans(seed=0, capacity=N, dtype=torch.float64):
    return torch.rand(
        4, capacity, capacity, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


def perfect(target, confidence=30.0):
    """The prediction that says the target, slot by slot."""
    return Prediction(
        confidence * (2 * target.node_mask() - 1),
        confidence * target.edge_one_hot(),
        confidence * target.node_one_hot(),
        target.diffused_labels(),
        attributes=target.attributes,
    )


@pytest.mark.parametrize("loops", SelfLoops)
def test_terms_follow_the_formulas_of_the_specification_for_any_plan(loops):
    prediction, target, T = predict(), targets(), plans()
    loss = graph_loss(prediction, target, T, LossSettings(self_loops=loops))
    u, V, Y, G = prediction.presence, prediction.node_labels, prediction.edges, prediction.diffusion
    X, R = prediction.attributes, target.attributes.double()
    w, F, B = target.node_mask().double(), target.node_one_hot().double(), target.adjacency().double()
    E, D = target.edge_one_hot().double(), target.adjacency().double() @ target.node_one_hot().double()
    m = w.sum(1).clamp_min(1)
    r, rho, c = (T * w[:, None]).sum(2), T.sum(2), T.sum(1)
    softplus = torch.nn.functional.softplus

    presence = ((softplus(u) * rho).sum(1) - (u * r).sum(1)) / N
    labels = ((r * V.logsumexp(2)).sum(1) - (V * (T @ (w[:, :, None] * F))).sum((1, 2))) / m
    cross = (G * (T @ (w[:, :, None] * D))).sum((1, 2))
    diffusion = ((r * (G**2).sum(2)).sum(1) + (w * c * (D**2).sum(2)).sum(1) - 2 * cross) / m
    distances = ((X[:, :, None] - R[:, None]) ** 2).sum(3)
    attributes = (distances * T * w[:, None]).sum((1, 2)) / m

    off = 1 - torch.eye(N, dtype=torch.float64)
    w_pairs, squares = w[:, :, None] * w[:, None, :], torch.diag_embed(w**2)

    def without_loops(S, channels):
        S0 = S * off
        value = (r[:, None] @ S0 @ r[:, :, None])[:, 0, 0] - (S0 * (T @ squares @ T.mT)).sum((1, 2))
        for Z, target_channel in channels:
            value = value - (((Z * off) @ T) * (T @ (target_channel * off * w_pairs))).sum((1, 2))
        return value / m**2

    def with_loops(S, channels):
        value = (r[:, None] @ S @ r[:, :, None])[:, 0, 0]
        for Z, target_channel in channels:
            value = value - ((Z @ T) * (T @ (target_channel * w_pairs))).sum((1, 2))
        return value / m**2

    # No slot has an edge to itself: "none" 20 and every other class -20, whatever was predicted.
    Y = Y.clone()
    Y[:, :, range(N), range(N)] = torch.tensor([20.0, -20.0, -20.0], dtype=Y.dtype)[:, None]
    Z = Y[:, 1:].logsumexp(1) - Y[:, 0]
    edge_sums = with_loops if loops is SelfLoops.INCLUDED else without_loops
    adjacency = edge_sums(softplus(Z), [(Z, B)])
    edge_labels = edge_sums(Y.logsumexp(1), [(Y[:, c], E[:, c]) for c in range(3)])
    marginals = sum((p * p.log() - p + 1).sum(1) for p in (rho, c))

    for name, expected in {
        "presence": presence,
        "node_labels": labels,
        "diffusion": diffusion,
        "attributes": attributes,
        "adjacency": adjacency,
        "edge_labels": edge_labels,
        "marginals": marginals,
    }.items():
        torch.testing.assert_close(getattr(loss, name), expected, msg=lambda text, name=name: f"{name}: {text}")
    total = presence + labels + 0.2 * edge_labels + 0.5 * adjacency + marginals + diffusion + attributes
    torch.testing.assert_close(loss.total, total)


def test_under_a_permutation_the_terms_are_ordinary_cross_entropies():
    prediction, target = predict(), targets()
    T = torch.eye(N, dtype=torch.float64).expand(4, N, N)
    loss = graph_loss(prediction, target, T)
    expected = binary_cross_entropy_with_logits(prediction.presence, target.node_mask().double(), reduction="none")
    torch.testing.assert_close(loss.presence, expected.mean(1))
    size = 3
    labels = cross_entropy(prediction.node_labels[1, :size], target.node_labels[1, :size])
    torch.testing.assert_close(loss.node_labels[1], labels)
    pairs = [(i, j) for i in range(size) for j in range(size) if i != j]
    edges = sum(cross_entropy(prediction.edges[1, :, i, j], target.edge_labels[1, i, j]) for i, j in pairs)
    torch.testing.assert_close(loss.edge_labels[1], edges / size**2)
    squares = (prediction.attributes[1, :size] - target.attributes[1, :size]).square().sum(1)
    torch.testing.assert_close(loss.attributes[1], squares.mean())


def test_gradients_pass_gradcheck_in_prediction_and_plan():
    prediction, target = predict(), targets()
    inputs = (*(getattr(prediction, name) for name in LOGITS), plans() + 0.1)
    inputs = tuple(tensor.requires_grad_() for tensor in inputs)

    def total(*given):
        return graph_loss(Prediction(**dict(zip(LOGITS, given, strict=False))), target, given[-1]).total

    assert torch.autograd.gradcheck(total, inputs)


@pytest.mark.parametrize("loops", SelfLoops)
@pytest.mark.parametrize("objective", Objective)
def test_solver_objective_is_the_loss_without_the_penalty(objective, loops):
    prediction, target, T = predict(), targets(), plans()
    settings = LossSettings(
        divergence=Divergence.KL,
        objective=objective,
        edge_labels=0.3,
        diffusion=0.7,
        attributes=1.3,
        self_loops=loops,
    )
    loss = graph_loss(prediction, target, T, settings)
    torch.testing.assert_close(
        matching_problem(prediction, target, settings).objective(T), loss.total - loss.marginals
    )


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("objective", Objective)
def test_never_negative_for_any_plan_and_any_logits_in_float32(scale, objective):
    target = targets()
    for seed in range(20):
        T = plans(seed, dtype=torch.float32) ** (1 + seed % 5) * 10 ** float(1 - seed % 4)
        settings = LossSettings(divergence=Divergence.KL, objective=objective)
        loss = graph_loss(predict(seed, scale=scale, dtype=torch.float32), target, T, settings)
        for name in FIELDS:
            value = getattr(loss, name)
            assert torch.isfinite(value).all(), name
            assert value.min() >= -1e-6, f"{name} is {value.min()}"
    perfect_loss = graph_loss(perfect(target, 1e4), target, torch.eye(N).expand(4, N, N))
    assert perfect_loss.total.min() >= -1e-6


def test_the_right_answer_costs_nothing_and_only_under_its_own_alignment():
    target = targets()
    prediction = perfect(target)
    costs = torch.stack([graph_loss(prediction, target, p.float().expand(4, N, N)).total for p in permutations(N)])
    assert costs.amin(0).abs().max() < 1e-5
    chain = costs[:, 0]  # no two nodes of the chain C-N=O-C-C can be exchanged
    assert (chain < 1).sum() == 1


def test_solvers_recover_the_alignment_of_a_shuffled_prediction():
    target = targets()
    order = torch.stack([torch.randperm(N, generator=torch.Generator().manual_seed(s)) for s in range(4)])
    move = one_hot(order, N).double()
    clean = perfect(target, confidence=8.0)
    shuffled = Prediction(
        (move @ clean.presence[:, :, None].double())[:, :, 0],
        move[:, None] @ clean.edges.double() @ move.mT[:, None],
        move @ clean.node_labels.double(),
        move @ clean.diffusion.double(),
        attributes=move @ clean.attributes.double(),
    )
    problem = matching_problem(shuffled, target)
    for plan in (mirror_descent(problem), conditional_gradient(problem)):
        assert plan.objective.max() < 0.1


def test_attributes_alone_tell_nodes_apart_that_nothing_else_does():
    """Four unlabelled nodes without edges: only where they are says which slot is which."""
    vocabulary = Vocabulary(attributes=(Attribute("x"),))
    target = GraphBatch.collate([Graph.build(4, vocabulary=vocabulary, attributes=[[0.0], [1.0], [2.0], [3.0]])])
    order = torch.tensor([2, 0, 3, 1])
    said = {"presence": torch.full((1, 4), 9.0), "edges": torch.full((1, 4, 4), -9.0)}
    prediction = Prediction(**said, attributes=target.attributes[:, order])
    for solve in (mirror_descent, conditional_gradient):
        assert solve(matching_problem(prediction, target)).matrix.argmax(2).tolist() == [order.tolist()]
        unseen = solve(matching_problem(prediction, target, LossSettings(attributes=0.0))).matrix
        assert unseen.argmax(2).tolist() != [order.tolist()]


@pytest.mark.parametrize("loops", SelfLoops)
def test_padding_changes_no_term_and_no_gradient(loops):
    """Presence is a mean over slots: it is compared as a sum. Every other term is the same number."""
    small, large = targets(N), targets(N + 3)
    prediction = predict()
    extra = predict(1, N + 3)
    grown = Prediction(
        torch.cat([prediction.presence, torch.full((4, 3), -60.0, dtype=torch.float64)], 1),
        extra.edges.clone(),
        torch.cat([prediction.node_labels, extra.node_labels[:, N:]], 1),
        torch.cat([prediction.diffusion, extra.diffusion[:, N:]], 1),
        attributes=torch.cat([prediction.attributes, extra.attributes[:, N:]], 1),
    )
    grown.edges[..., :N, :N] = prediction.edges
    plan = bistochastic(torch.Generator().manual_seed(0), 4, N)
    grown_plan = torch.nn.functional.pad(plan, (0, 3, 0, 3))
    grown_plan[:, range(N, N + 3), range(N, N + 3)] = 1
    for tensor in (prediction.presence, prediction.edges, prediction.node_labels, prediction.attributes, plan):
        tensor.requires_grad_()
    for tensor in (grown.presence, grown.edges, grown.node_labels, grown.attributes, grown_plan):
        tensor.requires_grad_()
    counted = LossSettings(self_loops=loops)
    one, other = graph_loss(prediction, small, plan, counted), graph_loss(grown, large, grown_plan, counted)
    for name in ("node_labels", "edge_labels", "adjacency", "diffusion", "attributes", "marginals"):
        torch.testing.assert_close(getattr(one, name), getattr(other, name))
    torch.testing.assert_close(one.presence * N, other.presence * (N + 3))
    settings = LossSettings(presence=0, self_loops=loops)
    graph_loss(prediction, small, plan, settings).total.sum().backward()
    graph_loss(grown, large, grown_plan, settings).total.sum().backward()
    torch.testing.assert_close(prediction.edges.grad, grown.edges.grad[..., :N, :N])
    torch.testing.assert_close(prediction.node_labels.grad, grown.node_labels.grad[:, :N])
    torch.testing.assert_close(prediction.attributes.grad, grown.attributes.grad[:, :N])
    assert grown.attributes.grad[:, N:].abs().max() == 0
    torch.testing.assert_close(plan.grad, grown_plan.grad[:, :N, :N])
    assert grown.edges.grad[..., N:, :].abs().max() == 0


LOGITS = ("presence", "edges", "node_labels", "diffusion", "attributes")


@pytest.mark.parametrize("loops", SelfLoops)
def test_a_sample_alone_is_the_sample_in_its_batch(loops):
    prediction, target, T = predict(), targets(), plans()
    settings = LossSettings(self_loops=loops)
    together = graph_loss(prediction, target, T, settings)
    for at in range(4):
        alone = graph_loss(
            Prediction(**{name: getattr(prediction, name)[[at]] for name in LOGITS}),
            target.select(torch.tensor([at])),
            T[[at]],
            settings,
        )
        for name in FIELDS:
            torch.testing.assert_close(getattr(alone, name)[0], getattr(together, name)[at])


@pytest.mark.parametrize("loops", SelfLoops)
def test_order_of_slots_and_of_target_nodes_does_not_matter(loops):
    prediction, target, T = predict(), targets(), plans()
    slots = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    order = torch.tensor([[4, 2, 0, 1, 3], [2, 0, 1, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]])
    moved = Prediction(
        prediction.presence[:, slots],
        prediction.edges[..., slots, :][..., slots],
        prediction.node_labels[:, slots],
        prediction.diffusion[:, slots],
        attributes=prediction.attributes[:, slots],
    )
    plan = T[:, slots].gather(2, order[:, None, :].expand(-1, N, -1))
    settings = LossSettings(self_loops=loops)
    loss = graph_loss(prediction, target, T, settings)
    other = graph_loss(moved, target.permute(order), plan, settings)
    for name in FIELDS:
        torch.testing.assert_close(getattr(other, name), getattr(loss, name))


def test_unlabelled_graphs_have_no_label_terms():
    target = GraphBatch.collate([Graph.build(3, [(0, 1)])])
    prediction = Prediction(torch.zeros(1, 3), torch.zeros(1, 3, 3))
    loss = graph_loss(prediction, target, torch.eye(3)[None])
    assert loss.node_labels.item() == loss.edge_labels.item() == loss.diffusion.item() == 0
    assert loss.attributes.item() == 0
    torch.testing.assert_close(loss.adjacency, torch.log(torch.tensor([2.0])) * 6 / 9)


def test_a_categorical_head_for_unlabelled_edges_is_counted_once():
    """Without edge labels their term is absent (docs/method.md); classes (none, edge) say the same as a logit."""
    target, classes = GraphBatch.collate([Graph.build(3, [(0, 1)])]), torch.randn(1, 2, 3, 3)
    plan, presence = torch.full((1, 3, 3), 1 / 3), torch.zeros(1, 3)
    categorical, binary = Prediction(presence, classes), Prediction(presence, classes[:, 1] - classes[:, 0])
    loss, other = (graph_loss(prediction, target, plan) for prediction in (categorical, binary))
    assert loss.edge_labels.item() == 0
    torch.testing.assert_close(loss.total, other.total)
    objectives = [matching_problem(prediction, target).objective(plan) for prediction in (categorical, binary)]
    torch.testing.assert_close(*objectives)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: replace(p, node_labels=None), "prediction.node_labels is missing"),
        (lambda p: replace(p, edges=p.edges[:, 0]), "prediction.edges has no classes"),
        (lambda p: replace(p, edges=p.edges[:, :2]), "prediction.edges has 2 classes, the target's vocabulary 3"),
        (lambda p: replace(p, node_labels=p.node_labels[..., :2]), "prediction.node_labels has 2 classes"),
        (lambda p: replace(p, presence=p.presence * float("nan")), r"presence is not finite \(sample 0\)"),
        (lambda p: replace(p, attributes=None), "prediction.attributes is missing, the target has 2"),
        (lambda p: replace(p, attributes=p.attributes[..., :1]), "prediction.attributes has 1 classes"),
    ],
)  # fmt: skip
def test_predictions_that_do_not_fit_are_refused_by_name(change, message):
    with pytest.raises(ValueError, match=message):
        graph_loss(change(predict()), targets(), plans())


def test_wrong_capacities_and_plans_are_refused():
    with pytest.raises(ValueError, match="prediction has 4 graphs of 5 slots, target 4 of 6"):
        graph_loss(predict(), targets(6), plans())
    with pytest.raises(ValueError, match="plan must have shape"):
        graph_loss(predict(), targets(), plans(capacity=6))
    with pytest.raises(ValueError, match="plan must be a tensor, got Plan"):
        graph_loss(predict(), targets(), mirror_descent(matching_problem(predict(), targets())))
    with pytest.raises(ValueError, match=r"plan is torch.float32, prediction.presence is torch.float64"):
        graph_loss(predict(), targets(), plans(dtype=torch.float32))
    with pytest.raises(ValueError, match=r"plan is on meta, prediction.presence is on cpu"):
        graph_loss(predict(), targets(), plans().to("meta"))
    with pytest.raises(ValueError, match="prediction is on cpu, target on meta"):
        graph_loss(predict(), targets().to("meta"), plans())
    bad = plans()
    bad[2, 0, 0] = -1
    with pytest.raises(ValueError, match=r"plan leaves .* \(sample 2\)"):
        graph_loss(predict(), targets(), bad)
    with pytest.raises(ValueError, match="edge_labels must be a non-negative weight"):
        LossSettings(edge_labels=-0.1)
    with pytest.raises(ValueError, match="predicted edges are logits"):
        LossSettings(divergence=Divergence.SQUARED)


def test_settings_may_be_given_by_name():
    settings = LossSettings(divergence="kl", penalty="reverse", self_loops="excluded")
    assert settings.self_loops is SelfLoops.EXCLUDED
    assert LossSettings().self_loops is SelfLoops.INCLUDED
    assert settings.divergence is Divergence.KL
    assert settings.penalty is PenaltyDirection.REVERSE
    with pytest.raises(ValueError, match="'l1' is not a valid Divergence"):
        LossSettings(divergence="l1")
