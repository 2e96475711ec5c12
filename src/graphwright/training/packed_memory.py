"""What a model remembers as tensors, three bytes a word."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from graphwright.decoding.memory import Memory, bag

PREFIX = "memory."
LARGEST, HALF = 255, 2**15
"""Of a weight's numbers; and what is taken off a word's, for tensors know no unsigned numbers of two bytes."""


def packed_memory(memory: Memory) -> dict[str, Tensor]:
    """words and weights (e,), lengths and places (r,), shape (2,): words in all, and graphs."""
    words = memory.bags.shape[1]
    if words > 2 * HALF:
        raise ValueError(f"{words} words do not fit into two bytes")
    arrays = {
        "words": (memory.bags.indices.astype(np.int32) - HALF).astype(np.int16),
        "weights": np.clip(np.rint(memory.bags.data * LARGEST), 1, LARGEST).astype(np.uint8),
        "lengths": np.diff(memory.bags.indptr).astype(np.int32),
        "places": memory.places.astype(np.int32),
        "shape": np.array([words, memory.graphs], np.int32),
    }
    return {PREFIX + name: torch.from_numpy(array) for name, array in arrays.items()}


def unpacked_memory(tensors: Mapping[str, Tensor]) -> Memory | None:
    """The memory among a model's tensors, if there is one."""
    if f"{PREFIX}words" not in tensors:
        return None
    words, weights, lengths, places, shape = (
        tensors[PREFIX + name].numpy() for name in ("words", "weights", "lengths", "places", "shape")
    )
    rows = np.repeat(np.arange(len(lengths)), lengths)
    bags = bag(rows, words.astype(np.int64) + HALF, weights.astype(np.float32), (len(lengths), int(shape[0])))
    return Memory(bags, places.astype(np.int64), int(shape[1]))
