"""Molecules of a file as a torch dataset, parsed when they are first asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from graphwright.graphs import GraphBatch, Vocabulary
from graphwright.graphs.molecules import MoleculeError, Reason
from graphwright.tasks.molecules.batch import collate_molecules
from graphwright.tasks.molecules.sample import MoleculeSample, pack, read_molecule, unpack
from graphwright.tasks.molecules.source import SmilesTable
from graphwright.tasks.task import Rejection

REASONS = tuple(Reason)
USABLE = 1


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
        self.rows, self.owners = rows, False
        self._packed: dict[int, bytes | MoleculeError] = {}
        # Data workers write into the same memory, so that the process that started them can count.
        self._seen = torch.zeros(len(table), dtype=torch.uint8)
        self._seen.share_memory_()  # type: ignore[no-untyped-call]
        """(r,) what became of every row of the file: 0 not parsed yet, 1 usable, above that its reason."""
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
        """The unusable rows among those parsed so far, in this process and in data workers."""
        rows = torch.nonzero(self._seen > USABLE)[:, 0].tolist()
        return [self._rejection(row, fault) for row in rows if isinstance(fault := self._read(row), MoleculeError)]

    def unusable(self) -> dict[str, int]:
        """How many these are, by reason, the commonest first."""
        counts = torch.bincount(self._seen, minlength=1 + USABLE + len(REASONS))[1 + USABLE :].tolist()
        found = {str(reason): count for reason, count in zip(REASONS, counts, strict=True) if count}
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, GraphBatch]:
        """Tokens and graphs of some molecules."""
        return self.collate([self[index] for index in indices])

    def collate(self, samples: Sequence[MoleculeSample]) -> tuple[Tensor, GraphBatch]:
        """(b, k) tokens, and the graphs padded to the capacity."""
        return collate_molecules(samples, self.vocabulary, self.capacity, owners=self.owners)

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
            self._seen[row] = USABLE if isinstance(found, bytes) else 1 + USABLE + REASONS.index(found.reason)
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
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.unusable().items())
        row = int(torch.nonzero(self._seen > USABLE)[0])
        first = self._read(row)
        assert isinstance(first, MoleculeError)
        return (
            f"{self.table.path} has no usable molecule in {rows:,} rows ({reasons}); "
            f"row {self.table.numbers[row]}: {first.detail}"
        )

    def _rejection(self, row: int, fault: MoleculeError) -> Rejection:
        text = self.table.smiles[row].as_py() or ""
        return Rejection(int(self.table.numbers[row]), str(fault.reason), fault.detail, text)
