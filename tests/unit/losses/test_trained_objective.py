"""Proposition 3.2 for the loss that is trained: what costs nothing is right, and undecided plans do not pay."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from unittest.mock import patch

import networkx as nx
import numpy as np
import pytest
import torch
from oracles import bistochastic, permutations
from torch import Tensor

from graphwright.graphs import Graph, GraphBatch, Prediction, Vocabulary, is_isomorphic
from graphwright.losses import LossSettings, graph_loss, matching_problem
from graphwright.transport import Plan, SelfLoops, conditional_gradient, mirror_descent
from graphwright.transport.native import library
from tiny import LABELLED, PLAIN, from_edges, random_batch, random_graph, random_prediction

N = 5
SURE = 30.0
"""Logits of a prediction that leaves no doubt."""
RIGHT = 1.1e-9
"""More than a right prediction costs at these logits: e^-30 a decision, and at most e^-20 / 2 for the diagonal."""
WRONG = 0.3
"""Less than one wrong bond of five nodes costs, 0.2 * 2 * 30 / 25."""


def every_graph() -> list[Graph]:
    """All graphs of at most five nodes, one of each kind: 1 + 1 + 2 + 4 + 11 + 34."""
    small = [graph for graph in nx.graph_atlas_g() if len(graph) <= N]
    assert len(small) == 53
    return [from_edges(len(graph), list(graph.edges)) for graph in small]


def labelled_graphs() -> list[Graph]:
    """Random ones; each also renumbered, with another label of a node, of an edge, and an edge more or less."""
    rng, found = np.random.default_rng(0), []
    for size in (2, 3, 4, 4, 5, 5, 5):
        graph = random_graph(rng, size, density=0.6)
        nodes, matrix = np.array(graph.node_labels), graph.edge_matrix()
        order = rng.permutation(size)
        variants = [(nodes, matrix), (nodes[order], matrix[np.ix_(order, order)])]
        other = nodes.copy()
        other[0] = (other[0] + 1) % 3
        variants.append((other, matrix))
        for label in range(3):
            changed = matrix.copy()
            changed[0, 1] = changed[1, 0] = label
            variants.append((nodes, changed))
        found += [Graph.from_matrix(*variant, LABELLED) for variant in variants]
    return found


def said(batch: GraphBatch, confidence: float, *, diffusion: bool) -> Prediction:
    """The prediction that says these graphs, node i on slot i; its own diagonal is noise, which must not count."""
    classes = 2 * confidence * batch.edge_one_hot(torch.float64) - confidence
    edges = classes[:, 1] if len(batch.vocabulary.edges) == 2 else classes
    noise = torch.randn(N, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = len(batch.vocabulary.nodes)
    return Prediction(
        confidence * (2 * batch.node_mask(torch.float64) - 1),
        edges + 40 * torch.diag_embed(noise),
        confidence * batch.node_one_hot(torch.float64) if labels > 1 else None,
        batch.diffused_labels(torch.float64) if diffusion else None,
    )


def taken(prediction: Prediction, which: Tensor) -> Prediction:
    found = {name: value[which] for name, value in vars(prediction).items() if value is not None}
    return replace(prediction, **found)


def all_pairs(
    graphs: list[Graph], vocabulary: Vocabulary, *, diffusion: bool
) -> tuple[Prediction, GraphBatch, Tensor]:
    """Every graph predicted for every graph as its target, and whether the two are isomorphic."""
    batch = GraphBatch.collate(graphs, N, vocabulary)
    first, second = torch.cartesian_prod(torch.arange(len(graphs)), torch.arange(len(graphs))).T
    target = batch.select(second)
    same = torch.tensor([is_isomorphic(graphs[i], graphs[j]) for i, j in zip(first, second, strict=True)])
    return taken(said(batch, SURE, diffusion=diffusion), first), target, same


CASES = {
    "plain": (every_graph(), PLAIN, False),
    "labelled": (labelled_graphs(), LABELLED, False),
    "labelled with diffusion": (labelled_graphs(), LABELLED, True),
}


@pytest.fixture(params=CASES, scope="module")
def pairs(request):
    graphs, vocabulary, diffusion = CASES[request.param]
    prediction, target, same = all_pairs(graphs, vocabulary, diffusion=diffusion)
    assert same.sum() >= len(graphs)
    assert (~same).sum() > same.sum()
    return prediction, target, same


def total(prediction: Prediction, target: GraphBatch, plan: Tensor) -> Tensor:
    return graph_loss(prediction, target, plan.expand(len(prediction), N, N)).total


def under_permutations(prediction: Prediction, target: GraphBatch) -> Tensor:
    """(120, b) the loss under every permutation."""
    return torch.stack([total(prediction, target, plan) for plan in permutations(N)])


def test_the_best_permutation_costs_nothing_exactly_where_the_graphs_are_isomorphic(pairs):
    prediction, target, same = pairs
    best = under_permutations(prediction, target).amin(0)
    assert best[same].max() < RIGHT
    assert best[~same].min() > WRONG


def test_the_cost_of_a_right_answer_vanishes_and_that_of_a_wrong_one_grows_with_certainty(pairs):
    some = torch.arange(len(pairs[0]))
    some = some[pairs[2] | (some % 5 == 0)]
    prediction, target, same = taken(pairs[0], some), pairs[1].select(some), pairs[2][some]
    # The diagonal is as certain as it is, and costs a permutation always the same.
    diagonal = total(
        said(target, 500.0, diffusion=prediction.diffusion is not None), target, torch.eye(N).double()
    )
    assert diagonal.max() < RIGHT
    costs = []
    for share in (1 / 3, 2 / 3, 1):
        scaled = {name: share * value for name, value in vars(prediction).items() if value is not None}
        if prediction.diffusion is not None:
            scaled["diffusion"] = prediction.diffusion
        costs.append(under_permutations(replace(prediction, **scaled), target).amin(0) - diagonal)
    for before, after in itertools.pairwise(costs):
        assert (after[same] < 1e-4 * before[same] + 1e-15).all()
        assert (after[~same] > before[~same] + WRONG / 4).all()


def test_no_plan_makes_up_for_graphs_that_are_not_isomorphic(pairs):
    prediction, target, same = pairs
    problem = matching_problem(prediction, target)
    generator = torch.Generator().manual_seed(0)
    plans = {
        "uniform": torch.full((len(prediction), N, N), 1 / N, dtype=torch.float64),
        "mixed": bistochastic(generator, len(prediction), N),
        "conditional gradient": conditional_gradient(problem).matrix,
        "mirror descent": mirror_descent(problem).matrix,
    }
    for name, plan in plans.items():
        assert total(prediction, target, plan)[~same].min() > WRONG / 2, name


def test_the_uniform_plan_costs_nothing_only_where_every_permutation_does(pairs):
    prediction, target, _ = pairs
    uniform = total(prediction, target, torch.full((1, N, N), 1 / N, dtype=torch.float64))
    free = under_permutations(prediction, target).amax(0) < RIGHT
    assert (free | (uniform > WRONG)).all()
    # All permutations of a complete graph are right, but no slot has an edge to itself.
    edges = target.edge_labels.any(2).any(1)
    assert torch.equal(uniform < RIGHT, free & ~edges)


@pytest.mark.parametrize("vocabulary", [PLAIN, LABELLED], ids=["plain", "labelled"])
@pytest.mark.parametrize(("scale", "least"), [(0.01, 1000), (0.3, 100), (1.0, 10)])
def test_the_uniform_plan_beats_permutations_only_where_self_loops_are_left_out(vocabulary, scale, least):
    """A thousand undecided predictions of four nodes."""
    rng, count = np.random.default_rng(0), 1000
    target = random_batch(rng, [4] * count, 4, vocabulary)
    prediction = random_prediction(torch.Generator().manual_seed(0), count, 4, vocabulary, scale=scale)
    every = [plan.expand(count, 4, 4) for plan in permutations(4)]
    uniform = torch.full((count, 4, 4), 1 / 4, dtype=torch.float64)

    def advantage(loops: SelfLoops) -> Tensor:
        """How much less the uniform plan costs than the best permutation, in the loss and for the solvers."""
        settings = LossSettings(self_loops=loops)
        best = torch.stack([graph_loss(prediction, target, plan, settings).total for plan in every]).amin(0)
        problem = matching_problem(prediction, target, settings)
        solvers = torch.stack([problem.objective(plan) for plan in every]).amin(0) - problem.objective(uniform)
        torch.testing.assert_close(best - graph_loss(prediction, target, uniform, settings).total, solvers)
        return solvers

    assert advantage(SelfLoops.INCLUDED).max() <= 1e-9
    assert (advantage(SelfLoops.EXCLUDED) > 1e-3).sum() >= least


@pytest.mark.parametrize("vocabulary", [PLAIN, LABELLED], ids=["plain", "labelled"])
def test_a_solver_that_starts_from_the_uniform_plan_ends_in_a_better_one_and_decides(vocabulary):
    rng = np.random.default_rng(1)
    target = random_batch(rng, [4] * 200, 4, vocabulary)
    prediction = random_prediction(torch.Generator().manual_seed(1), 200, 4, vocabulary, scale=0.3)
    uniform = torch.full((200, 4, 4), 1 / 4, dtype=torch.float64)
    decided = {}
    for loops in SelfLoops:
        problem = matching_problem(prediction, target, LossSettings(self_loops=loops))
        found = conditional_gradient(problem)
        assert (found.objective <= problem.objective(uniform) + 1e-9).all()
        decided[loops] = float((found.matrix.amax(1) > 0.99).double().mean())
    assert decided[SelfLoops.INCLUDED] > 0.95
    assert decided[SelfLoops.EXCLUDED] < 0.1


def without_symmetry(vocabulary: Vocabulary) -> Iterator[Graph]:
    """Graphs of six nodes of which no two can be exchanged: of plans as good, solvers may take either."""
    rng = np.random.default_rng(2)
    while True:
        graph = random_graph(rng, 6, vocabulary)
        orders = itertools.permutations(range(6))
        if sum(graph.permute(list(order)) == graph for order in orders) == 1:
            yield graph


@pytest.mark.parametrize("vocabulary", [PLAIN, LABELLED], ids=["plain", "labelled"])
@pytest.mark.parametrize("loops", SelfLoops)
def test_kernels_and_torch_solve_the_trained_problem_alike(vocabulary, loops):
    target = GraphBatch.collate(list(itertools.islice(without_symmetry(vocabulary), 8)), 6, vocabulary)
    prediction = random_prediction(torch.Generator().manual_seed(2), 8, 6, vocabulary)
    problem = matching_problem(prediction, target, LossSettings(self_loops=loops))
    start = bistochastic(torch.Generator().manual_seed(2), 8, 6)  # nothing ties, as it would at the uniform plan

    def on_both_paths(solve: Callable[..., Plan], **options: int) -> tuple[Plan, Plan]:
        ours = solve(problem, start, **options)
        with patch.object(library, "load_kernels", lambda: None):
            theirs = solve(problem, start, **options)
        torch.testing.assert_close(ours.objective, problem.objective(ours.matrix))
        return ours, theirs

    for solve, options in ((mirror_descent, {}), (conditional_gradient, {"iterations": 2})):
        ours, theirs = on_both_paths(solve, **options)
        torch.testing.assert_close(ours.matrix, theirs.matrix, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(ours.objective, theirs.objective)
    # Once two nodes of two slots are balanced exactly, either assignment is the next, and both end in one value.
    ours, theirs = on_both_paths(conditional_gradient, iterations=100)
    torch.testing.assert_close(ours.objective, theirs.objective, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("vocabulary", [PLAIN, LABELLED], ids=["plain", "labelled"])
@pytest.mark.parametrize("loops", SelfLoops)
def test_what_is_predicted_of_a_slot_and_itself_neither_counts_nor_learns(vocabulary, loops):
    target = random_batch(np.random.default_rng(3), [4, 2, 3], 4, vocabulary)
    prediction = random_prediction(torch.Generator().manual_seed(3), 3, 4, vocabulary, requires_grad=True)
    other = prediction.edges.detach().clone()
    other.diagonal(dim1=-2, dim2=-1).normal_(generator=torch.Generator().manual_seed(4))
    plan = bistochastic(torch.Generator().manual_seed(3), 3, 4)
    settings = LossSettings(self_loops=loops)
    loss = graph_loss(prediction, target, plan, settings).total
    changed = replace(prediction, edges=other)
    assert torch.equal(graph_loss(changed, target, plan, settings).total, loss)
    problems = [matching_problem(each, target, settings).objective(plan) for each in (prediction, changed)]
    assert torch.equal(*problems)
    loss.sum().backward()
    assert not prediction.edges.grad.diagonal(dim1=-2, dim2=-1).any()
    assert prediction.edges.grad.abs().max() > 0
