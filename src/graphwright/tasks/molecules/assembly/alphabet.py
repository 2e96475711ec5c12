"""The atom environments that real molecules are made of, and how often each was met.

They are told apart by the numbers that RDKit's Morgan fingerprint gives to them. An atom's identifier of radius 0
is a hash of its element, its neighbours and hydrogens, its charge and if it is in a ring; that of radius r + 1
is a hash of its own of radius r, of its bonds, and of the identifiers of radius r of its neighbours. A fingerprint
has bit `identifier % 2048` on. So whoever knows the hash can tell, of any environment that might be in a molecule,
which bits it would set, without the molecule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphwright.files import SHIPPED_DATA, sha256_of, write_json
from graphwright.graphs.molecules import MoleculeError, parse_smiles
from graphwright.tasks.molecules.source import SmilesTable, find_data, read_smiles

if TYPE_CHECKING:
    from rdkit.Chem import Mol

Identifiers = NDArray[np.uint32]
AROMATIC = 12
"""What stands for an aromatic bond in the hash; a single, double or triple one is its order."""
_GOLDEN = 0x9E3779B9


def atom_identifiers(atoms: NDArray[np.int64]) -> Identifiers:
    """(a,) of radius 0 of atoms (a, 5): atomic number, neighbours and hydrogens, hydrogens, charge, in a ring."""
    seed = np.zeros(len(atoms), np.uint32)
    for column in atoms[:, :4].T:
        seed = _combined(seed, column.astype(np.uint32))
    seed = _combined(seed, np.zeros(len(atoms), np.uint32))  # no isotopes here
    return np.where(atoms[:, 4] > 0, _combined(seed, np.ones(len(atoms), np.uint32)), seed)


def wider_identifiers(radius: int, own: Identifiers, bonds: NDArray[np.int64], around: Identifiers) -> Identifiers:
    """(k,) of the radius from those that are narrower by one: own (k,), and around (k, d) over bonds (k, d).

    A bond is 0 where an atom has fewer than d neighbours.
    """
    pairs = np.where(bonds > 0, (bonds.astype(np.uint64) << np.uint64(32)) | around, np.uint64(0))
    pairs = np.sort(pairs, axis=1)
    seed = _combined(np.full(len(own), radius - 1, np.uint32), own)
    for column in pairs.T:
        bond, other = (column >> np.uint64(32)).astype(np.uint32), column.astype(np.uint32)
        pair = _combined(_combined(np.zeros(len(own), np.uint32), bond), other)
        seed = np.where(column > 0, _combined(seed, pair), seed)
    return seed


def _combined(seed: Identifiers, value: Any) -> Identifiers:
    """One more value in the hash: 32 bits, as they overflow."""
    result: Identifiers = seed ^ (value + np.uint32(_GOLDEN) + (seed << np.uint32(6)) + (seed >> np.uint32(2)))
    return result


_ROUNDS = 4
_MASK = 0xFFFFFFFF


def ring_systems(molecule: Mol) -> list[int]:
    """A number for each ring system, the same for the same one: its elements, bonds and sizes of rings.

    What hangs on it is left out. Atoms are told apart by refinement, so that a few systems of many like atoms may
    share a number.
    """
    rings = [frozenset(ring) for ring in molecule.GetRingInfo().AtomRings()]
    systems: list[tuple[set[int], list[int]]] = []
    for ring in rings:
        joined = [system for system in systems if not system[0].isdisjoint(ring)]
        systems = [system for system in systems if system[0].isdisjoint(ring)]
        atoms = set(ring).union(*(system[0] for system in joined))
        systems.append((atoms, [len(ring), *(size for system in joined for size in system[1])]))
    return [_number(molecule, atoms, sizes) for atoms, sizes in systems]


def _number(molecule: Mol, atoms: set[int], sizes: list[int]) -> int:
    around: dict[int, list[tuple[int, int]]] = {atom: [] for atom in atoms}
    states = {atom: molecule.GetAtomWithIdx(atom).GetAtomicNum() for atom in atoms}
    for atom in atoms:
        for bond in molecule.GetAtomWithIdx(atom).GetBonds():
            other = bond.GetOtherAtomIdx(atom)
            if other in atoms and bond.IsInRing():
                kind = AROMATIC if bond.GetIsAromatic() else int(bond.GetBondType())
                around[atom].append((kind, other))
    for _ in range(_ROUNDS):
        states = {
            atom: _hash([states[atom], *_unpaired(sorted([(kind, states[other]) for kind, other in near]))])
            for atom, near in around.items()
        }
    return _hash([*sorted(sizes), *sorted(states.values())])


def _unpaired(pairs: list[tuple[int, int]]) -> list[int]:
    return [number for pair in pairs for number in pair]


def _hash(numbers: list[int]) -> int:
    """32 bits of a polynomial in the numbers, mixed: Python's own hash is not promised to stay what it is."""
    result = 0x811C9DC5
    for number in numbers:
        result = ((result ^ number) * 0x01000193 + (result >> 15)) & _MASK
    return result


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
        """A tally of identifiers in any order; the counts of equal ones are added up."""
        distinct, which = np.unique(ids, return_inverse=True)
        return cls(distinct, np.bincount(which, counts.astype(np.float64), len(distinct)).astype(np.int64))

    def met(self, ids: Identifiers) -> Codes:
        """How often each was met; 0 where it never was."""
        if not len(self.ids):
            return np.zeros(ids.shape, np.int64)
        indices = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
        counts: Codes = np.where(self.ids[indices] == ids, self.counts[indices], 0)
        return counts

    @cached_property
    def total(self) -> int:
        return int(self.counts.sum())

    def costs(self, ids: Identifiers) -> NDArray[np.float64]:
        """How unusual each is, in nats; what was never met counts as met a third of a time."""
        costs: NDArray[np.float64] = np.log(max(self.total, 1)) - np.log(np.maximum(self.met(ids), NEVER_MET))
        return costs

    def packed(self, name: str) -> dict[str, NDArray[np.uint8]]:
        """Arrays that compress well: differences byte by byte, counts to the nearest power of two."""
        gaps = np.diff(self.ids, prepend=np.uint32(0))
        parts = [(gaps >> np.uint32(8 * byte)).astype(np.uint8) for byte in range(4)]
        return {f"{name}_gaps": np.stack(parts), f"{name}_counts": np.log2(self.counts).round().astype(np.uint8)}

    @classmethod
    def unpacked(cls, stored: Mapping[str, NDArray[Any]], name: str) -> Tally:
        """What `packed` has packed."""
        parts = stored[f"{name}_gaps"].astype(np.uint32)
        gaps = sum(part << np.uint32(8 * byte) for byte, part in enumerate(parts))
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


SHIPPED_ALPHABET = SHIPPED_DATA / "environments.npz"


@cache
def shipped_alphabet() -> Alphabet:
    """The alphabet of the training splits of the shipped molecules; read once."""
    if not SHIPPED_ALPHABET.is_file():
        raise ValueError(
            f"there is no {SHIPPED_ALPHABET}: graphwright data environments makes it from the shipped molecules"
        )
    return Alphabet.load(SHIPPED_ALPHABET)


@cache
def alphabet_of(symbols: tuple[str, ...]) -> Alphabet:
    """The part of the shipped alphabet that is made of these elements."""
    from rdkit.Chem import GetPeriodicTable

    table = GetPeriodicTable()
    return shipped_alphabet().of_elements(table.GetAtomicNumber(symbol) for symbol in symbols)


def write_alphabet(names: Sequence[str], out: Path, advance: Callable[[int, int], None]) -> Alphabet:
    """Make the alphabet of the training splits of data sets, by name or file, and write it with its record.

    advance: is told how many molecules were read, of how many. Validation and test molecules are never looked at.
    """
    from rdkit import rdBase

    tables = [read_smiles(find_data(name)) for name in names]
    counts = [0, 0]
    alphabet = make_alphabet(_training_molecules(tables, counts, advance))
    out.parent.mkdir(parents=True, exist_ok=True)
    alphabet.save(out)
    record = {
        "data": {table.path.name: table.digest() for table in tables},
        "split": "train",
        "molecules": counts[0],
        "unusable": counts[1],
        "atoms": len(alphabet.atoms),
        "environments of radius 1": len(alphabet),
        "environments of radius 2": len(alphabet.wide.ids),
        "ring systems": len(alphabet.rings.ids),
        "rdkit": rdBase.rdkitVersion,
        "sha256": sha256_of(out),
    }
    write_json(out.with_suffix(".json"), record)
    return alphabet


def _training_molecules(
    tables: Sequence[SmilesTable], counts: list[int], advance: Callable[[int, int], None]
) -> Iterator[Mol]:
    """Every molecule of the training splits; `counts` says how many could be read, and how many could not."""
    rows = [table.rows("train") for table in tables]
    total = sum(map(len, rows))
    for table, own in zip(tables, rows, strict=True):
        for row in own.tolist():
            try:
                molecule = parse_smiles(table.smiles[row].as_py() or "")
            except MoleculeError:
                counts[1] += 1
            else:
                counts[0] += 1
                yield molecule
            if sum(counts) % 1000 == 0:
                advance(sum(counts), total)
