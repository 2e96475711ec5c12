"""Whether the decisions on the slots make a molecule, and if not, what they do wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from graphwright.decoding.formula import Formula
from graphwright.decoding.score import Assignment
from graphwright.graphs import Vocabulary
from graphwright.graphs.molecule_error import MoleculeError
from graphwright.graphs.molecule_states import usual_states
from graphwright.graphs.molecules import BONDS, usual_molecule


@dataclass(frozen=True)
class Verdict:
    """parts: slots of each part, if there are several; region: slots whose bonds RDKit sees otherwise."""

    valid: bool
    parts: tuple[tuple[int, ...], ...] = ()
    region: tuple[int, ...] = ()


def judge(assignment: Assignment, vocabulary: Vocabulary, formula: Formula | None) -> Verdict:
    """Whether the assignment is a molecule (`graphs.molecules.usual_molecule`) of the formula."""
    here = np.flatnonzero(assignment.presence)
    if not len(here):
        return Verdict(valid=False)
    parts = _parts(assignment, here.tolist())
    if len(parts) > 1:
        return Verdict(valid=False, parts=parts)
    if not _could_be(assignment, vocabulary):
        return Verdict(valid=False)
    try:
        molecule = usual_molecule(assignment.graph(vocabulary))
    except MoleculeError as error:
        return Verdict(valid=False, region=tuple(here[list(error.atoms)].tolist()))
    counts = Counter(atom.GetSymbol() for atom in molecule.GetAtoms())
    hydrogens = sum(atom.GetTotalNumHs() for atom in molecule.GetAtoms())
    return Verdict(valid=formula is None or formula.admits(counts, hydrogens))


def _parts(assignment: Assignment, here: list[int]) -> tuple[tuple[int, ...], ...]:
    """The connected parts, by a plain walk: on so few slots scipy's takes longer to begin."""
    around = [np.flatnonzero(row).tolist() for row in assignment.edges]
    parts, seen = [], set[int]()
    for start in here:
        if start in seen:
            continue
        part, stack = [], [start]
        seen.add(start)
        while stack:
            part.append(slot := stack.pop())
            fresh = [other for other in around[slot] if other not in seen]
            seen.update(fresh)
            stack.extend(fresh)
        parts.append(tuple(sorted(part)))
    return tuple(parts)


def _could_be(assignment: Assignment, vocabulary: Vocabulary) -> bool:
    """Whether every atom has a state for its bonds: a look at each one alone, which spares most calls of RDKit."""
    orders = np.array([0 if name == "aromatic" else BONDS.index(name) for name in vocabulary.edges])
    localised = orders[assignment.edges].sum(1).tolist()
    aromatic = (assignment.edges == vocabulary.edges.index("aromatic")).sum(1).tolist()
    highest = orders[assignment.edges].max(1, initial=0).tolist()
    return all(
        aromatic[slot] != 1
        and usual_states(vocabulary.nodes[assignment.labels[slot]], localised[slot], aromatic[slot], highest[slot])
        for slot in np.flatnonzero(assignment.presence).tolist()
    )
