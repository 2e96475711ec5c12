"""The evaluation's benchmark: its predictions are what they claim, and the reference agrees with the metrics."""

import networkx
import numpy as np
import pytest
import torch

from benchmarks import measure_evaluation
from benchmarks.evaluation import EDITS, NearlyRight, reference_score, reference_scores
from graphwright.decoding import decode
from graphwright.graphs import is_isomorphic
from graphwright.metrics import edit_distance
from graphwright.tasks import task_of
from tiny import LABELLED, PLAIN, random_graph, tiny_settings

RUN = tiny_settings(task={"samples": 300, "capacity": 6})


def test_two_rows_whose_objectives_are_edit_distances():
    untrained, nearly = measure_evaluation(RUN, samples=12, peer_samples=5, threads_used=1)
    for row in (untrained, nearly):
        assert (row.n, row.batch, row.threads) == (6, 12, 1)
        assert row.extras["seconds"] == pytest.approx(row.ours_ms * 12 / 1000)
        assert row.ours_objective <= row.peer_objective
    assert 0 < nearly.ours_objective <= EDITS < untrained.ours_objective


@pytest.mark.parametrize("vocabulary", [PLAIN, LABELLED])
def test_nearly_right_predictions_are_a_few_edits_away_in_another_order(vocabulary):
    rng = np.random.default_rng(0)
    targets = [random_graph(rng, size, vocabulary) for size in (1, 2, 5, 6, 6, 6, 6, 6)]
    predictor = NearlyRight(targets, 6)
    predicted = decode(predictor(torch.empty(3)).graphs, vocabulary)
    predicted += decode(predictor(torch.empty(5)).graphs, vocabulary)
    again = decode(predictor(torch.empty(8)).graphs, vocabulary)
    assert predicted == again
    distances = [edit_distance(*pair).distance for pair in zip(predicted, targets, strict=True)]
    assert max(distances) <= EDITS
    assert 0 in distances
    assert any(distances)
    assert sum(a == b for a, b in zip(predicted, targets, strict=True)) < len(targets) / 2


@pytest.mark.parametrize("seed", range(20))
def test_the_reference_agrees_on_isomorphism_and_never_finds_fewer_edits(seed):
    rng = np.random.default_rng(seed)
    vocabulary = LABELLED if seed % 2 else PLAIN
    first = random_graph(rng, int(rng.integers(1, 6)), vocabulary)
    order = rng.permutation(first.size).tolist()
    second = first.permute(order) if seed % 4 < 2 else random_graph(rng, 4, vocabulary)
    score = reference_score(networkx, first, second)
    assert score.isomorphic == is_isomorphic(first, second)
    assert score.edit >= edit_distance(first, second).distance
    assert score.edit >= abs(first.size - second.size)


def test_the_reference_alignment_is_no_worse_than_none():
    """Equal graphs with a different label on every node: only labels say which is which, and they suffice."""
    rng = np.random.default_rng(1)
    graph = random_graph(rng, 3, LABELLED)
    distinct = type(graph)(np.arange(3), graph.edges, graph.edge_labels, LABELLED)
    assert reference_score(networkx, distinct.permute([2, 0, 1]), distinct).edit == 0


def test_the_reference_pass_scores_the_samples_asked_for():
    data = task_of(RUN.task).data("test")
    targets = data.batch(range(4))[1].graphs()
    scores = reference_scores(NearlyRight(targets, 6), data, range(4), targets[0].vocabulary)
    assert len(scores) == 4
    assert all(score.edit <= 2 * EDITS for score in scores if score.isomorphic)
