"""Ring systems: rings that share atoms, as one number each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphwright.tasks.molecules.assembly.identifiers import AROMATIC

if TYPE_CHECKING:
    from rdkit.Chem import Mol

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
            atom: _hash([states[atom], *_flat(sorted([(kind, states[other]) for kind, other in near]))])
            for atom, near in around.items()
        }
    return _hash([*sorted(sizes), *sorted(states.values())])


def _flat(pairs: list[tuple[int, int]]) -> list[int]:
    return [number for pair in pairs for number in pair]


def _hash(numbers: list[int]) -> int:
    """32 bits of a polynomial in the numbers, mixed: Python's own hash is not promised to stay what it is."""
    result = 0x811C9DC5
    for number in numbers:
        result = ((result ^ number) * 0x01000193 + (result >> 15)) & _MASK
    return result
