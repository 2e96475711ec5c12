"""Graphs on which several views of one input agree."""

from __future__ import annotations

import math

import pytest
import torch

from graphwright.decoding.candidates import agreed_candidates, plain_candidates
from graphwright.graphs import Prediction, Vocabulary

TWO = Vocabulary(("a", "b"))


def path_of_three(closing: float, sure: float = 8.0) -> Prediction:
    """Three nodes in a row; `closing` is the logit of the edge that would make them a triangle."""
    edges = torch.full((1, 3, 3), -sure)
    for i, j, logit in ((0, 1, sure), (1, 2, sure), (0, 2, closing)):
        edges[0, i, j] = edges[0, j, i] = logit
    labels = torch.tensor([[[sure, 0.0]] * 3])
    return Prediction(torch.full((1, 3), sure), edges, labels)


def edges_of(predictions: list[Prediction], count: int = 2) -> list[int]:
    (agreed,) = agreed_candidates(predictions, TWO, count)
    return [len(each.graph.edges) for each in agreed.candidates]


def test_one_view_alone_names_the_plain_candidates_by_their_probability() -> None:
    prediction = path_of_three(0.3)
    (plain,) = plain_candidates(prediction, TWO, 10, looked_at=200)
    (agreed,) = agreed_candidates([prediction], TWO, 4)
    expected = sorted(plain.candidates, key=lambda each: -each.probability)[:4]
    assert [each.graph for each in agreed.candidates] == [each.graph for each in expected]
    assert [each.probability for each in agreed.candidates] == pytest.approx(
        [each.probability for each in expected]
    )


def test_views_that_are_sure_overrule_one_that_is_not() -> None:
    assert edges_of([path_of_three(0.5)])[0] == 3
    assert edges_of([path_of_three(0.5), path_of_three(-2.0), path_of_three(-2.0)])[0] == 2
    # One view that is very sure counts more than two that hardly are.
    assert edges_of([path_of_three(6.0), path_of_three(-0.5), path_of_three(-0.5)])[0] == 3


def test_views_see_the_same_graph_in_any_order_of_slots() -> None:
    turned = path_of_three(-1.0)
    order = torch.tensor([2, 0, 1])
    other = Prediction(
        turned.presence[:, order], turned.edges[:, order][:, :, order], turned.node_labels[:, order]
    )
    (alone,), (both,) = agreed_candidates([turned], TWO, 3), agreed_candidates([turned, other], TWO, 3)
    assert [each.probability for each in both.candidates] == pytest.approx(
        [each.probability for each in alone.candidates]
    )


def test_probability_is_the_geometric_mean_and_falls_from_candidate_to_candidate() -> None:
    logits = (2.0, -1.0, 0.4)
    (agreed,) = agreed_candidates([path_of_three(logit) for logit in logits], TWO, 2)
    mean = math.exp(sum(math.log(torch.sigmoid(torch.tensor(logit)).item()) for logit in logits) / 3)
    assert len(agreed.candidates[0].graph.edges) == 3
    assert agreed.candidates[0].probability == pytest.approx(mean, rel=0.01)
    probabilities = [each.probability for each in agreed.candidates]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(each.share for each in agreed.candidates) == pytest.approx(1)


def test_a_graph_that_a_certain_view_does_not_name_has_what_it_leaves() -> None:
    # Names one graph with nearly all of its probability: what it does not name must not get as much.
    certain = path_of_three(40.0, sure=40.0)
    assert edges_of([certain, path_of_three(-4.0)], count=1) == [3]


def test_graphs_of_many_vague_slots_are_told_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    slots = 40
    edges = 0.3 * torch.randn(1, slots, slots, generator=generator) - 2
    views = [
        Prediction(
            torch.full((1, slots), 3.0), (edges + edges.mT) / 2, torch.randn(1, slots, 2, generator=generator)
        )
        for _ in range(3)
    ]
    (agreed,) = agreed_candidates(views, TWO, 5)
    scores = [each.log_score for each in agreed.candidates]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] < -70  # a probability that would round to nothing beside others
    assert len(set(scores)) == 5
