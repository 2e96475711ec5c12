"""The target encoder: what it must see, and what it must not."""

import numpy as np
import pytest
import torch

from graphwright.graphs import GraphBatch, Vocabulary
from graphwright.models import TargetEncoder
from tiny import LABELLED, PLAIN, complete, cycle, from_edges, random_batch, star


def encoder(
    vocabulary: Vocabulary = LABELLED,
    positions: int = 0,
    *,
    random_signs: bool = False,
    seed: int = 0,
):
    torch.manual_seed(seed)
    module = TargetEncoder(vocabulary, 8, 3, positions, random_signs=random_signs, dropout=0.0)
    return module.double().eval()


def shuffled(batch: GraphBatch, seed: int) -> torch.Tensor:
    """An order per graph that moves real nodes among themselves."""
    generator = torch.Generator().manual_seed(seed)
    keys = torch.rand(batch.mask.shape, generator=generator) + (~batch.mask).double() * 10
    return keys.argsort(1)


def gathered(states: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    return states.gather(1, order[:, :, None].expand_as(states))


@pytest.mark.parametrize("positions", [0, 4])
def test_states_have_the_right_shape_and_are_zero_at_padding(positions):
    batch = random_batch(np.random.default_rng(0), [5, 0, 1, 7], 7)
    states = encoder(positions=positions)(batch)
    assert states.shape == (4, 7, 8)
    assert not states[~batch.mask].any()
    assert states[batch.mask].abs().sum(1).gt(0.1).all()


@pytest.mark.parametrize("seed", range(5))
def test_without_positions_it_is_permutation_equivariant(seed):
    batch = random_batch(np.random.default_rng(seed), [6, 4, 1, 0], 7)
    order = shuffled(batch, seed)
    module = encoder(seed=seed)
    torch.testing.assert_close(module(batch.permute(order)), gathered(module(batch), order), atol=1e-12, rtol=0)


def test_with_positions_it_is_not():
    batch = GraphBatch.collate([cycle(6)])
    order = torch.tensor([[3, 0, 4, 1, 5, 2]])
    module = encoder(PLAIN, positions=4)
    assert (module(batch.permute(order)) - gathered(module(batch), order)).abs().max() > 0.1


@pytest.mark.parametrize("graph", [cycle(5), cycle(6), complete(4), from_edges(4, [])])
def test_nodes_that_a_symmetry_exchanges_get_equal_states(graph):
    states = encoder(PLAIN)(GraphBatch.collate([graph], graph.size + 2))[0, : graph.size]
    torch.testing.assert_close(states, states[:1].expand_as(states), atol=1e-12, rtol=0)


def test_positions_tell_symmetric_nodes_apart():
    states = encoder(PLAIN, positions=4)(GraphBatch.collate([cycle(6)]))[0]
    assert torch.pdist(states).min() > 1e-3


def test_a_stars_leaves_are_alike_and_unlike_its_centre():
    states = encoder(PLAIN)(GraphBatch.collate([star(4)]))[0]
    torch.testing.assert_close(states[1:], states[1:2].expand(4, -1), atol=1e-12, rtol=0)
    assert (states[0] - states[1]).abs().max() > 1e-2


@pytest.mark.parametrize("positions", [0, 4])
def test_padding_and_the_rest_of_the_batch_do_not_count(positions):
    batch = random_batch(np.random.default_rng(1), [6, 3, 5], 6)
    module = encoder(positions=positions)
    states = module(batch)
    torch.testing.assert_close(module(batch.pad(11))[:, :6], states, atol=1e-4, rtol=0)
    for at in range(3):
        alone = module(GraphBatch.collate([batch[at]], 6))
        torch.testing.assert_close(alone[0], states[at], atol=1e-4, rtol=0)


def test_graphs_of_many_sizes_do_not_count_for_each_other():
    sizes = [40, 3, 11, 25, 1, 0, 33, 38, 20, 40]
    batch = random_batch(np.random.default_rng(5), sizes, 40)
    module = encoder(positions=4)
    states = module(batch)
    for at, size in enumerate(sizes):
        alone = module(GraphBatch.collate([batch[at]], 40))
        torch.testing.assert_close(alone[0, :size], states[at, :size], atol=1e-4, rtol=0)


def test_an_empty_batch_has_no_states():
    assert encoder(positions=4)(GraphBatch.collate([], 4, LABELLED)).shape == (0, 4, 8)


@pytest.mark.parametrize("place", ["node", "edge"])
def test_labels_count(place):
    batch = random_batch(np.random.default_rng(2), [5], 5)
    nodes, edges = batch.node_labels.clone(), batch.edge_labels.clone()
    if place == "node":
        nodes[0, 0] = (nodes[0, 0] + 1) % 3
    else:
        first, second = (edges[0] > 0).nonzero()[0].tolist()
        edges[0, first, second] = edges[0, second, first] = 3 - edges[0, first, second]
    changed = GraphBatch(batch.mask, nodes, edges, LABELLED)
    module = encoder()
    assert (module(changed) - module(batch)).abs().max() > 1e-3


def test_information_travels_as_many_edges_as_there_are_layers():
    path = [(at, at + 1) for at in range(6)]
    batch = GraphBatch.collate([from_edges(7, path, LABELLED)])
    changed = batch.node_labels.clone()
    changed[0, 0] = 1
    module = encoder()
    other = module(GraphBatch(batch.mask, changed, batch.edge_labels, LABELLED))
    moved = (other - module(batch))[0].abs().amax(1)
    assert (moved[:4] > 0).all()
    assert not moved[4:].any()


def test_signs_are_random_in_training_only():
    batch = random_batch(np.random.default_rng(3), [6], 6)
    module = encoder(positions=4, random_signs=True)
    torch.manual_seed(0)
    assert torch.equal(module(batch), module(batch))
    module.train()
    assert len({tuple(module(batch).flatten().tolist()) for _ in range(20)}) > 1
    module.random_signs = False
    assert torch.equal(module(batch), module(batch))


@pytest.mark.parametrize("positions", [0, 4])
def test_every_parameter_gets_a_gradient(positions):
    module = encoder(positions=positions)
    states = module(random_batch(np.random.default_rng(4), [6, 7, 5], 7))
    (states * torch.randn(states.shape, dtype=states.dtype)).sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
