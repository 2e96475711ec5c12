"""The most probable molecule under a prediction: valence, connectedness and RDKit's aromaticity hold.

The graphs of highest score are looked at one by one first: where the plain decoder's graph is a molecule it is
the answer, and often one of the next few is. Past those a mixed-integer program (valence.py) takes over. What it
proposes and RDKit or connectedness refuses is cut off and the program solved again, so that what comes out is a
molecule, and the best one if the time was enough. Where it was not, atoms are joined one by one.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from graphwright.decoding.slots import Assignment, SlotScores, assignments, slot_scores
from graphwright.decoding.valence import Formula, FormulaRule, MoleculeProgram
from graphwright.graphs import Graph, Prediction, Vocabulary
from graphwright.graphs.molecule_structure import MoleculeError, usual_kinds, usual_states
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


def greedy_molecule(scores: SlotScores, vocabulary: Vocabulary, formula: Formula | None) -> Assignment | None:
    """The plain decoder's atoms as a molecule, as far as each fits what is there already; None if not one does.

    It starts from the surest atom, adds the atom and bond that cost least, and in the end the bonds that close
    rings, taking whatever leaves a molecule. Aromatic bonds, which hold only together, are not tried.
    """
    n = scores.slots
    labels = scores.label_regrets.argmin(1)
    surest = int(scores.presence[:, 1].argmax())
    wanted = [slot for slot, (_, regret) in enumerate(scores.presence_regrets.tolist()) if not regret] or [surest]
    presence, edges = np.arange(n) == surest, np.zeros((n, n), np.int64)
    molecule = scores.assign(presence, labels, edges)
    if not judge(molecule, vocabulary, formula).valid:
        return None
    codes = [code for code, name in enumerate(vocabulary.edges) if code and name != "aromatic"]
    cost = scores.edge_regrets - scores.edge_regrets[:, :, :1]  # (n, n, classes), above that of no bond
    pairs = [(i, j) for at, i in enumerate(wanted) for j in wanted[at + 1 :]]
    options = sorted((float(cost[i, j, code]), i, j, code) for i, j in pairs for code in codes)

    def fits(i: int, j: int, code: int) -> Assignment | None:
        more, joined = presence.copy(), edges.copy()
        more[[i, j]] = True
        joined[i, j] = joined[j, i] = code
        assignment = scores.assign(more, labels, joined)
        return assignment if judge(assignment, vocabulary, formula).valid else None

    grown = True
    while grown:
        grown = False
        for _, i, j, code in options:
            if presence[i] != presence[j] and (better := fits(i, j, code)) is not None:
                molecule, presence, edges = better, better.presence, better.edges
                grown = True
                break
    for extra, i, j, code in options:
        if extra < 0 and presence[i] and presence[j] and not edges[i, j]:
            better = fits(i, j, code)
            if better is not None:
                molecule, edges = better, better.edges
    return molecule


_LOOKED_AT = 200
"""Graphs looked at before the first program: they take about as long as it does."""
_REGRET_STEP = 3.0


class NoMoleculeError(ValueError):
    """No molecule of the formula was found."""


@dataclass(frozen=True)
class ValidDecoding:
    """A molecule; its model score; whether no molecule has a higher one; and what it took."""

    graph: Graph
    log_score: float
    proved_optimal: bool
    seconds: float


@dataclass(frozen=True)
class ValidAssignment:
    """A valid assignment; `proved` if none of those not found before it has a higher score."""

    assignment: Assignment
    proved: bool


def decode_valid(
    prediction: Prediction,
    vocabulary: Vocabulary,
    *,
    formulas: Sequence[Formula | None] | None = None,
    seconds: float = 10.0,
    programs: int | None = None,
) -> list[ValidDecoding]:
    """For every sample the molecule of highest model score, of its formula if one is given.

    When `seconds`, or so many mixed-integer programs (per sample), are used up, the best found so far is returned,
    in the worst case atoms joined greedily; with an exact formula and nothing found, `NoMoleculeError` is raised.
    """
    check_vocabulary(vocabulary)
    decoded = []
    for sample, scores in enumerate(slot_scores(prediction, vocabulary)):
        start = time.perf_counter()
        formula = formula_of(formulas, sample, len(prediction), vocabulary, scores)
        first = next(valid_assignments(scores, vocabulary, formula, start + seconds, programs), None)
        spent = time.perf_counter() - start
        if first is None:
            raise NoMoleculeError(f"sample {sample}: no molecule of the formula was found in {spent:.1f} s")
        graph = first.assignment.graph(vocabulary)
        decoded.append(ValidDecoding(graph, scores.score(first.assignment), first.proved, spent))
    return decoded


def check_vocabulary(vocabulary: Vocabulary) -> None:
    """Refuse graphs that are not molecules."""
    if sorted(vocabulary.edges) != sorted(BONDS):
        raise ValueError(f"the edge classes of molecules are {' '.join(BONDS)}, not {' '.join(vocabulary.edges)}")


def formula_of(
    formulas: Sequence[Formula | None] | None,
    sample: int,
    samples: int,
    vocabulary: Vocabulary,
    scores: SlotScores,
) -> Formula | None:
    """The formula of a sample, checked against what the model can predict."""
    if formulas is None:
        return None
    if len(formulas) != samples:
        raise ValueError(f"{len(formulas)} formulas for {samples} predictions")
    formula = formulas[sample]
    if formula is not None:
        try:
            formula.check(vocabulary, scores.slots)
        except ValueError as error:
            raise ValueError(f"sample {sample}: {error}") from error
    return formula


def valid_assignments(
    scores: SlotScores,
    vocabulary: Vocabulary,
    formula: Formula | None,
    deadline: float,
    programs: int | None = None,
) -> Iterator[ValidAssignment]:
    """Every molecule on the slots, from the highest score down, until none is left or the effort is spent.

    At the deadline (of `time.perf_counter`), or after so many programs, the best one found but not proved follows,
    and nothing after it. What comes out before the deadline does not depend on the clock.
    """
    yielded: list[Assignment] = []
    refused: list[tuple[Assignment, Verdict]] = []
    regret = 0.0
    stream = assignments(scores)
    for assignment in islice(stream, _LOOKED_AT):
        regret = assignment.regret
        verdict = judge(assignment, vocabulary, formula)
        if verdict.valid:
            yielded.append(assignment)
            yield ValidAssignment(assignment, proved=True)
        elif verdict.region:
            refused.append((assignment, verdict))
        if time.perf_counter() > deadline:
            break
    if next(stream, None) is None:
        return
    search = _ProgramSearch(scores, vocabulary, formula, deadline, programs, yielded, regret + _REGRET_STEP)
    for assignment, verdict in refused:
        search.refuse(assignment, verdict)
    yield from search.run()


_Cut = Callable[[MoleculeProgram], None]


class _ProgramSearch:
    """Molecules by programs and cuts, beyond those already yielded."""

    def __init__(
        self,
        scores: SlotScores,
        vocabulary: Vocabulary,
        formula: Formula | None,
        deadline: float,
        programs: int | None,
        yielded: list[Assignment],
        most_regret: float,
    ) -> None:
        self._scores, self._vocabulary, self._formula = scores, vocabulary, formula
        self._deadline = deadline
        self._programs = math.inf if programs is None else programs
        self._yielded = yielded
        self._most = most_regret
        self._cuts: list[_Cut] = [_forbidding(assignment) for assignment in yielded]
        self._program = self._build()
        self._best: Assignment | None = None

    def run(self) -> Iterator[ValidAssignment]:
        """The molecules by decreasing score, and when the effort is spent the best one known."""
        while self._programs > 0 and (left := self._deadline - time.perf_counter()) > 0:
            self._programs -= 1
            solution = self._program.solve(left)
            if solution.assignment is None:
                if not solution.optimal:
                    break
                if not self._widen(2 * self._most):
                    return
                continue
            verdict = judge(solution.assignment, self._vocabulary, self._formula)
            if verdict.valid:
                self._keep(solution.assignment)
            if solution.optimal and solution.assignment.regret > self._most:
                # Choices left out as too unlikely might have done better than these.
                self._widen(solution.assignment.regret if verdict.valid else 2 * solution.assignment.regret)
                continue
            if verdict.valid and solution.optimal:
                self._cut(_forbidding(solution.assignment))
                self._yielded.append(solution.assignment)
                self._best = None
                yield ValidAssignment(solution.assignment, proved=True)
            elif verdict.valid:
                break
            else:
                self.refuse(solution.assignment, verdict)
        if not self._yielded:
            for easy in (greedy_molecule, _single_atom):
                assignment = easy(self._scores, self._vocabulary, self._formula)
                if assignment is not None:
                    self._keep(assignment)
        if self._best is not None:
            yield ValidAssignment(self._best, proved=False)

    def refuse(self, assignment: Assignment, verdict: Verdict) -> None:
        """Cut off an assignment for what is wrong with it, and with it others that share the fault."""
        if verdict.parts:
            self._cut(lambda program: program.connect(verdict.parts))
            if self._formula is None or self._formula.rule is FormulaRule.AT_MOST:
                self._keep_largest(assignment, verdict.parts)
        elif verdict.region:
            self._cut(lambda program: program.forbid_region(assignment, verdict.region))
            ring = _lone_ring(assignment, verdict.region, self._vocabulary)
            if ring is not None:
                self._cut(lambda program: program.require_six_electrons(ring))
        else:
            self._cut(_forbidding(assignment))

    def _keep_largest(self, assignment: Assignment, parts: tuple[tuple[int, ...], ...]) -> None:
        """Remember the largest part of a proposal, for the case that the time runs out."""
        presence = np.zeros(self._scores.slots, bool)
        largest = max(parts, key=len)
        presence[list(largest)] = True
        part = self._scores.assign(presence, assignment.labels, assignment.edges)
        if (self._best is None or part.regret < self._best.regret) and judge(
            part, self._vocabulary, self._formula
        ).valid:
            self._keep(part)

    def _keep(self, assignment: Assignment) -> None:
        if any(_same(assignment, other) for other in self._yielded):
            return
        if self._best is None or assignment.regret < self._best.regret:
            self._best = assignment

    def _widen(self, most_regret: float) -> bool:
        """Build the program with more choices; false if it had them all."""
        if self._most == np.inf:
            return False
        largest = max(
            float(regrets.max(initial=0.0))
            for regrets in (self._scores.presence_regrets, self._scores.label_regrets, self._scores.edge_regrets)
        )
        self._most = most_regret if most_regret < largest else np.inf
        self._program = self._build()
        return True

    def _build(self) -> MoleculeProgram:
        program = MoleculeProgram(self._scores, self._vocabulary, self._formula, self._most)
        for cut in self._cuts:
            cut(program)
        return program

    def _cut(self, cut: _Cut) -> None:
        self._cuts.append(cut)
        cut(self._program)


def _forbidding(assignment: Assignment) -> _Cut:
    return lambda program: program.forbid(assignment)


def _lone_ring(assignment: Assignment, region: Sequence[int], vocabulary: Vocabulary) -> list[int] | None:
    """The region in the order of the ring, if it is one aromatic ring of five to seven atoms and no more."""
    aromatic = assignment.edges == vocabulary.edges.index("aromatic")
    if not 5 <= len(region) <= 7 or (aromatic[list(region)].sum(1) != 2).any():
        return None
    ring = [region[0]]
    while True:
        ahead = [slot for slot in np.flatnonzero(aromatic[ring[-1]]).tolist() if slot not in ring]
        if not ahead:
            break
        ring.append(ahead[0])
    return ring if sorted(ring) == sorted(region) else None


def _same(one: Assignment, other: Assignment) -> bool:
    return (
        np.array_equal(one.presence, other.presence)
        and np.array_equal(one.labels, other.labels)
        and np.array_equal(one.edges, other.edges)
    )


def _single_atom(scores: SlotScores, vocabulary: Vocabulary, formula: Formula | None) -> Assignment | None:
    """The likeliest molecule of one heavy atom."""
    best: Assignment | None = None
    nothing = np.zeros((scores.slots, scores.slots), np.int64)
    for slot in range(scores.slots):
        for code, symbol in enumerate(vocabulary.nodes):
            if all(kind.charge for kind in usual_kinds(symbol)):
                continue
            labels = np.full(scores.slots, code, np.int64)
            atom = scores.assign(np.arange(scores.slots) == slot, labels, nothing)
            if (best is None or atom.regret < best.regret) and judge(atom, vocabulary, formula).valid:
                best = atom
    return best
