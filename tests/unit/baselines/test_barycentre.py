"""The barycentre: against POT's plans iterated by hand, and what it must not change."""

import numpy as np
import ot
import pytest

from graphwright.baselines import BarycentreSettings, predict_baseline
from graphwright.baselines.barycentre import Barycentre, RidgeWeights, barycentre, largest, vote
from graphwright.baselines.predict import baseline_likeness, references_of
from graphwright.graphs import Graph, is_isomorphic
from graphwright.tasks import task_of
from tiny import LABELLED, cycle, random_graph

SETTINGS = BarycentreSettings()


def some_graphs(seed=0, sizes=(4, 5, 4)):
    rng = np.random.default_rng(seed)
    return [random_graph(rng, size) for size in sizes]


def by_hand(graphs, weights, start, settings):
    """Plans by POT's fused Gromov-Wasserstein, then the weighted means in closed form, until nothing moves."""
    structures = [(graph.edge_matrix() > 0).astype(float) for graph in graphs]
    labels = [np.eye(3)[graph.node_labels] for graph in graphs]
    structure, features = structures[start], labels[start]
    size = len(structure)
    mass = np.full(size, 1 / size)
    for _ in range(settings.iterations):
        plans = [
            ot.gromov.fused_gromov_wasserstein(
                ((features[:, None] - label[None]) ** 2).sum(2),
                structure,
                other,
                mass,
                np.full(len(other), 1 / len(other)),
                alpha=settings.structure,
                symmetric=True,
                max_iter=settings.iterations,
                tol_rel=1e-5,
                tol_abs=0.0,
            )
            for label, other in zip(labels, structures, strict=True)
        ]
        before = structure, features
        features = sum(w * plan @ label for w, plan, label in zip(weights, plans, labels, strict=True)) * size
        structure = sum(w * plan @ s @ plan.T for w, plan, s in zip(weights, plans, structures, strict=True))
        structure = structure * size**2
        moved = [np.linalg.norm(now - then) for now, then in zip((structure, features), before, strict=True)]
        if min(moved) <= settings.tolerance:
            break
    edges = np.stack(
        [
            size**2
            * sum(
                w * plan @ (g.edge_matrix() == code) @ plan.T
                for w, plan, g in zip(weights, plans, graphs, strict=True)
            )
            for code in (1, 2)
        ]
    )
    return structure, features, edges


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_pot_gives_by_hand(seed):
    graphs, weights = some_graphs(seed), np.array([0.5, 0.3, 0.2])
    found = barycentre(graphs, weights, 4, SETTINGS)
    structure, features, edges = by_hand(graphs, weights, 0, SETTINGS)
    np.testing.assert_allclose(found.structure, structure, atol=1e-8)
    np.testing.assert_allclose(found.labels, features, atol=1e-8)
    np.testing.assert_allclose(found.edge_labels, edges, atol=1e-8)
    np.testing.assert_allclose(found.edge_labels.sum(0), found.structure, atol=1e-8)


def test_of_one_graph_it_is_that_graph():
    for graph in some_graphs(1):
        found = barycentre([graph], np.ones(1), graph.size, SETTINGS)
        assert is_isomorphic(found.graph(LABELLED, 0.5), graph)


def test_of_copies_in_any_order_it_is_their_graph():
    rng = np.random.default_rng(2)
    graph = random_graph(rng, 5)
    copies = [graph.permute(rng.permutation(5)) for _ in range(4)]
    found = barycentre(copies, np.full(4, 0.25), 5, SETTINGS).graph(LABELLED, 0.5)
    assert is_isomorphic(found, graph)


def test_the_heavy_graph_prevails():
    light, heavy = some_graphs(6, (5, 5))
    for weights in ((0.1, 0.9), (0.9, 0.1)):
        found = barycentre([light, heavy], np.array(weights), 5, SETTINGS).graph(LABELLED, 0.5)
        assert is_isomorphic(found, heavy if weights[1] > 0.5 else light)
    assert not is_isomorphic(light, heavy)


def test_a_cycle_without_labels_is_lost():
    """Every node looks the same to the uniform plan that POT starts from: the limit of the method."""
    found = barycentre([cycle(5)], np.ones(1), 5, SETTINGS)
    np.testing.assert_allclose(found.structure, 0.4)


def test_a_size_that_no_graph_has_is_reached_from_a_seeded_start():
    graphs, weights = some_graphs(3), np.array([0.5, 0.3, 0.2])
    first, again = (barycentre(graphs, weights, 7, SETTINGS).graph(LABELLED, 0.5) for _ in range(2))
    assert first == again
    assert first.size == 7


def test_graphs_without_nodes_do_not_disturb():
    empty = Graph(np.zeros(0, np.int64), np.zeros((0, 2), np.int64), np.zeros(0, np.int64), LABELLED)
    graph = some_graphs(4)[0]
    assert is_isomorphic(barycentre([empty, graph], np.array([0.6, 0.4]), 4, SETTINGS).graph(LABELLED, 0.5), graph)
    assert barycentre([empty, graph], np.array([0.6, 0.4]), 0, SETTINGS).graph(LABELLED, 0.5) == empty
    single = Graph.build(["b"], vocabulary=LABELLED)
    assert barycentre([single, single], np.array([0.6, 0.4]), 1, SETTINGS).graph(LABELLED, 0.5) == single


def test_an_edge_is_above_the_threshold_and_has_the_likeliest_label():
    structure = np.array([[0.9, 0.6, 0.4], [0.6, 0, 0.5], [0.4, 0.5, 0]])
    labels = np.array([[0.2, 0.5, 0.3], [1, 0, 0], [0, 0.4, 0.6]])
    edge_labels = np.stack([0.3 * structure, 0.7 * structure])
    found = Barycentre(structure, labels, edge_labels).graph(LABELLED, 0.5)
    assert found.edges.tolist() == [[0, 1]]
    assert found.edge_names == ["double"]
    assert found.node_names == ["b", "a", "c"]


def test_the_size_is_what_most_weight_is_for():
    assert vote([4, 5, 5, 9], np.array([0.3, 0.2, 0.2, 0.3])) == 5
    assert vote([7, 3], np.array([0.5, 0.5])) == 3


def test_ridge_weights_are_the_solution_of_their_equation():
    rng = np.random.default_rng(5)
    points, queries = rng.random((12, 3)), rng.random((4, 3))
    kernel, across = (
        np.exp(-((a[:, None] - points[None]) ** 2).sum(2)).astype(np.float32) for a in (points, queries)
    )
    found = RidgeWeights.of(kernel, 0.01).weights(across)
    expected = [np.linalg.solve(kernel + 12 * 0.01 * np.eye(12), row) for row in across.astype(np.float64)]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_largest_positive_weights_are_kept():
    kernel = np.array([0.1, 0.9, 0.3, 0.2], np.float32)
    found = largest(np.array([0.2, -0.5, 0.6, 0.1]), kernel, 2)
    assert found.references.tolist() == [2, 0]
    np.testing.assert_allclose(found.weights, [0.75, 0.25])
    lost = largest(np.array([-0.1, -0.2, 0.0, -1.0]), kernel, 2)
    assert (lost.references.tolist(), lost.weights.tolist()) == ([1], [1.0])


def test_a_prediction_by_hand(picture_run):
    """Kernel, weights, vote, barycentre, threshold: each step again, in plain numpy."""
    task = task_of(picture_run.task)
    settings = BarycentreSettings(references=30, kept=4)
    references, likeness = references_of(task, 30), baseline_likeness(task)
    pictures = np.stack([references.samples[at].image.ravel() for at in references.indices]).astype(np.float64)
    query = task.data("test")[2].image.ravel().astype(np.float64)
    distances = ((pictures[:, None] - pictures[None]) ** 2).sum(2)
    scale = settings.bandwidth * np.median(distances[np.triu_indices(30, 1)])
    kernel = np.exp(-distances / scale) + 30 * settings.ridge * np.eye(30)
    weights = np.linalg.solve(kernel, np.exp(-((pictures - query) ** 2).sum(1) / scale))
    chosen = np.argsort(-weights)[:4]
    assert (weights[chosen] > 0).all()
    graphs = [references.graph(int(at)) for at in chosen]
    shares = weights[chosen] / weights[chosen].sum()
    size = vote([graph.size for graph in graphs], shares)
    expected = barycentre(graphs, shares, size, settings).graph(task.vocabulary, 0.5)
    found = predict_baseline("barycentre", picture_run, [2], "test", settings=settings)
    assert found.graphs == [expected]
    assert found.likeness == likeness.name
    assert found.settings == BarycentreSettings(references=30, kept=4)


def test_the_true_size_is_given_where_it_is_asked_for(any_run):
    samples = task_of(any_run.task).data("test", limit=5)
    settings = BarycentreSettings(references=20, kept=3)
    found = predict_baseline("barycentre-true-size", any_run, range(5), "test", settings=settings)
    assert [graph.size for graph in found.graphs] == [samples[index].graph.size for index in range(5)]
    assert found.settings.size == "true"
    assert found.preparation_seconds > 0


@pytest.mark.parametrize(
    "wrong", [{"kept": 0}, {"ridge": 0.0}, {"bandwidth": -1.0}, {"structure": 1.0}, {"threshold": 0.0}]
)
def test_settings_out_of_bounds_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BarycentreSettings(**wrong)
