"""The mixed-integer program of a molecule on the slots of a prediction, also of one with a given formula.

minimise the regret (slots.py) over presences x, atom kinds z (element, charge, valence), bonds e_c and the double
bonds k of a Kekule form, subject to: one kind per present slot; bonds within the valence; no net charge; aromatic
atoms with two or three aromatic bonds and, if carbon, a double bond in the ring or beside it; enough bonds to be
connected; the formula. Connectedness itself and RDKit's own view of aromaticity are cut in afterwards.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import IO

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from graphwright.decoding.slots import Assignment, SlotScores
from graphwright.graphs import Vocabulary
from graphwright.graphs.graph import FloatArray
from graphwright.graphs.molecule_structure import AROMATIC_ELEMENTS, AtomKind, usual_kinds
from graphwright.graphs.molecules import BONDS

_PART = re.compile(r"([A-Z][a-z]?)([0-9]*)")


class FormulaRule(StrEnum):
    """How a molecule must agree with the formula."""

    EXACT = "exact"
    AT_MOST = "at most"


@dataclass(frozen=True)
class Formula:
    """Atoms by element. `EXACT`: the molecule has these heavy atoms, and these hydrogens unless None.

    `AT_MOST`: it has no more of any element, as a part of a larger molecule does; hydrogens are not looked at,
    since a part has some where the whole has bonds.
    """

    atoms: Mapping[str, int]
    hydrogens: int | None = None
    rule: FormulaRule = field(default=FormulaRule.EXACT, kw_only=True)

    def __post_init__(self) -> None:
        if "H" in self.atoms:
            raise ValueError("atoms names hydrogen, which has a field of its own")
        for symbol, count in (*self.atoms.items(), ("H", self.hydrogens or 0)):
            if count < 0:
                raise ValueError(f"the formula has {count} atoms of {symbol}, expected none or more")
        object.__setattr__(self, "atoms", MappingProxyType(dict(self.atoms)))

    @classmethod
    def parse(cls, text: str, rule: FormulaRule = FormulaRule.EXACT) -> Formula:
        """The formula of a text such as C6H12O6; hydrogens that are not written are none."""
        counts: dict[str, int] = {}
        at = 0
        for part in _PART.finditer(text):
            if part.start() != at:
                break
            counts[part[1]] = counts.get(part[1], 0) + int(part[2] or 1)
            at = part.end()
        if at != len(text) or not text:
            raise ValueError(f"{text!r} is not a molecular formula such as C6H12O6 (read up to {text[:at]!r})")
        return cls(counts, counts.pop("H", 0), rule=rule)

    def most(self, vocabulary: Vocabulary) -> tuple[int, ...]:
        """(labels,) how many atoms of each label there may be."""
        return tuple(self.atoms.get(symbol, 0) for symbol in vocabulary.nodes)

    def check(self, vocabulary: Vocabulary, slots: int) -> None:
        """Refuse a formula that no graph of this vocabulary and size can have."""
        if self.rule is FormulaRule.AT_MOST:
            if not any(self.most(vocabulary)):
                raise ValueError(f"the formula allows none of the model's elements, {' '.join(vocabulary.nodes)}")
            return
        for symbol, count in self.atoms.items():
            if count and symbol not in vocabulary.nodes:
                raise ValueError(f"the formula has {symbol}, which is none of {' '.join(vocabulary.nodes)}")
        size = sum(self.atoms.values())
        if not 0 < size <= slots:
            raise ValueError(f"the formula has {size} heavy atoms, the model has room for 1 to {slots}")

    def admits(self, counts: Mapping[str, int], hydrogens: int) -> bool:
        """Whether a molecule with these heavy atoms and hydrogens agrees."""
        symbols = {*counts, *self.atoms}
        if self.rule is FormulaRule.AT_MOST:
            return all(counts.get(symbol, 0) <= self.atoms.get(symbol, 0) for symbol in symbols)
        same = all(counts.get(symbol, 0) == self.atoms.get(symbol, 0) for symbol in symbols)
        return same and self.hydrogens in (None, hydrogens)


STDOUT = 1
NOISE = b"HighsMipSolverData::"
"""Begins lines that HiGHS prints by `printf`, whatever its options say."""

_lock = threading.Lock()


@contextmanager
def without_solver_noise() -> Iterator[None]:
    """Around a call of the solver: what goes to file descriptor 1 meanwhile is passed on without HiGHS's lines.

    The descriptor is the process's: others that print (a progress bar's thread) are late, but lose nothing; and
    one thread at a time may solve, or two would put each other's file in its place for good.
    """
    with _lock, ExitStack() as opened:
        try:
            kept = os.dup(STDOUT)
            opened.callback(os.close, kept)
            caught = opened.enter_context(tempfile.TemporaryFile())
        except OSError:  # nobody listens, or it cannot be written
            yield
            return
        _flush()
        os.dup2(caught.fileno(), STDOUT)
        try:
            yield
        finally:
            _flush()
            os.dup2(kept, STDOUT)
            _pass_on(caught)


def _pass_on(caught: IO[bytes]) -> None:
    caught.seek(0)
    for line in caught:
        if not line.startswith(NOISE):
            os.write(STDOUT, line)


def _flush() -> None:
    """Empty the buffers of Python and of C: what HiGHS prints into a pipe stays in the latter for long."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()
    ctypes.CDLL(None if os.name == "posix" else "ucrtbase").fflush(None)


Terms = list[tuple[int, float]]
"""A linear form: pairs (variable, coefficient)."""
_TETRAVALENT = ("C", "Si", "Ge")


@dataclass(frozen=True)
class Solution:
    """What the solver found, None if nothing; `optimal` if no other assignment in the program is better."""

    assignment: Assignment | None
    optimal: bool


@dataclass
class _Rows:
    """A program under construction."""

    costs: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integral: list[int] = field(default_factory=list)
    terms: list[Terms] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)

    def variable(self, cost: float = 0.0, *, lower: float = 0.0, upper: float = 1.0, integral: bool = True) -> int:
        self.costs.append(cost)
        self.lower.append(lower)
        self.upper.append(upper)
        self.integral.append(int(integral))
        return len(self.costs) - 1

    def row(self, terms: Terms, *, least: float = -np.inf, most: float = np.inf) -> None:
        self.terms.append(terms)
        self.least.append(least)
        self.most.append(most)


class MoleculeProgram:
    """The program of one prediction, restricted to choices of at most a given regret each.

    Since regrets add up, a solution whose whole regret is within that bound is optimal without it, too.
    """

    def __init__(
        self, scores: SlotScores, vocabulary: Vocabulary, formula: Formula | None, most_regret: float
    ) -> None:
        self._scores = scores
        self._rows = _Rows()
        self._most = most_regret
        self._orders = {vocabulary.edges.index(name): at for at, name in enumerate(BONDS) if at}
        self._aromatic = vocabulary.edges.index("aromatic")
        self._symbols = vocabulary.nodes
        self._slots = self._add_slots()
        self._bonds = self._add_bonds()
        self._double = {
            pair: self._rows.variable() for pair, classes in self._bonds.items() if self._aromatic in classes
        }
        self._around: dict[int, list[tuple[int, int]]] = {slot: [] for slot in self._slots}
        for pair in self._bonds:
            for slot in pair:
                self._around[slot].append(pair)
        self._require_valences()
        self._require_aromaticity()
        self._require_whole(formula)

    def solve(self, seconds: float) -> Solution:
        """The assignment of least regret, as far as the time allows."""
        rows = self._rows
        count = len(rows.costs)
        if not count:
            return Solution(None, optimal=True)
        lengths = [len(terms) for terms in rows.terms]
        # SciPy 1.11's solver takes indices of 32 bits alone.
        columns = np.array([column for terms in rows.terms for column, _ in terms], np.int32)
        values = np.array([value for terms in rows.terms for _, value in terms], np.float64)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        matrix = csr_array((values, columns, starts), shape=(len(rows.terms), count))
        with without_solver_noise():
            result = milp(
                np.array(rows.costs),
                integrality=np.array(rows.integral),
                bounds=Bounds(np.array(rows.lower), np.array(rows.upper)),
                constraints=LinearConstraint(matrix, np.array(rows.least), np.array(rows.most)),
                options={"time_limit": max(seconds, 0.01), "mip_rel_gap": 0.0},
            )
        assignment = None if result.x is None else self._read(np.asarray(result.x))
        return Solution(assignment, optimal=result.status in (0, 2))

    def forbid(self, assignment: Assignment) -> None:
        """Cut off this assignment, and nothing else."""
        if not self._has(assignment):
            return
        terms: Terms = []
        fixed = 0
        for slot, (present, _) in self._slots.items():
            if assignment.presence[slot]:
                fixed += self._same_label(terms, slot, int(assignment.labels[slot]))
            else:
                terms.append((present, 1.0))
        for pair in self._bonds:
            if assignment.presence[list(pair)].all():
                fixed += self._same_bond(terms, pair, int(assignment.edges[pair]))
        self._rows.row(terms, least=1.0 - fixed)

    def forbid_region(self, assignment: Assignment, region: Sequence[int]) -> None:
        """Cut off all assignments with these labels and bonds at and around the slots of the region."""
        inside = set(region)
        labelled = set(region)
        terms: Terms = []
        fixed = 0
        for pair in self._bonds:
            if inside.intersection(pair):
                fixed += self._same_bond(terms, pair, int(assignment.edges[pair]))
                if assignment.edges[pair]:
                    labelled.update(pair)
        for slot in sorted(labelled):
            fixed += self._same_label(terms, slot, int(assignment.labels[slot]))
        self._rows.row(terms, least=1.0 - fixed)

    def connect(self, parts: Iterable[Sequence[int]]) -> None:
        """Ask for a bond out of each part wherever a slot in it and one outside are both present."""
        parts = [list(part) for part in parts]
        for part in parts:
            inside = set(part)
            leaving: Terms = [
                (variable, 1.0)
                for pair, classes in self._bonds.items()
                if len(inside.intersection(pair)) == 1
                for variable in classes.values()
            ]
            here = self._surest(part)
            there = self._surest([slot for other in parts if other is not part for slot in other])
            presences = [(self._slots[slot][0], -1.0) for slot in (here, there)]
            self._rows.row([*leaving, *presences], least=-1.0)

    def require_six_electrons(self, ring: Sequence[int]) -> None:
        """Ask of an aromatic ring of five to seven slots, wherever it stands alone, that it has six electrons.

        An atom lends one by a double bond in the ring (d), two by a pair (p), none with a double bond beside the
        ring (s), so that d + 2 s, summed over the k atoms, is 2 k - 6. RDKit sees other rings as aromatic only
        with two or more s or four or more p; these, and boron, which lends nothing, are exempt.
        """
        size = len(ring)
        sides = [(min(pair), max(pair)) for pair in zip(ring, [*ring[1:], ring[0]], strict=True)]
        if any(pair not in self._double for pair in sides):
            return
        beside_code = next(code for code, order in self._orders.items() if order == 2)
        inside = [self._bonds[pair][self._aromatic] for pair in sides]
        near = {pair for slot in ring for pair in self._around[slot] if pair in self._double}
        double: Terms = [(self._double[pair], 1.0) for slot in ring for pair in self._around[slot] if pair in near]
        beside: Terms = [term for slot in ring for term in self._bonds_of(slot, [beside_code])]
        many_beside, many_pairs = self._rows.variable(), self._rows.variable()
        self._rows.row([(many_beside, -2.0), *_merged(beside)], least=0.0)
        self._rows.row(_merged([(many_pairs, 4.0), *double, *beside]), most=float(size))
        exempt: Terms = [(many_beside, 1.0), (many_pairs, 1.0)]
        exempt.extend((self._bonds[pair][self._aromatic], 1.0) for pair in near.difference(sides))
        for slot in ring:
            exempt.extend((z, 1.0) for z, (_, kind) in self._slots[slot][1].items() if kind.symbol == "B")
        # Where a side is missing or an exemption holds the rows say nothing: the sum is at most 3 k.
        slack: Terms = [*((side, -1.0) for side in inside), *exempt]
        lent: Terms = [*double, *((column, 2.0 * value) for column, value in beside)]
        wanted, width = 2.0 * size - 6.0, 3.0 * size
        self._rows.row(_merged([*lent, *_scaled(slack, width)]), least=wanted - width * size)
        self._rows.row(_merged([*lent, *_scaled(slack, -width)]), most=wanted + width * size)

    def _has(self, assignment: Assignment) -> bool:
        """Whether the program has all the choices of an assignment, or leaves some out as too unlikely."""
        edges = np.argwhere(np.triu(assignment.edges)).tolist()
        return all(slot in self._slots for slot in np.flatnonzero(assignment.presence).tolist()) and all(
            int(assignment.edges[i, j]) in self._bonds.get((i, j), {}) for i, j in edges
        )

    def _surest(self, slots: Sequence[int]) -> int:
        return min(slots, key=lambda slot: self._scores.presence_regrets[slot, 1])

    def _same_label(self, terms: Terms, slot: int, label: int) -> int:
        """Add minus the indicator that the slot has the label; one row of a cut."""
        terms.extend((variable, -1.0) for variable, (code, _) in self._slots[slot][1].items() if code == label)
        return 1

    def _same_bond(self, terms: Terms, pair: tuple[int, int], code: int) -> int:
        if code:
            terms.append((self._bonds[pair][code], -1.0))
            return 1
        terms.extend((variable, 1.0) for variable in self._bonds[pair].values())
        return 0

    def _add_slots(self) -> dict[int, tuple[int, dict[int, tuple[int, AtomKind]]]]:
        """Slot -> its presence variable, and kind variables with label code and kind."""
        slots: dict[int, tuple[int, dict[int, tuple[int, AtomKind]]]] = {}
        for slot, (absent, present) in enumerate(self._scores.presence_regrets.tolist()):
            if present > self._most:
                continue
            presence = self._rows.variable(present - absent, lower=float(absent > self._most))
            kinds = {
                self._rows.variable(float(regret)): (code, kind)
                for code, regret in enumerate(self._scores.label_regrets[slot])
                if regret <= self._most
                for kind in usual_kinds(self._symbols[code])
            }
            self._rows.row([(presence, -1.0), *((variable, 1.0) for variable in kinds)], least=0.0, most=0.0)
            slots[slot] = presence, kinds
        return slots

    def _add_bonds(self) -> dict[tuple[int, int], dict[int, int]]:
        """Pair -> edge code -> bond variable; having no bond costs where another class is likelier."""
        bonds: dict[tuple[int, int], dict[int, int]] = {}
        slots = list(self._slots)
        for at, first in enumerate(slots):
            for second in slots[at + 1 :]:
                regrets = self._scores.edge_regrets[first, second].tolist()
                classes = {
                    code: self._rows.variable(regret)
                    for code, regret in enumerate(regrets)
                    if code and regret <= self._most
                }
                if not classes:
                    continue
                bonds[first, second] = classes
                joined: Terms = [(variable, 1.0) for variable in classes.values()]
                ends = [(self._slots[slot][0], -1.0) for slot in (first, second)]
                for end in ends:
                    self._rows.row([*joined, end], most=0.0)
                if regrets[0] > 0:
                    most = 1.0 if regrets[0] <= self._most else 0.0
                    apart = self._rows.variable(regrets[0], upper=most, integral=False)
                    self._rows.row([(apart, 1.0), *joined, *ends], least=-1.0)
        return bonds

    def _require_valences(self) -> None:
        for slot, (_, kinds) in self._slots.items():
            used = self._used(slot)
            self._rows.row([*used, *((z, -float(kind.valence)) for z, (_, kind) in kinds.items())], most=0.0)
            least: Terms = [(z, -float(kind.least)) for z, (_, kind) in kinds.items() if kind.least]
            if least:
                self._rows.row([*used, *least], least=0.0)
            for z, (_, kind) in kinds.items():
                if kind.order:
                    enough = [code for code, order in self._orders.items() if kind.order <= order <= 3]
                    self._rows.row([*self._bonds_of(slot, enough), (z, -1.0)], least=0.0)

    def _require_aromaticity(self) -> None:
        for pair, variable in self._double.items():
            self._rows.row([(variable, 1.0), (self._bonds[pair][self._aromatic], -1.0)], most=0.0)
        several = [code for code, order in self._orders.items() if order in (2, 3)]
        for slot, (_, kinds) in self._slots.items():
            ring = self._bonds_of(slot, [self._aromatic])
            if not ring:
                continue
            aromatic = self._rows.variable()
            self._rows.row([*ring, (aromatic, -2.0)], least=0.0)
            self._rows.row([*ring, (aromatic, -3.0)], most=0.0)
            for bond, _ in ring:  # implied by the two above for whole numbers, but not for fractions
                self._rows.row([(bond, 1.0), (aromatic, -1.0)], most=0.0)
                self._rows.row([(other, 1.0 if other != bond else -1.0) for other, _ in ring], least=0.0)
            double: Terms = [(self._double[pair], 1.0) for pair in self._around[slot] if pair in self._double]
            self._rows.row([*double, (aromatic, -1.0)], most=0.0)
            able: Terms = [(z, 1.0) for z, (_, kind) in kinds.items() if kind.symbol in AROMATIC_ELEMENTS]
            self._rows.row([*able, (aromatic, -1.0)], least=0.0)
            lending: Terms = [
                (z, 1.0) for z, (_, kind) in kinds.items() if kind.charge or kind.symbol not in _TETRAVALENT
            ]
            beside = self._bonds_of(slot, several)
            self._rows.row([*double, *beside, *lending, (aromatic, -1.0)], least=0.0)

    def _require_whole(self, formula: Formula | None) -> None:
        """One neutral molecule with enough bonds to be connected, and of the formula."""
        present: Terms = [(presence, 1.0) for presence, _ in self._slots.values()]
        kinds = [(z, code, kind) for _, own in self._slots.values() for z, (code, kind) in own.items()]
        joined: Terms = [(variable, -1.0) for classes in self._bonds.values() for variable in classes.values()]
        self._rows.row(present, least=1.0)
        self._rows.row([*present, *joined], most=1.0)
        if self._slots:
            self.connect([[slot] for slot in self._slots])
        charges: Terms = [(z, float(kind.charge)) for z, _, kind in kinds if kind.charge]
        self._rows.row(charges, least=0.0, most=0.0)
        if formula is None:
            return
        exact = formula.rule is FormulaRule.EXACT
        for label, symbol in enumerate(self._symbols):
            count = float(formula.atoms.get(symbol, 0))
            own: Terms = [(z, 1.0) for z, code, _ in kinds if code == label]
            self._rows.row(own, least=count if exact else 0.0, most=count)
        if exact and formula.hydrogens is not None:
            total: Terms = [(z, float(kind.valence)) for z, _, kind in kinds]
            used: Terms = [(column, -value) for slot in self._slots for column, value in self._used(slot)]
            hydrogens = float(formula.hydrogens)
            self._rows.row(_merged([*total, *used]), least=hydrogens, most=hydrogens)

    def _used(self, slot: int) -> Terms:
        """The total order of a slot's bonds, aromatic ones in Kekule form."""
        terms: Terms = []
        for pair in self._around[slot]:
            for code, variable in self._bonds[pair].items():
                order = self._orders[code]
                terms.append((variable, 1.0 if code == self._aromatic else float(order)))
            if pair in self._double:
                terms.append((self._double[pair], 1.0))
        return terms

    def _bonds_of(self, slot: int, codes: Sequence[int]) -> Terms:
        return [
            (self._bonds[pair][code], 1.0)
            for pair in self._around[slot]
            for code in codes
            if code in self._bonds[pair]
        ]

    def _read(self, values: FloatArray) -> Assignment:
        n = self._scores.slots
        presence, labels, edges = np.zeros(n, bool), np.zeros(n, np.int64), np.zeros((n, n), np.int64)
        for slot, (present, kinds) in self._slots.items():
            presence[slot] = values[present] > 0.5
            labels[slot] = next((code for z, (code, _) in kinds.items() if values[z] > 0.5), 0)
        for (first, second), classes in self._bonds.items():
            for code, variable in classes.items():
                if values[variable] > 0.5:
                    edges[first, second] = edges[second, first] = code
        return self._scores.assign(presence, labels, edges)


def _scaled(terms: Terms, factor: float) -> Terms:
    return [(column, value * factor) for column, value in terms]


def _merged(terms: Terms) -> Terms:
    """One coefficient per variable."""
    total: dict[int, float] = {}
    for column, value in terms:
        total[column] = total.get(column, 0.0) + value
    return list(total.items())
