"""The atom environments that real molecules are made of, and how often each was met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphwright.tasks.molecules.assembly.identifiers import Identifiers, atom_identifiers, wider_identifiers
from graphwright.tasks.molecules.assembly.rings import ring_systems

if TYPE_CHECKING:
    from rdkit.Chem import Mol

Codes = NDArray[np.int64]
MOST_NEIGHBOURS = 6
NEVER_MET = 0.3
"""How often something counts as met that never was."""
TABLES = ("atoms", "centres", "bonds", "neighbours", "counts")
Atom = tuple[int, int, int, int, int]
"""Atomic number, neighbours and hydrogens, hydrogens, charge, 1 if in a ring."""


@dataclass(frozen=True, eq=False)
class Tally:
    """How often things were met that 32 bits tell apart: ids (t,) ascending, counts (t,)."""

    ids: Identifiers
    counts: Codes

    @classmethod
    def of(cls, ids: Identifiers, counts: Codes) -> Tally:
        """Of identifiers in any order; the counts of equal ones are added up."""
        found, which = np.unique(ids, return_inverse=True)
        return cls(found, np.bincount(which, counts.astype(np.float64), len(found)).astype(np.int64))

    def met(self, ids: Identifiers) -> Codes:
        """How often each was met; 0 where it never was."""
        if not len(self.ids):
            return np.zeros(ids.shape, np.int64)
        places = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
        found: Codes = np.where(self.ids[places] == ids, self.counts[places], 0)
        return found

    @cached_property
    def total(self) -> int:
        """The sum of the counts."""
        return int(self.counts.sum())

    def costs(self, ids: Identifiers) -> NDArray[np.float64]:
        """How unusual each is, in nats; what was never met counts as met a third of a time."""
        costs: NDArray[np.float64] = np.log(max(self.total, 1)) - np.log(np.maximum(self.met(ids), NEVER_MET))
        return costs

    def packed(self, name: str) -> dict[str, NDArray[np.uint8]]:
        """Arrays that compress well: differences byte by byte, counts to the nearest power of two."""
        gaps = np.diff(self.ids, prepend=np.uint32(0))
        parts = [(gaps >> np.uint32(8 * place)).astype(np.uint8) for place in range(4)]
        return {f"{name}_gaps": np.stack(parts), f"{name}_counts": np.log2(self.counts).round().astype(np.uint8)}

    @classmethod
    def unpacked(cls, stored: Mapping[str, NDArray[Any]], name: str) -> Tally:
        """What `packed` has packed."""
        parts = stored[f"{name}_gaps"].astype(np.uint32)
        gaps = sum(part << np.uint32(8 * place) for place, part in enumerate(parts))
        return cls(np.cumsum(gaps, dtype=np.uint32), 2 ** stored[f"{name}_counts"].astype(np.int64))


@dataclass(frozen=True, eq=False)
class Alphabet:
    """Environments of radius 1 as they are, and identifiers of what is larger.

    atoms: (a, 5) kinds of atoms, an `Atom` a row.
    centres: (k,) the atom in the middle. bonds: (k, 6) bond types as the hash has them, 0 for none. neighbours:
    (k, 6) atoms. counts: (k,) how often it was met.
    wide: environments of radius 2; rings: ring systems.
    """

    atoms: Codes
    centres: Codes
    bonds: Codes
    neighbours: Codes
    counts: Codes
    wide: Tally
    rings: Tally

    def __len__(self) -> int:
        return len(self.centres)

    @cached_property
    def atom_ids(self) -> Identifiers:
        """(a,) identifiers of radius 0."""
        return atom_identifiers(self.atoms)

    @cached_property
    def ids(self) -> Identifiers:
        """(k,) identifiers of radius 1."""
        return wider_identifiers(1, self.atom_ids[self.centres], self.bonds, self.atom_ids[self.neighbours])

    def of_elements(self, numbers: Iterable[int]) -> Alphabet:
        """The part whose atoms are all of these elements, by atomic number."""
        allowed = np.isin(self.atoms[:, 0], list(numbers))
        rows = allowed[self.centres] & (allowed[self.neighbours] | (self.bonds == 0)).all(1)
        return replace(
            self,
            centres=self.centres[rows],
            bonds=self.bonds[rows],
            neighbours=self.neighbours[rows],
            counts=self.counts[rows],
        )

    def save(self, path: Path) -> None:
        """Write it, small."""
        np.savez_compressed(
            path,
            atoms=self.atoms.astype(np.int16),
            centres=self.centres.astype(np.uint16),
            bonds=self.bonds.astype(np.uint8),
            neighbours=self.neighbours.astype(np.uint16),
            counts=self.counts.astype(np.uint32),
            allow_pickle=False,
            **self.wide.packed("wide"),
            **self.rings.packed("rings"),
        )

    @classmethod
    def load(cls, path: Path) -> Alphabet:
        """What `save` has written."""
        try:
            with np.load(path, allow_pickle=False) as file:
                stored = {name: file[name] for name in file.files}
            tables = {name: stored[name].astype(np.int64) for name in TABLES}
            return cls(**tables, wide=Tally.unpacked(stored, "wide"), rings=Tally.unpacked(stored, "rings"))
        except (OSError, KeyError, ValueError) as error:
            raise ValueError(f"{path} is not an alphabet of atom environments: {error}") from error


def make_alphabet(molecules: Iterable[Mol]) -> Alphabet:
    """The alphabet of some molecules, whose rings are known."""
    atoms: dict[Atom, int] = {}
    narrow: Counter[tuple[int, ...]] = Counter()
    wide: Counter[tuple[int, ...]] = Counter()
    rings: Counter[int] = Counter()
    numbers: dict[tuple[int, ...], int] = {}
    for molecule in molecules:
        kinds = [atoms.setdefault(kind, len(atoms)) for kind in _atoms(molecule)]
        around: list[list[tuple[int, int]]] = [[] for _ in kinds]
        for bond in molecule.GetBonds():
            first, second, order = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), int(bond.GetBondType())
            around[first].append((order, second))
            around[second].append((order, first))
        if max(map(len, around), default=0) > MOST_NEIGHBOURS:
            continue
        own = [_flat(kind, around[atom], kinds) for atom, kind in enumerate(kinds)]
        narrow.update(own)
        codes = [numbers.setdefault(each, len(numbers)) for each in own]
        wide.update([_flat(code, around[atom], codes) for atom, code in enumerate(codes)])
        rings.update(ring_systems(molecule))
    if not narrow:
        raise ValueError("there is no molecule to take environments from")
    centres, bonds, neighbours = _unflat(list(numbers))
    counts = np.array([narrow[each] for each in numbers], np.int64)
    empty = Tally(np.zeros(0, np.uint32), np.zeros(0, np.int64))
    alphabet = Alphabet(np.array(list(atoms), np.int64), centres, bonds, neighbours, counts, empty, empty)
    middles, bonds, others = _unflat(list(wide))
    identifiers = wider_identifiers(2, alphabet.ids[middles], bonds, alphabet.ids[others])
    return replace(
        alphabet,
        wide=Tally.of(identifiers, np.array(list(wide.values()), np.int64)),
        rings=Tally.of(np.array(list(rings), np.uint32), np.array(list(rings.values()), np.int64)),
    )


def _atoms(molecule: Mol) -> Iterator[Atom]:
    for atom in molecule.GetAtoms():
        yield (
            atom.GetAtomicNum(),
            atom.GetTotalDegree(),
            atom.GetTotalNumHs(),
            atom.GetFormalCharge(),
            int(atom.IsInRing()),
        )


def _flat(own: int, around: list[tuple[int, int]], codes: list[int]) -> tuple[int, ...]:
    """An environment as one tuple of numbers: its centre, then bond and neighbour in turn, sorted."""
    pairs = sorted([(order, codes[other]) for order, other in around])
    return (own, *[number for pair in pairs for number in pair])


def _unflat(environments: list[tuple[int, ...]]) -> tuple[Codes, Codes, Codes]:
    table = np.zeros((len(environments), 1 + 2 * MOST_NEIGHBOURS), np.int64)
    for row, environment in zip(table, environments, strict=True):
        row[: len(environment)] = environment
    return table[:, 0].copy(), table[:, 1::2].copy(), table[:, 2::2].copy()
