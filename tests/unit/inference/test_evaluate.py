"""A model on a data set: alignments of its predictions, and where the truth stands among its candidates."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphwright.decoding import Candidate, Candidates, harden
from graphwright.graphs import Graph, GraphBatch, Prediction, Vocabulary
from graphwright.inference import evaluate
from graphwright.inference.decoders import decoder_named
from graphwright.inference.evaluate import Evaluation, alignments
from graphwright.losses import LossSettings
from graphwright.metrics import evaluate_graphs
from graphwright.metrics.aligned import AlignedSlots, aligned_errors
from graphwright.transport import Objective
from tiny import PLAIN, complete, cycle, from_edges, star

SLOTS = 24


def shuffled_truth(batch: GraphBatch, seed: int) -> Prediction:
    """Confident logits of the graphs themselves, each on slots of its own."""
    generator = torch.Generator().manual_seed(seed)
    b, n = batch.mask.shape
    slots = torch.stack([torch.randperm(n, generator=generator) for _ in range(b)])
    edges = batch.adjacency(torch.float32)
    edges = edges.gather(1, slots[:, :, None].expand(b, n, n)).gather(2, slots[:, None, :].expand(b, n, n))
    noise = torch.randn(b, n, n, generator=generator)
    return Prediction(4 * (2 * batch.mask.float().gather(1, slots) - 1), 6 * edges - 3 + 0.2 * (noise + noise.mT))


@pytest.mark.parametrize("seed", range(3))
def test_symmetric_graphs_on_many_slots_are_aligned(seed):
    two_rings = from_edges(12, [(i, (i + 1) % 6) for i in range(6)] + [(6 + i, 6 + (i + 1) % 6) for i in range(6)])
    targets = GraphBatch.collate([cycle(6), complete(5), star(7), cycle(5), two_rings], SLOTS)
    prediction = shuffled_truth(targets, seed)
    found = AlignedSlots(harden(prediction, PLAIN), alignments(prediction, targets, LossSettings()))
    exact = aligned_errors(found, targets).exact
    assert exact[:4].all()  # two like rings at once may still be confused


def test_a_sample_is_aligned_the_same_in_any_batch_and_under_any_objective():
    targets = GraphBatch.collate([cycle(6), star(7), cycle(5)], SLOTS)
    prediction = shuffled_truth(targets, 5)
    whole = alignments(prediction, targets, LossSettings())
    averaged = LossSettings(objective=Objective.J_A)
    assert torch.equal(alignments(prediction, targets, averaged), whole)
    last = Prediction(prediction.presence[2:], prediction.edges[2:])
    assert torch.equal(alignments(last, targets.select(torch.tensor([2])), LossSettings()), whole[2:])


VOCABULARY = Vocabulary(("a",), ("none", "edge"))


def path(size: int) -> Graph:
    return Graph.build(["a"] * size, [(at, at + 1) for at in range(size - 1)], ["edge"] * (size - 1), VOCABULARY)


def ranked(truths: list[int], *, proved: bool = True) -> Evaluation:
    """Paths of 1 to 10 nodes are the candidates of every sample."""
    found = Candidates(tuple(Candidate(path(size), 0.0, 0.1, 0.1, proved) for size in range(1, 11)), 0.0)
    targets = [path(size) for size in truths]
    predicted = [path(1)] * len(truths)
    report = evaluate_graphs(predicted, targets)
    return Evaluation(list(range(len(truths))), predicted, targets, report, [found] * len(truths))


@pytest.mark.parametrize(
    ("size", "top5", "top10"), [(1, 1, 1), (5, 1, 1), (6, 0, 1), (10, 0, 1), (11, 0, 0), (16, 0, 0)]
)
def test_the_truth_counts_up_to_its_place(size: int, top5: int, top10: int) -> None:
    found = {extra.name: extra.values.tolist() for extra in evaluate._tops(ranked([size]))}
    assert found == {"top5": [top5], "top10": [top10]}


def test_few_candidates_do_not_make_a_hit() -> None:
    whole = ranked([7])
    few = Candidates(whole.ranked[0].candidates[:2], 0.0)
    short = Evaluation(whole.indices, whole.predicted, whole.targets, whole.report, [few])
    assert [extra.values.tolist() for extra in evaluate._tops(short)] == [[0], [0]]


def test_what_is_not_proved_is_counted_as_such() -> None:
    for proved in (True, False):
        (extra,) = decoder_named("valid").extras([], ranked([1, 2], proved=proved).ranked)
        np.testing.assert_array_equal(extra.values, [proved, proved])
