"""The decoder that checks its answers: molecules that have the asked fingerprint first.

Where none could be assembled, molecules of the model are repaired: they are not far, and the bits that a molecule
has but should not have say which of its atoms are wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphwright.decoding import Candidate, Candidates, SlotScores, slot_scores
from graphwright.decoding.candidates import valid_of_scores
from graphwright.graphs import Graph, GraphBatch, Prediction, Vocabulary
from graphwright.graphs.isomorphism import DistinctGraphs
from graphwright.graphs.molecules import MoleculeError, graph_from_molecule, usual_molecule
from graphwright.known.decoding import log_probabilities
from graphwright.tasks.molecules.assembly.alphabet import Alphabet, Codes
from graphwright.tasks.molecules.assembly.assemble import Assembly, Limits, assemble, needs_more_atoms
from graphwright.tasks.molecules.fingerprint import BITS, RADIUS, BitArray, active_bits

if TYPE_CHECKING:
    from rdkit.Chem import Mol

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
        answers: list[Checked] = []
        for graph in (graph for each in going for graph in _changed(each, asked, capacity)):
            changes -= 1
            if changes < 0 or time.perf_counter() > deadline:
                patience = 1  # what there is counts, but the search ends
                break
            checked = check(graph, asked)
            if checked is not None and (name := _name(checked)) not in seen:
                seen.add(name)
                answers.append(checked)
        if not answers:
            break
        going = _fewest_wrong(answers, opinion)
        patience = patience - 1 if going[0].wrong >= best.wrong else (PATIENCE if patience > 1 else 0)
        if going[0].wrong < best.wrong:
            best = going[0]
    return best


def _fewest_wrong(answers: list[Checked], opinion: Opinion) -> list[Checked]:
    """The few with the fewest wrong bits, those that the model prefers first among equals."""
    answers = sorted(answers, key=lambda each: each.wrong)[:WEIGHED]
    opinions = opinion([each.graph for each in answers]) if len(answers) > 1 else np.zeros(1)
    order = sorted(range(len(answers)), key=lambda at: (answers[at].wrong, -opinions[at]))
    return [answers[at] for at in order[:KEPT]]


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


MODEL_WEIGHT = 0.3
"""Weight of the model's log-probability beside the costs of an assembled molecule; below 1, since a sum over
decisions, taken as independent, is overconfident."""
TEMPERATURE = 2.0
"""What scores of assembled molecules are divided by. At it the mean probability of the first candidate was how
often it was right, without a model (74 % where there are several; 1,200 validation molecules, up to 32 atoms)."""
SHARE_OF_SIZE = 0.25
"""Share of an answer's time, on top of it, to see whether only a molecule of more atoms has the fingerprint."""
REPAIRED = 3
"""Candidates that repair starts from."""


@dataclass(frozen=True)
class FingerprintEffort:
    """What one answer may cost.

    limits: of the assembly, except its seconds. programs: of valid decoding; None: any number. changes: that one
    repair looks at. seconds: in all; half of them for the assembly, half of what is left for valid candidates.
    """

    limits: Limits = field(default_factory=Limits)
    programs: int | None = None
    changes: int = 3000
    seconds: float = 8.0


def fingerprint_candidates(
    prediction: Prediction,
    vocabulary: Vocabulary,
    asked: Sequence[BitArray],
    alphabet: Alphabet,
    capacity: int,
    count: int,
    effort: FingerprintEffort | None = None,
) -> list[Candidates]:
    """For every sample molecules that have the asked bits, the likeliest first; where there is none, the nearest.

    Molecules are assembled from the alphabet's environments and ranked by how usual they are and what the model
    thinks of them. Where none can be assembled, the model's valid candidates are repaired, and ranked by Tanimoto
    similarity to the asked bits, then by the model's score.
    """
    if count < 1:
        raise ValueError(f"the number of candidates must be at least 1, got {count}")
    if len(asked) != len(prediction):
        raise ValueError(f"{len(asked)} fingerprints for {len(prediction)} predictions")
    effort = effort or FingerprintEffort()
    decoder = _Decoding(vocabulary, alphabet, min(capacity, prediction.capacity), prediction.capacity, effort)
    return [
        decoder.candidates(scores, bits, count)
        for scores, bits in zip(slot_scores(prediction, vocabulary), asked, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Decoding:
    """One model's, for all of its samples."""

    vocabulary: Vocabulary
    alphabet: Alphabet
    capacity: int
    slots: int
    effort: FingerprintEffort

    def candidates(self, scores: SlotScores, asked: BitArray, count: int) -> Candidates:
        start = time.perf_counter()
        limits = replace(
            self.effort.limits,
            molecules=max(count, self.effort.limits.molecules),
            seconds=self.effort.seconds / 2,
        )
        assembly = assemble(asked, self.alphabet, self.capacity, limits)
        answers = self._assembled(scores, assembly)
        if not answers:
            answers = self._nearest(scores, asked, count, start)
            # What comes nearest says little of a molecule that has no room here.
            if assembly.complete and needs_more_atoms(
                asked, self.alphabet, self.capacity, self.effort.seconds * SHARE_OF_SIZE
            ):
                note = f"needs more than {self.capacity} atoms"
                answers = [replace(each, note=note) for each in answers]
        return Candidates(tuple(answers[:count]), time.perf_counter() - start)

    def _assembled(self, scores: SlotScores, assembly: Assembly) -> list[Candidate]:
        """Molecules with the fingerprint as graphs, by cost and model; tautomers are one graph."""
        distinct = DistinctGraphs()
        smiles: list[str] = []
        costs: list[float] = []
        for each in assembly.molecules:
            graph = graph_from_molecule(each.molecule, self.vocabulary)
            if distinct.add(graph) == len(smiles):
                smiles.append(each.smiles)
                costs.append(each.cost)
        if not smiles:
            return []
        # A single one needs no opinion, which is what takes the time.
        opinions = self._opinions(scores, distinct.graphs) if len(smiles) > 1 else np.zeros(1)
        log_scores = (MODEL_WEIGHT * opinions - np.array(costs)) / TEMPERATURE
        shares = np.exp(log_scores - np.logaddexp.reduce(log_scores))
        return [
            Candidate(
                distinct.graphs[at],
                float(log_scores[at]),
                float(shares[at]),
                float(shares[at]),
                proved=assembly.complete,
                checked=True,
                text=smiles[at],
            )
            for at in np.argsort(-log_scores, kind="stable").tolist()
        ]

    def _nearest(self, scores: SlotScores, asked: BitArray, count: int, start: float) -> list[Candidate]:
        """The model's molecules, and what repair makes of the best, by Tanimoto similarity, then by score."""
        from rdkit import Chem

        now = time.perf_counter()
        left = max(start + self.effort.seconds - now, 0.0)
        valid = valid_of_scores(scores, self.vocabulary, None, count, now + left / 2, self.effort.programs)
        met = [check(candidate.graph, asked) for candidate in valid.candidates]
        checked = sorted((each for each in met if each is not None), key=lambda each: each.wrong)
        repaired = [
            repair(
                each,
                asked,
                self.capacity,
                lambda graphs: self._opinions(scores, graphs),
                changes=self.effort.changes,
                deadline=start + self.effort.seconds,
            )
            for each in checked[:REPAIRED]
        ]
        distinct = DistinctGraphs()
        for each in (*repaired, *checked):
            distinct.add(each.graph)
        by_index = {distinct.add(each.graph): each for each in (*checked, *repaired)}
        opinions = self._opinions(scores, distinct.graphs)
        shares = np.exp(opinions - np.logaddexp.reduce(opinions))
        likeness = [tanimoto(active_bits(by_index[at].molecule), asked) for at in range(len(opinions))]
        order = sorted(by_index, key=lambda at: (by_index[at].wrong > 0, -likeness[at], -opinions[at]))
        return [
            Candidate(
                distinct.graphs[at],
                float(opinions[at]),
                float(np.exp(opinions[at])),
                float(shares[at]),
                proved=False,
                checked=by_index[at].wrong == 0,
                text=Chem.MolToSmiles(by_index[at].molecule),
            )
            for at in order
        ]

    def _opinions(self, scores: SlotScores, graphs: Sequence[Graph]) -> NDArray[np.float64]:
        """(g,) log-probabilities of graphs at the best assignments met."""
        return log_probabilities(scores, GraphBatch.collate(list(graphs), self.slots))


def tanimoto(first: BitArray, second: BitArray) -> float:
    """Shared bits by bits in either; 1 where both have none."""
    either = len(np.union1d(first, second))
    return len(np.intersect1d(first, second)) / either if either else 1.0
