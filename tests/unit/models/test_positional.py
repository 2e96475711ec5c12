"""Laplacian encodings: eigenvectors of the real subgraph, and of nothing else."""

import numpy as np
import pytest
import torch

from graphwright.graphs import Graph, GraphBatch
from graphwright.models import flip_signs, laplacian_encoding
from tiny import PLAIN, complete, cycle, from_edges, random_graph, star

PATH = [(0, 1), (1, 2), (2, 3)]
SPECIAL = {
    "cycle": cycle(6),
    "complete": complete(5),
    "star": star(4),
    "disconnected": from_edges(7, [*PATH, (4, 5), (5, 6), (4, 6)]),
    "isolated nodes": from_edges(6, PATH),
    "no edges": from_edges(4, []),
    "two nodes": from_edges(2, [(0, 1)]),
}
RANDOM = [random_graph(np.random.default_rng(seed), 7) for seed in range(5)]


def encode(graph: Graph, capacity: int, dimension: int = 8, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    batch = GraphBatch.collate([graph], capacity)
    return laplacian_encoding(batch.adjacency(dtype), batch.mask, dimension)[0]


def laplacian(graph: Graph) -> np.ndarray:
    """I - D^-1/2 A D^-1/2 of the graph alone; an isolated node's row is zero."""
    matrix = np.zeros((graph.size, graph.size))
    for first, second in graph.edges:
        matrix[first, second] = matrix[second, first] = 1
    degree = matrix.sum(1)
    scale = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return np.diag((degree > 0).astype(float)) - scale[:, None] * matrix * scale


def well_separated(rng: np.random.Generator) -> Graph:
    """A random graph whose eigenvalues are simple, so that its eigenvectors are its own."""
    while True:
        graph = random_graph(rng, int(rng.integers(3, 10)), PLAIN)
        if np.diff(np.linalg.eigvalsh(laplacian(graph))).min() > 1e-2:
            return graph


@pytest.mark.parametrize("seed", range(10))
def test_the_encoding_is_numpys_eigenvectors_up_to_sign(seed):
    graph = well_separated(np.random.default_rng(seed))
    m = graph.size
    expected = np.linalg.eigh(laplacian(graph)).eigenvectors[:, 1:9] * np.sqrt(m)
    found = encode(graph, capacity=11).numpy()[:m, : m - 1]
    agreement = np.abs((found * expected[:, : found.shape[1]]).sum(0)) / m
    np.testing.assert_allclose(agreement, 1, atol=1e-9)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-4)


@pytest.mark.parametrize("name", SPECIAL)
def test_repeated_eigenvalues_have_orthogonal_eigenvectors_in_their_space(name):
    graph = SPECIAL[name]
    m = graph.size
    values = np.linalg.eigvalsh(laplacian(graph))[1:]
    vectors = encode(graph, capacity=m + 2, dimension=m - 1).numpy()[:m]
    np.testing.assert_allclose(vectors.T @ vectors, m * np.eye(m - 1), atol=1e-9)
    np.testing.assert_allclose(laplacian(graph) @ vectors, vectors * values, atol=1e-5)


@pytest.mark.parametrize(
    "graph", [*SPECIAL.values(), *(random_graph(np.random.default_rng(s), 8) for s in range(5))]
)
def test_the_encoding_is_blind_to_capacity_and_to_the_rest_of_the_batch(graph):
    alone = encode(graph, capacity=graph.size)
    padded = encode(graph, capacity=graph.size + 9)
    torch.testing.assert_close(padded[: graph.size], alone, atol=1e-5, rtol=0)
    assert not padded[graph.size :].any()
    rng = np.random.default_rng(0)
    others = [random_graph(rng, size, graph.vocabulary) for size in (8, 1, 0, 5)]
    batch = GraphBatch.collate([others[0], graph, *others[1:]], 12)
    together = laplacian_encoding(batch.adjacency(torch.float64), batch.mask, 8)[1]
    torch.testing.assert_close(together[: graph.size], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("capacity", [1, 5])
def test_a_graph_without_pairs_has_no_encoding(size, capacity):
    found = encode(from_edges(size, []), capacity, dimension=3)
    assert torch.equal(found, torch.zeros(capacity, 3, dtype=torch.float64))


def test_no_room_at_all_gives_an_empty_encoding():
    assert laplacian_encoding(torch.zeros(2, 0, 0), torch.zeros(2, 0, dtype=torch.bool), 3).shape == (2, 0, 3)


def test_missing_eigenvectors_are_zero():
    found = encode(cycle(4), capacity=6, dimension=5)
    assert found[:4, :3].abs().sum(0).gt(0.1).all()
    assert not found[:, 3:].any()


@pytest.mark.parametrize(
    "graph", [*SPECIAL.values(), *(random_graph(np.random.default_rng(s), 7) for s in range(5))]
)
def test_the_largest_entry_is_positive_and_the_first_of_equal_ones_decides(graph):
    for column in encode(graph, capacity=9).T:
        if column.any():
            height = column.abs()
            first = int((height > height.max() * (1 - 1e-3)).nonzero()[0])
            assert column[first] > 0


def test_two_joined_nodes_are_plus_and_minus_one():
    expected = torch.tensor([[1.0], [-1.0], [0.0]])
    torch.testing.assert_close(encode(SPECIAL["two nodes"], 3, 1, torch.float32), expected, atol=1e-5, rtol=0)


def test_pieces_of_a_graph_are_told_apart():
    graph = from_edges(4, [(0, 1), (2, 3)])
    first = encode(graph, 4, 1)[:, 0]
    # One of the two constant-on-a-piece vectors is left out, the other kept.
    assert first[:2].abs().max() < 1e-5
    assert first[2:].min() > 1


def test_what_the_adjacency_says_of_padding_does_not_count():
    batch = GraphBatch.collate([cycle(4)], 6)
    dirty = batch.adjacency(torch.float64)
    dirty[:, 4, 5] = dirty[:, 5, 4] = dirty[:, 0, 5] = dirty[:, 5, 0] = 1
    clean = laplacian_encoding(batch.adjacency(torch.float64), batch.mask, 4)
    assert torch.equal(laplacian_encoding(dirty, batch.mask, 4), clean)


def test_the_encoding_has_the_type_of_the_adjacency():
    assert encode(cycle(4), 5, 3, torch.float32).dtype is torch.float32


def test_flipping_changes_whole_eigenvectors_and_nothing_else():
    torch.manual_seed(0)
    encoding = torch.randn(20, 5, 3)
    flipped = flip_signs(encoding)
    sign = flipped / encoding
    assert torch.equal(sign, sign[:, :1].expand_as(sign))
    assert set(sign.unique().tolist()) == {-1.0, 1.0}
    assert (sign[:, 0, 0] != sign[:, 0, 1]).any()
