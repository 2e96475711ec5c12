"""Molecules of a file as a torch dataset, parsed when they are first asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from graphwright.graphs import GraphBatch, Vocabulary
from graphwright.graphs.molecules import MoleculeError
from graphwright.tasks.molecules.fingerprint import tokens
from graphwright.tasks.molecules.sample import MoleculeSample, pack, read_molecule, unpack
from graphwright.tasks.molecules.source import SmilesTable
from graphwright.tasks.task import Rejection


class NoMoleculeError(ValueError):
    """A file without a single usable row."""


class MoleculeDataset(Dataset[MoleculeSample]):
    """Some rows of a file. A row is parsed once in each process that asks for it, then kept packed.

    Without a limit nothing is parsed beforehand, and index i is row i, or the next one that is usable where row i
    is not (the first comes after the last): a pure function of the file, so that a run resumes exactly. With a
    limit the rows are parsed until so many usable ones are found, and index i is the i-th of these.
    """

    def __init__(
        self,
        table: SmilesTable,
        rows: NDArray[np.int64],
        vocabulary: Vocabulary,
        capacity: int,
        limit: int | None = None,
    ) -> None:
        self.table, self.vocabulary, self.capacity = table, vocabulary, capacity
        self.rows = rows
        self._packed: dict[int, bytes | MoleculeError] = {}
        if limit is not None:
            self.rows = self._usable(limit)
        if not len(self.rows) or self._first_usable(0) is None:
            raise NoMoleculeError(self._no_molecule(len(rows)))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int | tuple[int, int]) -> MoleculeSample:
        at = index[0] if isinstance(index, tuple) else index
        if not 0 <= at < len(self):
            raise IndexError(f"molecule {at} of {len(self)}")
        row = self._first_usable(at)
        assert row is not None  # there is one: the constructor has seen it
        packed = self._read(row)
        assert isinstance(packed, bytes)
        return unpack(packed, self.vocabulary, self.table.smiles[row].as_py())

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_packed": {}}  # a worker parses for itself

    @property
    def rejected(self) -> list[Rejection]:
        """The unusable rows among those parsed so far, in this process; rows count from 0."""
        faults = [(row, found) for row, found in self._packed.items() if isinstance(found, MoleculeError)]
        return [
            Rejection(row, str(fault.reason), fault.detail) for row, fault in sorted(faults, key=itemgetter(0))
        ]

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, GraphBatch]:
        """Tokens and graphs of some molecules."""
        return self.collate([self[index] for index in indices])

    def collate(self, samples: Sequence[MoleculeSample]) -> tuple[Tensor, GraphBatch]:
        """(b, k) tokens, and the graphs padded to the capacity."""
        b, n = len(samples), self.capacity
        mask, atoms = np.zeros((b, n), bool), np.zeros((b, n), np.int64)
        bonds = np.zeros((b, n, n), np.int64)
        for at, sample in enumerate(samples):
            mask[at, : len(sample.atoms)] = True
            atoms[at, : len(sample.atoms)] = sample.atoms
            first, second, code = sample.bonds.T
            bonds[at, first, second] = code
            bonds[at, second, first] = code
        target = GraphBatch(
            torch.from_numpy(mask), torch.from_numpy(atoms), torch.from_numpy(bonds), self.vocabulary
        )
        return tokens([sample.bits for sample in samples]), target

    def digest(self) -> str:
        """SHA-256 of the file."""
        return self.table.digest()

    def _read(self, row: int) -> bytes | MoleculeError:
        found = self._packed.get(row)
        if found is None:
            try:
                smiles = self.table.smiles[row].as_py()
                found = pack(read_molecule(smiles, self.vocabulary, self.capacity))
            except MoleculeError as error:
                found = error
            self._packed[row] = found
        return found

    def _first_usable(self, at: int) -> int | None:
        """The first usable row from position `at` on, going round."""
        for step in range(len(self.rows)):
            row = int(self.rows[(at + step) % len(self.rows)])
            if isinstance(self._read(row), bytes):
                return row
        return None

    def _usable(self, limit: int) -> NDArray[np.int64]:
        found: list[int] = []
        for row in self.rows.tolist():
            if len(found) == limit:
                break
            if isinstance(self._read(row), bytes):
                found.append(row)
        return np.array(found, np.int64)

    def _no_molecule(self, rows: int) -> str:
        if not rows:
            return f"{self.table.path} has no row in this split"
        rejected = self.rejected
        counts = Counter(each.reason for each in rejected)
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())
        first = f"row {rejected[0].row}: {rejected[0].detail}"
        return f"{self.table.path} has no usable molecule in {rows:,} rows ({reasons}); {first}"
