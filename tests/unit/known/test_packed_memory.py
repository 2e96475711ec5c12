"""What a model remembers as tensors and back."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from graphwright.known.library import Memory, bag


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


def test_a_model_without_one_has_none():
    assert Memory.unpacked({"model.weight": torch.zeros(2)}) is None
