"""Relationformer's loss and matching, against the definitions written out, and what must not change them."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from graphwright.graphs import GraphBatch, Prediction, Vocabulary
from graphwright.losses import LossSettings
from graphwright.losses.relation_loss import (
    class_logits,
    drawn_negatives,
    node_classes,
    relation_loss,
)
from graphwright.matching.matcher import LabelProbabilityMatcher
from tiny import LABELLED, PLAIN, random_batch, random_prediction

WEIGHTS = LossSettings(node_labels=1.0, adjacency=1.0)
ALL = replace(WEIGHTS, negatives=1000)
"""Every pair without an edge is drawn: nothing is random."""


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def targets(seed=0, vocabulary=LABELLED, sizes=(3, 5, 1, 4)):
    return random_batch(np.random.default_rng(seed), list(sizes), 5, vocabulary)


def matched(prediction, target):
    return LabelProbabilityMatcher()(prediction.presence[:, :, None], prediction, target).plan


def by_hand(prediction, target, plan, settings):
    """The loss of one sample, slot by slot and pair by pair, with every negative."""
    logits = class_logits(prediction)[0]
    places = plan[0].argmax(1).tolist()
    size = int(target.mask[0].sum())
    nodes = weights = 0.0
    for slot, place in enumerate(places):
        wanted = 1 + int(target.node_labels[0, place]) if place < size else 0
        weight = 1.0 if wanted else settings.none_weight
        nodes += weight * float(-logits[slot].log_softmax(0)[wanted])
        weights += weight
    edges = prediction.edges
    classes = torch.stack([torch.zeros_like(edges), edges], 1)[0] if edges.ndim == 3 else edges[0]
    pairs = [
        float(-classes[:, i, j].log_softmax(0)[target.edge_labels[0, places[i], places[j]]])
        for i in range(len(places))
        for j in range(i)
        if places[i] < size and places[j] < size
    ]
    return nodes / weights, sum(pairs) / max(len(pairs), 1)


@pytest.mark.parametrize("vocabulary", [LABELLED, PLAIN, Vocabulary(("a", "b"))])
@pytest.mark.parametrize("size", [0, 1, 4, 5])
def test_the_loss_is_its_definition(vocabulary, size):
    target = targets(size, vocabulary, [size])
    prediction = random_prediction(generator(size), 1, 5, vocabulary)
    settings = LossSettings(node_labels=2.0, adjacency=0.7, none_weight=0.3, negatives=1000)
    plan = matched(prediction, target)
    found = relation_loss(prediction, target, plan, settings)
    nodes, relations = by_hand(prediction, target, plan, settings)
    assert float(found.node_labels) == pytest.approx(nodes)
    assert float(found.adjacency) == pytest.approx(relations)
    assert float(found.total) == pytest.approx(2 * nodes + 0.7 * relations)
    assert float(found.presence) == float(found.edge_labels) == float(found.marginals) == 0


def test_the_one_softmax_comes_back_from_presence_and_labels():
    logits = torch.randn(2, 4, 4, generator=generator(), dtype=torch.float64)
    none, labels = logits[:, :, 0], logits[:, :, 1:]
    prediction = Prediction(labels.amax(2) - none, torch.zeros(2, 4, 4, dtype=torch.float64), labels)
    torch.testing.assert_close(class_logits(prediction).softmax(2), logits.softmax(2))
    assert torch.equal(prediction.presence > 0, logits.argmax(2) > 0)


def test_the_matching_is_the_best_of_all_permutations():
    target, prediction = targets(1), random_prediction(generator(1), 4, 5)
    probabilities = class_logits(prediction).softmax(2)
    plan = matched(prediction, target)
    classes = node_classes(target)
    for sample in range(4):
        size = int(target.mask[sample].sum())

        def score(slots, sample=sample):
            return sum(float(probabilities[sample, slot, classes[sample, at]]) for at, slot in enumerate(slots))

        best = max(score(slots) for slots in permutations(range(5), size))
        assert score(plan[sample].argmax(0)[:size].tolist()) == pytest.approx(best)


def test_the_matching_ignores_edges_on_both_sides():
    target, prediction = targets(2), random_prediction(generator(2), 4, 5)
    plan = matched(prediction, target)
    other_edges = random_prediction(generator(99), 4, 5).edges
    rewired = GraphBatch(target.mask, target.node_labels, torch.zeros_like(target.edge_labels), LABELLED)
    assert not torch.equal(rewired.edge_labels, target.edge_labels)
    assert torch.equal(matched(prediction, rewired), plan)
    assert torch.equal(matched(Prediction(prediction.presence, other_edges, prediction.node_labels), target), plan)
    # Labels do count.
    relabelled = GraphBatch(target.mask, (2 - target.node_labels) * target.mask, target.edge_labels, LABELLED)
    assert not torch.equal(matched(prediction, relabelled), plan)


def test_the_order_of_target_nodes_makes_no_difference():
    target, prediction = targets(3), random_prediction(generator(3), 4, 5)
    rng = np.random.default_rng(3)
    orders = []
    for size in target.sizes.tolist():
        orders.append(np.concatenate([rng.permutation(size), np.arange(size, 5)]))
    order = torch.from_numpy(np.stack(orders))
    plan = matched(prediction, target)
    moved, moved_plan = target.permute(order), plan.gather(2, order[:, None, :].expand(-1, 5, -1))
    for settings in (ALL, replace(WEIGHTS, negatives=1)):
        totals = []
        for each, matrix in ((target, plan), (moved, moved_plan)):
            torch.manual_seed(0)  # few negatives: the same draw
            totals.append(relation_loss(prediction, each, matrix, settings).total)
        torch.testing.assert_close(*totals)


def test_the_order_of_slots_makes_no_difference():
    target, prediction = targets(4), random_prediction(generator(4), 4, 5)
    order = torch.tensor([3, 0, 4, 1, 2])
    moved = Prediction(
        prediction.presence[:, order], prediction.edges[:, :, order][..., order], prediction.node_labels[:, order]
    )
    plan = matched(prediction, target)
    losses = [
        relation_loss(*each, ALL).total for each in ((prediction, target, plan), (moved, target, plan[:, order]))
    ]
    torch.testing.assert_close(*losses)


def test_a_slot_is_matched_with_the_same_label_wherever_it_and_its_node_stand():
    target, prediction = targets(4), random_prediction(generator(4), 4, 5)
    order = torch.tensor([3, 0, 4, 1, 2])
    moved = Prediction(prediction.presence[:, order], prediction.edges, prediction.node_labels[:, order])
    reversed_nodes = [list(range(size))[::-1] + list(range(size, 5)) for size in target.sizes.tolist()]
    turned = target.permute(torch.tensor(reversed_nodes))

    def classes(given, graphs):
        # Which of two nodes with one label a slot takes is a tie: there is no geometry to break it.
        return node_classes(graphs).gather(1, matched(given, graphs).argmax(2))

    expected = classes(prediction, target)
    assert torch.equal(classes(moved, target), expected[:, order])
    assert torch.equal(classes(prediction, turned), expected)


def test_a_sample_does_not_know_its_batch():
    target, prediction = targets(5), random_prediction(generator(5), 4, 5)
    together = relation_loss(prediction, target, matched(prediction, target), ALL).total
    one = torch.tensor([1])
    alone = Prediction(prediction.presence[one], prediction.edges[one], prediction.node_labels[one])
    found = relation_loss(alone, target.select(one), matched(alone, target.select(one)), ALL).total
    torch.testing.assert_close(found, together[one])


def test_none_is_down_weighted():
    target = targets(6, sizes=[1])
    prediction = random_prediction(generator(6), 1, 5)
    plan = matched(prediction, target)
    light, heavy = (
        relation_loss(prediction, target, plan, replace(WEIGHTS, none_weight=weight)).node_labels
        for weight in (1e-9, 1e9)
    )
    slot = int(plan[0].argmax(0)[0])
    logits = class_logits(prediction)[0]
    real = cross_entropy(logits[slot], 1 + target.node_labels[0, 0])
    torch.testing.assert_close(light[0], real)
    others = [other for other in range(5) if other != slot]
    torch.testing.assert_close(heavy[0], cross_entropy(logits[others], torch.zeros(4, dtype=torch.int64)))


def test_negatives_are_as_many_as_asked_and_no_edges():
    edges = torch.zeros(4, 30, dtype=torch.bool)
    edges[0, :4] = edges[1, :9] = True
    real = torch.ones_like(edges)
    real[2, 20:] = False
    real[3] = False
    torch.manual_seed(0)
    drawn = drawn_negatives(edges, real, 3)
    assert drawn.sum(1).tolist() == [12, 21, 3, 0]  # three each; all there are; as for one edge; none
    assert not (drawn & (edges | ~real)).any()
    torch.manual_seed(0)
    assert torch.equal(drawn_negatives(edges, real, 3), drawn)
    assert not torch.equal(drawn_negatives(edges, real, 3), drawn)


def test_every_other_pair_is_drawn_as_often():
    edges = torch.zeros(4000, 10, dtype=torch.bool)
    edges[:, 0] = True
    torch.manual_seed(1)
    shares = drawn_negatives(edges, torch.ones_like(edges), 3).double().mean(0)
    assert shares[0] == 0
    # Three of nine; five standard errors of a share of 1/3 among 4,000.
    assert (shares[1:] - 1 / 3).abs().max() < 5 * (2 / 9 / 4000) ** 0.5


def test_gradients_are_right():
    target = targets(7, sizes=[3, 2])
    prediction = random_prediction(generator(7), 2, 5, requires_grad=True)
    plan = matched(prediction, target)

    def total(*tensors):
        return relation_loss(Prediction(*tensors), target, plan, ALL).total

    tensors = (prediction.presence, prediction.edges, prediction.node_labels)
    assert torch.autograd.gradcheck(total, tensors)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": targets(sizes=[3, 4])}, "prediction has 4 graphs of 5 slots, target 2 of 5"),
        ({"target": targets(vocabulary=PLAIN)}, "prediction.node_labels has 3 classes, the target's vocabulary 1"),
        (
            {"target": targets(vocabulary=Vocabulary(("a", "b", "c")))},
            "prediction.edges has 3 classes, the target's vocabulary 2",
        ),
        ({"plan": torch.zeros(4, 5, 4, dtype=torch.float64)}, "plan"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    target, prediction = targets(), random_prediction(generator(), 4, 5)
    given = {"prediction": prediction, "target": target, "plan": matched(prediction, target)} | change
    with pytest.raises(ValueError, match=message):
        relation_loss(**given)


@pytest.mark.parametrize("wrong", [{"node_labels": -1.0}, {"none_weight": 0.0}, {"negatives": 0}])
def test_settings_out_of_bounds_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LossSettings(**wrong)
