"""The atom environments that real molecules are made of, and how often each was met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphwright.tasks.molecules.assembly.identifiers import Identifiers, atom_identifiers, wider_identifiers

if TYPE_CHECKING:
    from rdkit.Chem import Mol

Codes = NDArray[np.int64]
MOST_NEIGHBOURS = 6
Atom = tuple[int, int, int, int, int]
"""Atomic number, neighbours and hydrogens, hydrogens, charge, 1 if in a ring."""


@dataclass(frozen=True, eq=False)
class Alphabet:
    """Environments of radius 1 as they are, and identifiers of those of radius 2.

    atoms: (a, 5) kinds of atoms, an `Atom` a row.
    centres: (k,) the atom in the middle. bonds: (k, 6) bond types as the hash has them, 0 for none. neighbours:
    (k, 6) atoms. counts: (k,) how often it was met.
    wide: (w,) ascending identifiers of radius 2; wide_counts: (w,).
    """

    atoms: Codes
    centres: Codes
    bonds: Codes
    neighbours: Codes
    counts: Codes
    wide: Identifiers
    wide_counts: Codes

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

    def met(self, wide: Identifiers) -> Codes:
        """How often environments of radius 2 were met, by identifier."""
        places = np.searchsorted(self.wide, wide).clip(max=len(self.wide) - 1)
        found: Codes = np.where(self.wide[places] == wide, self.wide_counts[places], 0)
        return found

    def save(self, path: Path) -> None:
        """Write it, small: identifiers as differences, counts as far as they matter."""
        gaps = np.diff(self.wide, prepend=np.uint32(0))
        np.savez_compressed(
            path,
            atoms=self.atoms.astype(np.int8),
            centres=self.centres.astype(np.uint8),
            bonds=self.bonds.astype(np.uint8),
            neighbours=self.neighbours.astype(np.uint8),
            counts=self.counts.astype(np.uint32),
            gaps=np.stack([(gaps >> np.uint32(8 * place)).astype(np.uint8) for place in range(4)]),
            wide_counts=np.log2(self.wide_counts).round().astype(np.uint8),
        )

    @classmethod
    def load(cls, path: Path) -> Alphabet:
        """What `save` has written."""
        try:
            with np.load(path, allow_pickle=False) as file:
                stored = {name: file[name] for name in file.files}
            gaps = sum(
                part.astype(np.uint32) << np.uint32(8 * place) for place, part in enumerate(stored["gaps"])
            )
            tables = (
                stored[name].astype(np.int64) for name in ("atoms", "centres", "bonds", "neighbours", "counts")
            )
            return cls(*tables, np.cumsum(gaps, dtype=np.uint32), 2 ** stored["wide_counts"].astype(np.int64))
        except (OSError, KeyError, ValueError) as error:
            raise ValueError(f"{path} is not an alphabet of atom environments: {error}") from error


def make_alphabet(molecules: Iterable[Mol]) -> Alphabet:
    """The alphabet of some molecules, whose rings are known."""
    atoms: dict[Atom, int] = {}
    narrow: Counter[tuple[int, ...]] = Counter()
    wide: Counter[tuple[int, ...]] = Counter()
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
    if not narrow:
        raise ValueError("there is no molecule to take environments from")
    centres, bonds, neighbours = _unflat(list(numbers))
    table = np.array(list(atoms), np.int64)
    alphabet = Alphabet(
        table,
        centres,
        bonds,
        neighbours,
        np.array([narrow[each] for each in numbers], np.int64),
        np.zeros(0, np.uint32),
        np.zeros(0, np.int64),
    )
    middles, bonds, others = _unflat(list(wide))
    identifiers = wider_identifiers(2, alphabet.ids[middles], bonds, alphabet.ids[others])
    found, which = np.unique(identifiers, return_inverse=True)
    met = np.bincount(which, np.array(list(wide.values()), np.float64)).astype(np.int64)
    return Alphabet(table, centres, alphabet.bonds, neighbours, alphabet.counts, found, met)


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
