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
WEIGHED = 8
"""Changes that are as good as each other of which the model is asked."""


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
    """The best molecule found from `start` on by single changes, each of which leaves fewer wrong bits.

    Changes: a bond's type, an end of a bond elsewhere (with all that hangs on it), a bond more or less, an atom's
    element, an end atom more or less. At most so many are looked at, and none after the deadline (of
    `perf_counter`). Among changes that leave as few wrong bits the model's opinion counts.
    """
    best = start
    while best.wrong:
        found: list[Checked] = []
        for graph in _changed(best, asked, capacity):
            changes -= 1
            if changes < 0 or time.perf_counter() > deadline:
                break
            checked = check(graph, asked)
            if checked is not None and checked.wrong < best.wrong:
                found.append(checked)
        if not found:
            return best
        least = min(each.wrong for each in found)
        equal = [each for each in found if each.wrong == least][:WEIGHED]
        best = equal[int(np.argmax(opinion([each.graph for each in equal])))] if len(equal) > 1 else equal[0]
        if changes < 0 or time.perf_counter() > deadline:
            return best
    return best


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
    """Centres of the environments whose bits are not asked for; all atoms where there are none."""
    from rdkit.Chem.rdFingerprintGenerator import AdditionalOutput, GetMorganGenerator

    output = AdditionalOutput()
    output.AllocateAtomToBits()
    GetMorganGenerator(radius=RADIUS, fpSize=BITS).GetFingerprint(molecule, additionalOutput=output)
    wanted = set(asked.tolist())
    wrong = [atom for atom, bits in enumerate(output.GetAtomToBits()) if not wanted.issuperset(bits)]
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
