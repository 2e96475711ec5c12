"""Remembered inputs: what is most like a query, graph by graph."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from graphwright.known.library import Memory, bag

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
