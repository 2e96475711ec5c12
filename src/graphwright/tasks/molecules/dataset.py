"""Molecules of a file as a torch dataset: samples, packed when they are first asked for, and batches of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphwright.graphs import Graph, GraphBatch, Vocabulary
from graphwright.graphs.molecules import MoleculeError, Reason, graph_from_molecule, parse_smiles
from graphwright.tasks.molecules.fingerprint import BitArray, active_bits_and_centres, token_owners, tokens
from graphwright.tasks.molecules.source import SmilesTable
from graphwright.tasks.task import RejectedRow, Samples

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class MoleculeSample:
    """bits: (k,) sorted active bits. atoms: (n,) codes. bonds: (e, 3) first atom, second atom, code.

    known_centres: (n, 3) the bits of which each atom is the centre, where they were asked for already.
    """

    bits: BitArray
    atoms: Bytes
    bonds: Bytes
    vocabulary: Vocabulary
    smiles: str | None
    known_centres: BitArray | None = None

    @property
    def centres(self) -> BitArray:
        """(n, 3) the bits of which each atom is the centre, `NO_BIT` where there are fewer."""
        if self.known_centres is not None:
            return self.known_centres
        return active_bits_and_centres(parse_smiles(self.smiles or ""))[1]

    @property
    def graph(self) -> Graph:
        bonds = self.bonds.astype(np.int64)
        return Graph(self.atoms.astype(np.int64), bonds[:, :2], bonds[:, 2], self.vocabulary)


def read_molecule(smiles: str | None, vocabulary: Vocabulary, capacity: int) -> MoleculeSample:
    """The sample of a SMILES, or a `MoleculeError` with its reason."""
    molecule = parse_smiles(smiles or "")
    graph = graph_from_molecule(molecule, vocabulary, capacity)
    bonds = np.concatenate([graph.edges, graph.edge_labels[:, None]], 1).astype(np.uint8)
    bits, centres = active_bits_and_centres(molecule)
    return MoleculeSample(bits, graph.node_labels.astype(np.uint8), bonds, vocabulary, smiles, centres)


def pack(sample: MoleculeSample) -> bytes:
    """About 180 bytes for a molecule of QM9, 360 for one of 24 atoms."""
    sizes = np.array([len(sample.bits), len(sample.atoms)], np.uint16)
    arrays = (sizes, sample.bits, sample.centres, sample.atoms, sample.bonds)
    return b"".join(array.tobytes() for array in arrays)


def unpack(packed: bytes, vocabulary: Vocabulary, smiles: str | None) -> MoleculeSample:
    """The sample that `pack` packed."""
    bits, atoms = np.frombuffer(packed, np.uint16, 2).tolist()
    centres = 3 * atoms
    behind = 4 + 2 * (bits + centres)
    return MoleculeSample(
        np.frombuffer(packed, np.uint16, bits, 4),
        np.frombuffer(packed, np.uint8, atoms, behind),
        np.frombuffer(packed, np.uint8, offset=behind + atoms).reshape(-1, 3),
        vocabulary,
        smiles,
        np.frombuffer(packed, np.uint16, centres, 4 + 2 * bits).reshape(-1, 3),
    )


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
        owned = token_owners(bits, [sample.centres for sample in samples], capacity)
        graphs = replace(graphs, owners=owned)
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


REASONS = tuple(Reason)
USABLE = 1


class NoUsableMoleculeError(ValueError):
    """A file without a single usable row."""


class MoleculeDataset(Samples):
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
        # Data workers write into the same memory, so that the process that started them can count.
        self._seen = torch.zeros(len(table), dtype=torch.uint8)
        self._seen.share_memory_()  # type: ignore[no-untyped-call]
        """(r,) what became of every row of the file: 0 not parsed yet, 1 usable, above that its reason."""
        if limit is not None:
            self.rows = self._usable(limit)
        if not len(self.rows) or self._first_usable(0) is None:
            raise NoUsableMoleculeError(self._no_molecule(len(rows)))

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
    def rejected(self) -> list[RejectedRow]:
        """The unusable rows among those parsed so far, in this process and in data workers."""
        rows = torch.nonzero(self._seen > USABLE)[:, 0].tolist()
        return [self._rejection(row, fault) for row in rows if isinstance(fault := self._read(row), MoleculeError)]

    def unusable(self) -> dict[str, int]:
        """How many these are, by reason, the commonest first."""
        counts = torch.bincount(self._seen, minlength=1 + USABLE + len(REASONS))[1 + USABLE :].tolist()
        reasons = {str(reason): count for reason, count in zip(REASONS, counts, strict=True) if count}
        return dict(sorted(reasons.items(), key=lambda pair: -pair[1]))

    def collate(self, samples: Sequence[MoleculeSample]) -> tuple[Tensor, GraphBatch]:
        """(b, k) tokens, and the graphs padded to the capacity."""
        return collate_molecules(samples, self.vocabulary, self.capacity, owners=self.owners)

    def digest(self) -> str:
        """SHA-256 of the file."""
        return self.table.digest()

    def _read(self, row: int) -> bytes | MoleculeError:
        packed = self._packed.get(row)
        if packed is None:
            try:
                smiles = self.table.smiles[row].as_py()
                packed = pack(read_molecule(smiles, self.vocabulary, self.capacity))
            except MoleculeError as error:
                packed = error
            self._packed[row] = packed
            self._seen[row] = USABLE if isinstance(packed, bytes) else 1 + USABLE + REASONS.index(packed.reason)
        return packed

    def _first_usable(self, at: int) -> int | None:
        """The first usable row from position `at` on, going round."""
        for step in range(len(self.rows)):
            row = int(self.rows[(at + step) % len(self.rows)])
            if isinstance(self._read(row), bytes):
                return row
        return None

    def _usable(self, limit: int) -> NDArray[np.int64]:
        rows: list[int] = []
        for row in self.rows.tolist():
            if len(rows) == limit:
                break
            if isinstance(self._read(row), bytes):
                rows.append(row)
        return np.array(rows, np.int64)

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

    def _rejection(self, row: int, fault: MoleculeError) -> RejectedRow:
        text = self.table.smiles[row].as_py() or ""
        return RejectedRow(int(self.table.numbers[row]), str(fault.reason), fault.detail, text)


@dataclass(frozen=True)
class MoleculeStatistics:
    """Sizes, bonds and active bits per molecule, elements and bond types over all of them."""

    molecules: int
    size_min: int
    size_mean: float
    size_max: int
    bonds_mean: float
    bits_mean: float
    bits_max: int
    element_shares: Mapping[str, float]
    bond_shares: Mapping[str, float]

    def rows(self) -> list[tuple[str, str]]:
        return [
            ("looked at", f"{self.molecules:,}"),
            ("heavy atoms", f"{self.size_min} to {self.size_max}, mean {self.size_mean:.2f}"),
            ("bonds", f"mean {self.bonds_mean:.2f}"),
            ("active bits", f"mean {self.bits_mean:.1f}, most {self.bits_max}"),
            ("elements", _shares(self.element_shares)),
            ("bond types", _shares(self.bond_shares)),
        ]


def molecule_statistics(samples: Iterable[MoleculeSample], vocabulary: Vocabulary) -> MoleculeStatistics:
    listed = list(samples)
    if not listed:
        raise ValueError("samples must not be empty")
    sizes = np.array([len(sample.atoms) for sample in listed])
    bits = np.array([len(sample.bits) for sample in listed])
    atoms = np.bincount(np.concatenate([s.atoms for s in listed]), minlength=len(vocabulary.nodes))
    bonds = np.bincount(np.concatenate([s.bonds[:, 2] for s in listed]), minlength=len(vocabulary.edges))
    return MoleculeStatistics(
        molecules=len(listed),
        size_min=int(sizes.min()),
        size_mean=float(sizes.mean()),
        size_max=int(sizes.max()),
        bonds_mean=float(bonds.sum() / len(listed)),
        bits_mean=float(bits.mean()),
        bits_max=int(bits.max()),
        element_shares=dict(zip(vocabulary.nodes, (atoms / atoms.sum()).tolist(), strict=True)),
        bond_shares=dict(zip(vocabulary.edges[1:], (bonds[1:] / max(bonds.sum(), 1)).tolist(), strict=True)),
    )


def _shares(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100 * share:.2f} %" for name, share in shares.items())
