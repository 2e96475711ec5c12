"""Which known graph a target is."""

import numpy as np
import torch

from graphwright.graphs import GraphBatch
from graphwright.graphs.isomorphism import neighbourhoods
from graphwright.known import Library
from graphwright.known.head import RADIUS, SMOOTHING, UNKNOWN, Recognition, shared_parts
from tiny import random_batch

SLOTS = 5


def graphs(seed: int, count: int):
    generator = np.random.default_rng(seed)
    return random_batch(generator, generator.integers(1, SLOTS + 1, count).tolist(), SLOTS).graphs()


def test_a_target_is_found_in_any_order_of_its_nodes():
    library = Library.of(graphs(0, 30), SLOTS)
    generator = np.random.default_rng(1)
    shuffled = [graph.permute(generator.permutation(graph.size)) for graph in library.graphs]
    recognition = Recognition(library)
    for _ in range(2):  # looked up, then remembered
        assert recognition.indices(GraphBatch.collate(shuffled, SLOTS)).tolist() == list(range(len(library)))


def test_unknown_targets_cost_nothing():
    library = Library.of(graphs(0, 4), SLOTS)
    target = GraphBatch.collate([*library.graphs[:1], *graphs(9, 40)[-1:]], SLOTS)
    recognition = Recognition(library)
    assert recognition.indices(target).tolist() == [0, UNKNOWN]
    logits = torch.randn(2, len(library), requires_grad=True)
    loss = recognition(logits, target)
    logs = logits[0].log_softmax(0)
    torch.testing.assert_close(loss[0], -(1 - SMOOTHING) * logs[0] - SMOOTHING * logs.mean())
    assert loss[1].item() == 0


def test_graphs_are_made_of_the_parts_that_they_share_and_one_of_their_own():
    library = Library.of(graphs(0, 30), SLOTS)
    bags = shared_parts(library)
    rows = [set(part.tolist()) for part in torch.tensor_split(bags.rows, bags.starts[1:])]
    assert [len(part) for part in rows] == bags.counts().tolist()
    around = [neighbourhoods(graph, RADIUS) for graph in library.graphs]
    own = bags.height - len(library)
    for at, mine in enumerate(rows):
        assert {row - own for row in mine if row >= own} == {at}
        for other in range(len(library)):
            if other != at:
                assert len(mine & rows[other]) == len(around[at] & around[other])
