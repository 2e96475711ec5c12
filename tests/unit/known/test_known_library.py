"""Known graphs and the inputs remembered with them: what they answer, and how they are packed."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from graphwright.known import Library
from graphwright.known.library import Memory, bag
from tiny import LABELLED, random_batch


def test_a_library_comes_back_as_it_was():
    sizes = [1, 5, 2, 3, 5, 1, 4]
    library = Library.of(random_batch(np.random.default_rng(0), sizes, 5).graphs(), 5)
    tensors = library.packed()
    assert all(name.startswith("known.") for name in tensors)
    back = Library.unpacked(tensors | {"model.weight": torch.zeros(2)}, LABELLED, 5)
    assert back.graphs == library.graphs
    assert back.counts.tolist() == library.counts.tolist()
    assert torch.equal(back.batch.edge_labels, library.batch.edge_labels)


def test_a_model_without_a_library_has_none():
    assert Library.unpacked({"model.weight": torch.zeros(2)}, LABELLED, 5) is None


WORDS = 12


def bags(seed: int, count: int) -> csr_array:
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(count), 4)
    return bag(rows, rng.integers(0, WORDS, len(rows)), rng.uniform(0.1, 1, len(rows)), (count, WORDS))


def test_rows_have_length_one_and_words_that_come_twice_are_added_up():
    made = bag(
        np.array([0, 0, 0, 2]), np.array([3, 3, 5, 1]), np.array([1.0, 2.0, 4.0, 0.5]), (3, WORDS)
    ).toarray()
    np.testing.assert_allclose(made[0, [3, 5]], [0.6, 0.8], atol=1e-6)
    assert not made[1].any()
    assert made[2, 1] == pytest.approx(1)


def test_likeness_is_the_cosine_of_the_nearest_input_of_each_graph():
    places = np.array([0, 0, 2, 2, 2, 3])
    memory, queries = Memory(bags(0, 6), places, 5), bags(1, 4)
    expected = np.zeros((4, 5))
    for query, row in enumerate(queries.toarray()):
        for graph in range(5):
            cosines = [
                float(row @ other)
                for other, place in zip(memory.bags.toarray(), places, strict=True)
                if place == graph
            ]
            expected[query, graph] = max(cosines, default=0)
    np.testing.assert_allclose(memory.likeness(queries), expected, atol=1e-6)
    assert not memory.likeness(queries)[:, [1, 4]].any()


def test_an_input_is_like_itself_and_nothing_is_like_no_words():
    memory = Memory(bags(0, 6), np.arange(6), 6)
    np.testing.assert_allclose(np.diag(memory.likeness(memory.bags)), 1, atol=1e-6)
    assert not memory.likeness(csr_array((2, WORDS), dtype=np.float32)).any()


def test_an_empty_memory_likes_nothing():
    empty = Memory(csr_array((0, WORDS), dtype=np.float32), np.zeros(0, np.int64), 3)
    assert empty.likeness(bags(1, 2)).tolist() == [[0, 0, 0]] * 2


def memory(words: int = 2**16) -> Memory:
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(9), 5)
    columns = np.append(rng.integers(0, words, len(rows) - 2), [0, words - 1])
    bags = bag(rows, columns, rng.uniform(0.05, 1, len(rows)), (9, words))
    return Memory(bags, np.array([0, 0, 1, 4, 4, 4, 5, 7, 7]), 8)


def test_a_memory_comes_back_to_three_digits():
    before = memory()
    tensors = before.packed()
    assert all(name.startswith("memory.") for name in tensors)
    assert tensors["memory.words"].element_size() + tensors["memory.weights"].element_size() == 3
    after = Memory.unpacked(tensors | {"model.weight": torch.zeros(2)})
    assert after.graphs == 8
    assert after.indices.tolist() == before.indices.tolist()
    np.testing.assert_allclose(after.bags.toarray(), before.bags.toarray(), atol=5e-3)
    np.testing.assert_allclose(after.likeness(before.bags), before.likeness(before.bags), atol=2e-2)


def test_rows_without_words_stay():
    empty = Memory(csr_array((2, 8), dtype=np.float32), np.array([0, 1]), 2)
    assert Memory.unpacked(empty.packed()).bags.shape == (2, 8)


def test_more_words_than_two_bytes_hold_are_refused():
    with pytest.raises(ValueError, match="do not fit into two bytes"):
        memory(2**16 + 1).packed()


def test_a_model_without_a_memory_has_none():
    assert Memory.unpacked({"model.weight": torch.zeros(2)}) is None
