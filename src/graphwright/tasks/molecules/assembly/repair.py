"""A molecule changed step by step until it has the asked fingerprint, or nearly.

For fingerprints of which no molecule could be assembled: the model's best molecules are not far, and the bits
that a molecule has but should not have say which of its atoms are wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphwright.graphs import Graph, Vocabulary
from graphwright.graphs.molecules import MoleculeError, usual_molecule
from graphwright.tasks.molecules.fingerprint import BITS, RADIUS, BitArray, active_bits

if TYPE_CHECKING:
    from rdkit.Chem import Mol

Codes = NDArray[np.int64]
Opinion = Callable[[Sequence[Graph]], NDArray[np.float64]]
"""(g,) what a model thinks of some graphs, the more the better."""
WEIGHED = 16
"""Molecules of a round of which the model is asked."""
KEPT = 4
"""Molecules of a round that are changed further."""
PATIENCE = 2
"""Rounds that make nothing better, after which there is no more."""


@dataclass(frozen=True, eq=False)
class Checked:
    """A graph that is a molecule; wrong: bits that either its fingerprint or the asked one has, but not both."""

    graph: Graph
    molecule: Mol
    wrong: int


def check(graph: Graph, asked: BitArray) -> Checked | None:
    """The molecule of a graph beside a fingerprint; None where it is no usual molecule."""
    try:
        molecule = usual_molecule(graph)
    except MoleculeError:
        return None
    return Checked(graph, molecule, len(np.setxor1d(active_bits(molecule), asked)))


def repair(
    start: Checked, asked: BitArray, capacity: int, opinion: Opinion, *, changes: int, deadline: float
) -> Checked:
    """The molecule with the fewest wrong bits that single changes lead to.

    Changes: a bond's type, an end of a bond elsewhere (with all that hangs on it), a bond more or less, an atom's
    element, an end atom more or less. From each round the `KEPT` molecules with the fewest wrong bits go on, also
    if these are more than before, until none is wrong or `PATIENCE` rounds in a row made nothing better. At most
    so many changes are looked at, and none after the deadline (of `perf_counter`). Among molecules with as many
    wrong bits the model's opinion counts.
    """
    best, going, seen = start, [start], {_name(start)}
    patience = PATIENCE
    while best.wrong and patience:
        found: list[Checked] = []
        for graph in (graph for each in going for graph in _changed(each, asked, capacity)):
            changes -= 1
            if changes < 0 or time.perf_counter() > deadline:
                patience = 1  # what was found counts, but nothing more is sought
                break
            checked = check(graph, asked)
            if checked is not None and (name := _name(checked)) not in seen:
                seen.add(name)
                found.append(checked)
        if not found:
            break
        going = _fewest_wrong(found, opinion)
        patience = patience - 1 if going[0].wrong >= best.wrong else (PATIENCE if patience > 1 else 0)
        if going[0].wrong < best.wrong:
            best = going[0]
    return best


def _fewest_wrong(found: list[Checked], opinion: Opinion) -> list[Checked]:
    """The few with the fewest wrong bits, those that the model prefers first among equals."""
    found = sorted(found, key=lambda each: each.wrong)[:WEIGHED]
    opinions = opinion([each.graph for each in found]) if len(found) > 1 else np.zeros(1)
    order = sorted(range(len(found)), key=lambda at: (found[at].wrong, -opinions[at]))
    return [found[at] for at in order[:KEPT]]


def _name(checked: Checked) -> str:
    from rdkit import Chem

    return Chem.MolToSmiles(checked.molecule)


def _changed(checked: Checked, asked: BitArray, capacity: int) -> Iterator[Graph]:
    """Graphs that differ by one change at an atom that is wrong; at any atom where bits are only missing."""
    graph = checked.graph
    labels, matrix, vocabulary = graph.node_labels, graph.edge_matrix(), graph.vocabulary
    bonds = range(1, len(vocabulary.edges))
    for atom in _wrong_atoms(checked.molecule, asked):
        around = np.flatnonzero(matrix[atom]).tolist()
        for other in around:
            for bond in (0, *bonds):
                if bond != matrix[atom, other]:
                    yield _joined(labels, matrix, vocabulary, (atom, other, bond))
            for elsewhere in range(len(labels)):
                if elsewhere not in (atom, other) and not matrix[other, elsewhere]:
                    bond = int(matrix[atom, other])
                    yield _joined(labels, matrix, vocabulary, (atom, other, 0), (elsewhere, other, bond))
        for label in range(len(vocabulary.nodes)):
            if label != labels[atom]:
                relabelled = labels.copy()
                relabelled[atom] = label
                yield Graph.from_matrix(relabelled, matrix, vocabulary)
        for other in range(len(labels)):
            if other != atom and not matrix[atom, other]:
                for bond in bonds:
                    yield _joined(labels, matrix, vocabulary, (atom, other, bond))
        if len(around) == 1:
            kept = np.arange(len(labels)) != atom
            yield Graph.from_matrix(labels[kept], matrix[kept][:, kept], vocabulary)
        if len(labels) < capacity:
            for label in range(len(vocabulary.nodes)):
                for bond in bonds:
                    yield _with_atom(labels, matrix, vocabulary, atom, label, bond)


def _wrong_atoms(molecule: Mol, asked: BitArray) -> list[int]:
    """Centres of environments whose bits are not asked for, then what is around them; without any, all atoms."""
    from rdkit.Chem.rdFingerprintGenerator import AdditionalOutput, GetMorganGenerator

    output = AdditionalOutput()
    output.AllocateAtomToBits()
    GetMorganGenerator(radius=RADIUS, fpSize=BITS).GetFingerprint(molecule, additionalOutput=output)
    wanted = set(asked.tolist())
    wrong = [atom for atom, bits in enumerate(output.GetAtomToBits()) if not wanted.issuperset(bits)]
    for _ in range(RADIUS):
        around = (near.GetIdx() for atom in wrong for near in molecule.GetAtomWithIdx(atom).GetNeighbors())
        wrong = list(dict.fromkeys([*wrong, *around]))
    return wrong or list(range(molecule.GetNumAtoms()))


def _joined(labels: Codes, matrix: Codes, vocabulary: Vocabulary, *changes: tuple[int, int, int]) -> Graph:
    """The graph with some pairs of atoms joined otherwise."""
    changed = matrix.copy()
    for first, second, bond in changes:
        changed[first, second] = changed[second, first] = bond
    return Graph.from_matrix(labels, changed, vocabulary)


def _with_atom(labels: Codes, matrix: Codes, vocabulary: Vocabulary, atom: int, label: int, bond: int) -> Graph:
    """The graph with an end atom more."""
    n = len(labels)
    grown = np.zeros((n + 1, n + 1), np.int64)
    grown[:n, :n] = matrix
    grown[n, atom] = grown[atom, n] = bond
    return Graph.from_matrix(np.append(labels, label), grown, vocabulary)
