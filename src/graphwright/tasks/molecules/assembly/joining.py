"""From counts of environments to molecules: halves of bonds joined by search."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from graphwright.tasks.molecules.assembly.counts import Counts
from graphwright.tasks.molecules.assembly.environments import Environments
from graphwright.tasks.molecules.assembly.identifiers import AROMATIC

if TYPE_CHECKING:
    from rdkit.Chem import Mol

Bond = tuple[int, int, int]
"""First atom, second atom, type as the hash has it."""


@dataclass(frozen=True)
class Skeleton:
    """Atoms, by environment, and the bonds between them."""

    environments: tuple[int, ...]
    bonds: tuple[Bond, ...]


def separate_parts(environments: Environments, counts: Counts) -> list[list[int]]:
    """The environments of a solution in groups between which no bond is asked for; one group if it may join."""
    used = np.flatnonzero(counts).tolist()
    links: dict[int, list[int]] = {at: [] for at in used}
    for first in used:
        for second in used:
            asks = any(other == environments.narrow[second] for _, other in environments.around[first])
            asked = any(other == environments.narrow[first] for _, other in environments.around[second])
            if asks and asked:
                links[first].append(second)
    parts, seen = [], set[int]()
    for start in used:
        if start in seen:
            continue
        part, waiting = [], [start]
        seen.add(start)
        while waiting:
            part.append(at := waiting.pop())
            fresh = [other for other in links[at] if other not in seen]
            seen.update(fresh)
            waiting += fresh
        parts.append(part)
    return parts


class Joining:
    """All ways to join the atoms of a solution, distinct up to the order of like atoms tried first."""

    def __init__(self, environments: Environments, counts: Counts, deadline: float, most_steps: int) -> None:
        used = np.flatnonzero(counts).tolist()
        self._atoms = [at for at in used for _ in range(int(counts[at]))]
        self._narrow = [environments.narrow[at] for at in self._atoms]
        self._open = [list(environments.around[at]) for at in self._atoms]
        table = environments.alphabet
        self._ring = [bool(table.atoms[table.centres[own], 4]) for own in self._narrow]
        self._joined: list[dict[int, int]] = [{} for _ in self._atoms]
        self._deadline, self._steps = deadline, most_steps

    def skeletons(self) -> Iterator[Skeleton]:
        """Connected simple graphs in which every half of a bond has its other half."""
        yield from self._extend()

    def _extend(self) -> Iterator[Skeleton]:
        self._steps -= 1
        if self._steps < 0 or time.perf_counter() > self._deadline:
            return
        chosen = self._next_half()
        if chosen is None:
            bonds = tuple(
                (first, second, bond)
                for first, joined in enumerate(self._joined)
                for second, bond in joined.items()
                if first < second
            )
            yield Skeleton(tuple(self._atoms), bonds)
            return
        atom, (bond, _), partners = chosen
        for partner in partners:
            self._join(atom, partner, bond)
            if self._may_go_on(atom):
                yield from self._extend()
            self._part(atom, partner, bond)

    def _next_half(self) -> tuple[int, tuple[int, int], list[int]] | None:
        """The half bond with the fewest partners; None where all are joined."""
        best: tuple[int, tuple[int, int], list[int]] | None = None
        part = self._component(0) if self._atoms else set()
        # Growing one connected part keeps like atoms that are not in it interchangeable.
        for atom in part:
            for half in set(self._open[atom]):
                partners = self._partners(atom, half, part)
                if best is None or len(partners) < len(best[2]):
                    best = atom, half, partners
                    if not partners:
                        return best
        return best

    def _partners(self, atom: int, half: tuple[int, int], part: set[int]) -> list[int]:
        bond, wanted = half
        back = (bond, self._narrow[atom])
        found, fresh = [], set[int]()
        for other, narrow in enumerate(self._narrow):
            if narrow != wanted or other == atom or other in self._joined[atom] or back not in self._open[other]:
                continue
            if other in part:
                if not (self._ring[atom] and self._ring[other]):
                    continue  # the bond would close a ring
            elif not self._joined[other]:
                # Atoms of one environment that nothing is joined to yet are all the same.
                if self._atoms[other] in fresh:
                    continue
                fresh.add(self._atoms[other])
            found.append(other)
        return found

    def _component(self, start: int) -> set[int]:
        part, waiting = {start}, [start]
        while waiting:
            for other in self._joined[waiting.pop()]:
                if other not in part:
                    part.add(other)
                    waiting.append(other)
        return part

    def _may_go_on(self, atom: int) -> bool:
        """Whether the part of the atom is not closed before all atoms are in it."""
        part = self._component(atom)
        return len(part) == len(self._atoms) or any(self._open[other] for other in part)

    def _join(self, first: int, second: int, bond: int) -> None:
        self._joined[first][second] = self._joined[second][first] = bond
        self._open[first].remove((bond, self._narrow[second]))
        self._open[second].remove((bond, self._narrow[first]))

    def _part(self, first: int, second: int, bond: int) -> None:
        del self._joined[first][second], self._joined[second][first]
        self._open[first].append((bond, self._narrow[second]))
        self._open[second].append((bond, self._narrow[first]))


def molecule_of(skeleton: Skeleton, environments: Environments) -> Mol | None:
    """The molecule, with the hydrogens and charges of its environments; None where RDKit refuses it."""
    from rdkit import Chem, rdBase

    table = environments.alphabet
    types = {
        1: Chem.BondType.SINGLE,
        2: Chem.BondType.DOUBLE,
        3: Chem.BondType.TRIPLE,
        AROMATIC: Chem.BondType.AROMATIC,
    }
    molecule = Chem.RWMol()
    aromatic = {atom for *ends, bond in skeleton.bonds if bond == AROMATIC for atom in ends}
    for at, environment in enumerate(skeleton.environments):
        number, _, hydrogens, charge, _ = table.atoms[table.centres[environments.narrow[environment]]].tolist()
        atom = Chem.Atom(number)
        atom.SetFormalCharge(charge)
        atom.SetNumExplicitHs(hydrogens)
        atom.SetNoImplicit(True)
        atom.SetIsAromatic(at in aromatic)
        molecule.AddAtom(atom)
    for first, second, bond in skeleton.bonds:
        molecule.AddBond(first, second, types[bond])
        if bond == AROMATIC:
            molecule.GetBondBetweenAtoms(first, second).SetIsAromatic(True)
    with rdBase.BlockLogs():
        try:
            Chem.SanitizeMol(molecule)
        except ValueError:
            return None
    if any(atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms()):
        return None
    return cast("Mol", molecule.GetMol())
