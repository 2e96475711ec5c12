"""Molecules that have a fingerprint, put together from the environments that its bits allow.

No model is needed. Bits say which environments there may be (environments.py), an integer program how many of each
(counts.py), a search how they are joined (joining.py), and RDKit whether the molecule has the fingerprint. Several
molecules may: fingerprints do not count, and do not look further than two bonds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphwright.tasks.molecules.assembly.alphabet import Alphabet
from graphwright.tasks.molecules.assembly.counts import CountProgram, usual_cost
from graphwright.tasks.molecules.assembly.environments import Environments, environments_of
from graphwright.tasks.molecules.assembly.joining import Joining, molecule_of, separate_parts
from graphwright.tasks.molecules.assembly.rings import ring_systems
from graphwright.tasks.molecules.fingerprint import RADIUS, BitArray, active_bits

if TYPE_CHECKING:
    from rdkit.Chem import Mol


@dataclass(frozen=True)
class Limits:
    """How far to look.

    molecules: that are enough. programs: solved at most. barren: programs in a row that gave no new molecule,
    after which no more are sought if there is one. steps: of the search that joins the atoms of one solution.
    seconds: after which nothing more is begun; the other limits are mostly met before, so that an answer does not
    depend on how busy the machine is.
    """

    molecules: int = 20
    programs: int = 60
    barren: int = 6
    steps: int = 3000
    seconds: float = 8.0

    def __post_init__(self) -> None:
        for name in ("molecules", "programs", "barren", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.seconds >= 0:
            raise ValueError(f"seconds must not be negative, got {self.seconds}")


@dataclass(frozen=True, eq=False)
class Assembled:
    """A molecule with exactly the asked fingerprint; cost: how unusual what it is made of is, in nats."""

    molecule: Mol
    smiles: str
    cost: float


@dataclass(frozen=True, eq=False)
class Assembly:
    """The molecules found, the most usual first.

    complete: there are no others of known environments. unexplained: bits that no environment has.
    """

    molecules: tuple[Assembled, ...]
    complete: bool
    unexplained: frozenset[int] = frozenset()


def assemble(asked: BitArray, alphabet: Alphabet, capacity: int, limits: Limits | None = None) -> Assembly:
    """Molecules of at most `capacity` heavy atoms that have exactly these bits on.

    Environments that the alphabet does not have are thought of only where those that it has give no molecule.
    """
    limits = limits or Limits()
    if len(asked) > capacity * (RADIUS + 1):
        return Assembly((), complete=True)  # an atom has a bit of each radius at most
    deadline = time.perf_counter() + limits.seconds
    found = _assembled(environments_of(asked, alphabet), capacity, limits, deadline)
    if found.molecules or time.perf_counter() > deadline:
        return found
    invented = environments_of(asked, alphabet, inventive=True)
    return _assembled(invented, capacity, limits, deadline)


def _assembled(environments: Environments, capacity: int, limits: Limits, deadline: float) -> Assembly:
    if environments.unexplained or not len(environments):
        return Assembly((), complete=True, unexplained=environments.unexplained)
    found: dict[str, Assembled] = {}
    program = CountProgram(environments, capacity)
    barren, complete = 0, True
    for tried, counts in enumerate(program.solutions(deadline), 1):
        parts = separate_parts(environments, counts)
        before = len(found)
        if len(parts) > 1:
            for part in parts:
                program.connect(part)
        else:
            joining = Joining(environments, counts, limits.steps, deadline)
            for skeleton in joining.skeletons():
                molecule = molecule_of(skeleton, environments)
                if molecule is not None and np.array_equal(active_bits(molecule), environments.asked):
                    _add(found, molecule, usual_cost(environments, counts), environments.alphabet)
                    if len(found) == limits.molecules:
                        break
            complete &= not joining.spent
        barren = 0 if len(found) > before or not found else barren + 1
        if limits.molecules == len(found) or tried == limits.programs or barren == limits.barren:
            break
    in_order = tuple(sorted(found.values(), key=lambda each: each.cost))
    return Assembly(in_order, complete=complete and program.exhausted)


def _add(found: dict[str, Assembled], molecule: Mol, cost: float, alphabet: Alphabet) -> None:
    """Keep the molecule if it is new."""
    from rdkit import Chem

    smiles = Chem.MolToSmiles(molecule)
    if smiles not in found:
        rings = alphabet.rings.costs(np.array(ring_systems(molecule), np.uint32))
        found[smiles] = Assembled(molecule, smiles, cost + float(rings.sum()))
