"""Molecules that have a fingerprint, put together from the environments that its bits allow."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphwright.tasks.molecules.assembly.alphabet import Alphabet
from graphwright.tasks.molecules.assembly.counts import CountProgram, usual_cost
from graphwright.tasks.molecules.assembly.environments import Environments, environments_of
from graphwright.tasks.molecules.assembly.joining import Joining, molecule_of, separate_parts
from graphwright.tasks.molecules.fingerprint import BitArray, active_bits

if TYPE_CHECKING:
    from rdkit.Chem import Mol

JOINING_STEPS = 3000
JOINING_REFUSED = 300
STALE = 6


@dataclass(frozen=True, eq=False)
class Assembled:
    """A molecule with exactly the asked fingerprint; cost: how unusual its environments are, in nats."""

    molecule: Mol
    cost: float


@dataclass(frozen=True, eq=False)
class Assembly:
    """All that were found, the most usual first. exhausted: there are no others, made of known environments."""

    molecules: tuple[Assembled, ...]
    exhausted: bool
    unexplained: frozenset[int]


def assemble(
    asked: BitArray, alphabet: Alphabet, capacity: int, *, count: int = 20, seconds: float = 8.0
) -> Assembly:
    deadline = time.perf_counter() + seconds
    for inventive in (False, True):
        environments = environments_of(asked, alphabet, inventive=inventive)
        found = _assembled(environments, capacity, count, deadline)
        if found.molecules:
            break
    return found


def _assembled(environments: Environments, capacity: int, count: int, deadline: float) -> Assembly:
    from rdkit import Chem

    if environments.unexplained or not len(environments):
        return Assembly((), exhausted=True, unexplained=environments.unexplained)
    program = CountProgram(environments, capacity)
    found: dict[str, Assembled] = {}
    exhausted = True
    stale = 0
    tried=0
    for counts in program.solutions(deadline):
        tried+=1
        parts = separate_parts(environments, counts)
        if len(parts) > 1:
            for part in parts:
                program.connect(part)
            continue
        cost = usual_cost(environments, counts)
        before = len(found)
        for skeleton in Joining(environments, counts, JOINING_STEPS, deadline).skeletons():
            molecule = molecule_of(skeleton, environments)
            if molecule is not None and np.array_equal(active_bits(molecule), environments.asked):
                found.setdefault(Chem.MolToSmiles(molecule), Assembled(molecule, cost))
                if len(found) >= count:
                    break
        stale = stale + 1 if len(found) == before and found else 0
        if len(found) >= count or stale >= STALE:
            exhausted = False
            break
    return Assembly(tuple(found.values()), exhausted, frozenset())
