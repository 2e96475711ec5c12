"""The alignment behind the paper's diagnostic."""

import pytest
import torch

from graphwright.decoding import harden
from graphwright.graphs import GraphBatch, Prediction
from graphwright.inference.evaluate import alignments
from graphwright.losses import LossSettings
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
