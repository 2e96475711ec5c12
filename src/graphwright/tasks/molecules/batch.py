"""Molecules side by side, as a model takes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from graphwright.graphs import GraphBatch, Vocabulary
from graphwright.tasks.molecules.fingerprint import tokens
from graphwright.tasks.molecules.sample import MoleculeSample


def collate_molecules(
    samples: Sequence[MoleculeSample], vocabulary: Vocabulary, capacity: int
) -> tuple[Tensor, GraphBatch]:
    """(b, k) tokens, and the graphs padded to `capacity` nodes."""
    b, n = len(samples), capacity
    mask, atoms = np.zeros((b, n), bool), np.zeros((b, n), np.int64)
    bonds = np.zeros((b, n, n), np.int64)
    for at, sample in enumerate(samples):
        mask[at, : len(sample.atoms)] = True
        atoms[at, : len(sample.atoms)] = sample.atoms
        first, second, code = sample.bonds.T
        bonds[at, first, second] = code
        bonds[at, second, first] = code
    target = GraphBatch(torch.from_numpy(mask), torch.from_numpy(atoms), torch.from_numpy(bonds), vocabulary)
    return tokens([sample.bits for sample in samples]), target
