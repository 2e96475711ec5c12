"""Molecules side by side, as a model takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphwright.graphs import GraphBatch, Vocabulary
from graphwright.tasks.molecules.fingerprint import token_owners, tokens
from graphwright.tasks.molecules.sample import MoleculeSample


class HasMolecule(Protocol):
    """Whatever carries a molecule: atoms (n,) codes, bonds (e, 3) pairs and codes."""

    @property
    def atoms(self) -> NDArray[np.integer[Any]]:
        """(n,) element codes."""

    @property
    def bonds(self) -> NDArray[np.integer[Any]]:
        """(e, 3) two atoms and the bond's code."""


def collate_molecules(
    samples: Sequence[MoleculeSample], vocabulary: Vocabulary, capacity: int, *, owners: bool = False
) -> tuple[Tensor, GraphBatch]:
    """(b, k) tokens, and the graphs padded to `capacity` nodes; with `owners` which token is of which atom."""
    bits, graphs = [sample.bits for sample in samples], padded_graphs(samples, vocabulary, capacity)
    if owners:
        found = token_owners(bits, [sample.centres for sample in samples], capacity)
        graphs = replace(graphs, owners=found)
    return tokens(bits), graphs


def padded_graphs(samples: Sequence[HasMolecule], vocabulary: Vocabulary, capacity: int) -> GraphBatch:
    """The graphs of some molecules, padded to `capacity` nodes."""
    b, n = len(samples), capacity
    mask, atoms = np.zeros((b, n), bool), np.zeros((b, n), np.int64)
    bonds = np.zeros((b, n, n), np.int64)
    for at, sample in enumerate(samples):
        mask[at, : len(sample.atoms)] = True
        atoms[at, : len(sample.atoms)] = sample.atoms
        first, second, code = sample.bonds.T
        bonds[at, first, second] = code
        bonds[at, second, first] = code
    return GraphBatch(torch.from_numpy(mask), torch.from_numpy(atoms), torch.from_numpy(bonds), vocabulary)
