"""The decoder that checks its answers: molecules that have the asked fingerprint first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from graphwright.decoding import Candidate, Candidates, SlotScores, slot_scores
from graphwright.decoding.candidates import valid_of_scores
from graphwright.graphs import Graph, GraphBatch, Prediction, Vocabulary
from graphwright.graphs.distinct import DistinctGraphs
from graphwright.graphs.molecules import graph_from_molecule
from graphwright.known.decoding import log_probabilities
from graphwright.tasks.molecules.assembly.alphabet import Alphabet
from graphwright.tasks.molecules.assembly.assemble import Assembly, Limits, assemble
from graphwright.tasks.molecules.assembly.repair import check, repair
from graphwright.tasks.molecules.fingerprint import BitArray, active_bits

MODEL_WEIGHT = 0.3
"""Of the model's log-probability beside the costs of an assembled molecule: a sum over decisions as if they were
independent, it is too sure of itself."""
TEMPERATURE = 2.0
"""What scores of assembled molecules are divided by. At it the mean probability of the first candidate was how
often it was right, without a model (74 % where there are several; 1,200 validation molecules, up to 32 atoms)."""
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
        """Of one sample."""
        start = time.perf_counter()
        limits = replace(
            self.effort.limits,
            molecules=max(count, self.effort.limits.molecules),
            seconds=self.effort.seconds / 2,
        )
        found = self._assembled(scores, assemble(asked, self.alphabet, self.capacity, limits))
        if not found:
            found = self._nearest(scores, asked, count, start)
        return Candidates(tuple(found[:count]), time.perf_counter() - start)

    def _assembled(self, scores: SlotScores, assembly: Assembly) -> list[Candidate]:
        """Molecules with the fingerprint as graphs, by cost and model; tautomers are one graph."""
        distinct = DistinctGraphs()
        smiles: list[str] = []
        costs: list[float] = []
        for each in assembly.molecules:
            graph = graph_from_molecule(each.molecule, self.vocabulary)
            if distinct.place(graph) == len(smiles):
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
            distinct.place(each.graph)
        by_place = {distinct.place(each.graph): each for each in (*checked, *repaired)}
        opinions = self._opinions(scores, distinct.graphs)
        shares = np.exp(opinions - np.logaddexp.reduce(opinions))
        likeness = [tanimoto(active_bits(by_place[at].molecule), asked) for at in range(len(opinions))]
        order = sorted(by_place, key=lambda at: (by_place[at].wrong > 0, -likeness[at], -opinions[at]))
        return [
            Candidate(
                distinct.graphs[at],
                float(opinions[at]),
                float(np.exp(opinions[at])),
                float(shares[at]),
                proved=False,
                checked=by_place[at].wrong == 0,
                text=Chem.MolToSmiles(by_place[at].molecule),
            )
            for at in order
        ]

    def _opinions(self, scores: SlotScores, graphs: Sequence[Graph]) -> NDArray[np.float64]:
        """(g,) log-probabilities of graphs at the best places found."""
        return log_probabilities(scores, GraphBatch.collate(list(graphs), self.slots))


def tanimoto(first: BitArray, second: BitArray) -> float:
    """Shared bits by bits in either; 1 where both have none."""
    either = len(np.union1d(first, second))
    return len(np.intersect1d(first, second)) / either if either else 1.0
