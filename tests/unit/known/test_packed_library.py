"""Known graphs as tensors and back."""

import numpy as np
import torch

from graphwright.known import Library
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


def test_a_model_without_one_has_none():
    assert Library.unpacked({"model.weight": torch.zeros(2)}, LABELLED, 5) is None
