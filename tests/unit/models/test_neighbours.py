"""Sums over labelled neighbours beside the dense products that define them."""

import numpy as np
import pytest
import torch

from graphwright.graphs import GraphBatch
from graphwright.models.target_encoder import Neighbours
from tiny import LABELLED, PLAIN, cycle, random_batch

WIDTH = 3


def by_products(target: GraphBatch, sent: torch.Tensor) -> torch.Tensor:
    """sum over labels c of A_c y_c, on the padded batch."""
    relations = target.edge_one_hot(torch.float64)[:, 1:]
    room = target.padded(sent).unflatten(2, (relations.shape[1], WIDTH))
    return torch.einsum("bcij,bjcw->biw", relations, room)[target.mask]


@pytest.mark.parametrize("vocabulary", [LABELLED, PLAIN])
@pytest.mark.parametrize("sizes", [[6, 4, 1, 0, 7], [0, 0], [1], [7, 7, 7]])
def test_nodes_receive_what_their_neighbours_send_by_the_label_between(vocabulary, sizes):
    target = random_batch(np.random.default_rng(len(sizes)), sizes, 7, vocabulary)
    relations = len(vocabulary.edges) - 1
    generator = torch.Generator().manual_seed(0)
    sent = torch.randn(sum(sizes), relations * WIDTH, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(sum(sizes), WIDTH, generator=generator, dtype=torch.float64)
    received, expected = Neighbours.of(target).received(sent), by_products(target, sent)
    torch.testing.assert_close(received, expected)
    ours, wanted = (torch.autograd.grad((value * weight).sum(), sent)[0] for value in (received, expected))
    torch.testing.assert_close(ours, wanted)


def test_neighbours_pass_gradcheck():
    neighbours = Neighbours.of(GraphBatch.collate([cycle(5), cycle(3)], 6))
    sent = torch.randn(8, WIDTH, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(neighbours.received, sent)
