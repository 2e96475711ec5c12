"""Lewis structures of a graph of elements and bond types: charges, hydrogens and double bonds, cheapest first.

Outside aromatic systems every atom chooses its state alone. Within one, the atoms with a double bond in the
ring must be paired along aromatic bonds. Atoms and systems meet only in the net charge, which a small dynamic
program keeps at zero where it can.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import count, islice
from types import MappingProxyType


class Reason(StrEnum):
    """Why something is not a molecule that a graph can stand for, or a graph not a molecule."""

    EMPTY = "empty"
    UNPARSABLE = "unparsable"
    UNSANITIZABLE = "unsanitizable"
    SEVERAL_FRAGMENTS = "several fragments"
    TOO_LARGE = "too large"
    UNKNOWN_ELEMENT = "unknown element"
    UNKNOWN_BOND = "unknown bond"
    NET_CHARGE = "net charge"


class MoleculeError(ValueError):
    """A molecule refused; `reason` is what refusals are counted by, `atoms` are those at fault where known."""

    def __init__(self, reason: Reason, detail: str, atoms: tuple[int, ...] = ()) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.atoms = atoms

    def __reduce__(self) -> tuple[type[MoleculeError], tuple[Reason, str, tuple[int, ...]]]:
        # The default would call the class with the joined message.
        return MoleculeError, (self.reason, self.detail, self.atoms)


# Valences by element and charge, as RDKit counts them: a charged atom takes those of the element with as many
# electrons. Charges that no stable compound of the data's kind shows are left out.
VALENCES: Mapping[str, Mapping[int, tuple[int, ...]]] = MappingProxyType(
    {
        "B": {0: (3,), -1: (4,)},
        "C": {0: (4,), -1: (3,), 1: (3,)},
        "N": {0: (3,), 1: (4,), -1: (2,)},
        "O": {0: (2,), -1: (1,), 1: (3,)},
        "F": {0: (1,), 1: (2,)},
        "Si": {0: (4,), -1: (5,), 1: (3,)},
        "P": {0: (3, 5), 1: (4,), -1: (2, 6)},
        "S": {0: (2, 4, 6), 1: (3, 5), -1: (1,)},
        "Cl": {0: (1,), 1: (2,), 2: (3,), 3: (4,)},
        "Ge": {0: (4,)},
        "As": {0: (3, 5), 1: (4,)},
        "Se": {0: (2, 4, 6), 1: (3, 5), -1: (1,)},
        "Br": {0: (1,), 1: (2,), 2: (3,), 3: (4,)},
        "Sn": {0: (4,)},
        "Te": {0: (2, 4, 6), 1: (3, 5), -1: (1,)},
        "I": {0: (1, 3, 5), 1: (2, 4)},
    }
)

# What a charge costs; 1 where it is at home. Only the order of sums matters.
_CHARGE_COSTS = {
    ("B", -1): 1.0,
    ("N", 1): 1.0,
    ("O", -1): 1.0,
    ("P", 1): 1.0,
    ("S", -1): 1.0,
    ("S", 1): 1.1,
    ("Se", 1): 1.1,
    ("N", -1): 1.4,
    ("O", 1): 1.6,
    ("C", -1): 3.0,
    ("C", 1): 4.0,
}
_UNUSUAL_CHARGE = 2.5
_HYPERVALENT_HYDROGEN = 3.0
_AROMATIC_HYDROGEN = 0.01
AROMATIC_ELEMENTS = frozenset({"B", "C", "N", "O", "Si", "P", "S", "Ge", "As", "Se", "Te"})
_CARBANION_HYDROGENS = 1
"""A carbanion with more hydrogens would be a saturated one, which nobody draws: the molecule is a cation then."""


# Charges that chemists draw as a matter of course; a carbanion only where it is an isocyanide's.
_USUAL_CHARGES = frozenset(
    {("B", -1), ("N", 1), ("N", -1), ("O", -1), ("P", 1), ("S", 1), ("S", -1), ("Se", 1), ("Se", -1)}
)


ANY_VALENCE = 12
"""Bonds of an element to which RDKit sets no bound; no compound has more."""


@dataclass(frozen=True)
class AtomKind:
    """A usual way for an atom to be: bonds of total order `least` to `valence`, hydrogens for the rest.

    order: that which one of its localised bonds must have, at least.
    """

    symbol: str
    charge: int
    valence: int
    least: int
    order: int = 0


@dataclass(frozen=True)
class AtomState:
    """One way to complete an atom: charge, hydrogens, and whether one of its aromatic bonds is a double bond."""

    charge: int
    hydrogens: int
    doubled: bool
    cost: float


@cache
def atom_states(symbol: str, localised: int, aromatic: int, highest: int) -> tuple[AtomState, ...]:
    """The states of an atom, cheapest first.

    localised: the sum of the orders of its single, double and triple bonds; aromatic: how many it has besides;
    highest: the highest order among the localised ones.
    """
    states = [
        state
        for charge, valences in element_valences(symbol)
        for doubled in ((False, True) if aromatic else (False,))
        for state in _completed(symbol, charge, valences, localised, aromatic, highest, doubled=doubled)
    ]
    return tuple(sorted(states, key=lambda state: state.cost))


@cache
def usual_states(symbol: str, localised: int, aromatic: int, highest: int) -> tuple[AtomState, ...]:
    """Those of `atom_states` that are of a usual kind."""
    kinds = usual_kinds(symbol)

    def is_usual(state: AtomState) -> bool:
        bonds = localised + aromatic + state.doubled
        return any(
            kind.charge == state.charge
            and kind.valence in (bonds + state.hydrogens, ANY_VALENCE)
            and kind.least <= bonds
            and kind.order <= highest
            for kind in kinds
        )

    return tuple(state for state in atom_states(symbol, localised, aromatic, highest) if is_usual(state))


@cache
def usual_kinds(symbol: str) -> tuple[AtomKind, ...]:
    """The kinds of an element that a decoder may propose.

    Charged atoms have no hydrogens, since an atom that has one can be neutral, and neither has an atom beyond its
    first valence, except in P(=O)H.
    """
    if symbol == "C":
        return AtomKind("C", 0, 4, 0), AtomKind("C", -1, 3, 3, order=3)
    kinds = []
    for charge, valences in element_valences(symbol):
        if charge and (symbol, charge) not in _USUAL_CHARGES:
            continue
        for valence in valences:
            if valence == -1:
                kinds.append(AtomKind(symbol, charge, ANY_VALENCE, 0))
                continue
            least = 0 if not charge and valence == valences[0] else valence
            kinds.append(AtomKind(symbol, charge, valence, least))
            if (symbol, charge, valence) == ("P", 0, 5):
                kinds.append(AtomKind(symbol, charge, valence, least=4, order=2))
    return tuple(kinds)


@cache
def element_symbols() -> frozenset[str]:
    """The symbols of all elements heavier than hydrogen."""
    from rdkit import Chem

    return frozenset(Chem.GetPeriodicTable().GetElementSymbol(number) for number in range(2, 119))


@cache
def element_valences(symbol: str) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Pairs (charge, valences) of an element; one that is not listed above is neutral, as RDKit has it."""
    if symbol in VALENCES:
        return tuple(VALENCES[symbol].items())
    if symbol not in element_symbols():
        raise MoleculeError(Reason.UNKNOWN_ELEMENT, f"{symbol!r} is not an element heavier than hydrogen")
    from rdkit import Chem

    return ((0, tuple(Chem.GetPeriodicTable().GetValenceList(symbol))),)


def _completed(
    symbol: str,
    charge: int,
    valences: tuple[int, ...],
    localised: int,
    aromatic: int,
    highest: int,
    *,
    doubled: bool,
) -> list[AtomState]:
    """The state with as few hydrogens as any of the valences asks for; empty if the bonds exceed them all."""
    used = localised + aromatic + doubled
    if -1 in valences:  # RDKit's mark of an element that may have any valence
        return [AtomState(charge, 0, doubled, 0.0)]
    valence = min((valence for valence in valences if valence >= used), default=None)
    if valence is None:
        return []
    hydrogens = valence - used
    if symbol == "C" and charge == -1 and hydrogens > _CARBANION_HYDROGENS:
        return []
    if aromatic and not _can_be_aromatic(symbol, charge, localised, hydrogens, doubled=doubled):
        return []
    cost = 0.0
    if charge:
        cost = abs(charge) * _CHARGE_COSTS.get((symbol, charge), _UNUSUAL_CHARGE)
    # P(=O)H is common, hydrogen on other atoms above their first valence is not.
    if hydrogens and valence > valences[0] and not (symbol == "P" and localised == 4 and highest == 2):
        cost += _HYPERVALENT_HYDROGEN
    if aromatic and hydrogens and symbol != "C":
        cost += _AROMATIC_HYDROGEN
    return [AtomState(charge, hydrogens, doubled, cost)]


def _can_be_aromatic(symbol: str, charge: int, localised: int, hydrogens: int, *, doubled: bool) -> bool:
    """Whether the atom can lend a p orbital: by a double bond in the ring or beside it, a pair, or a vacancy."""
    if hydrogens > 1 or symbol not in AROMATIC_ELEMENTS:
        return False
    if doubled or localised >= 2 or charge:
        return True
    return symbol not in ("C", "Si", "Ge")


_NET_CHARGE = 100.0
"""Cost of a unit of net charge: more than charges that cancel could ever cost."""
_BESIDE_A_CATION, _BESIDE_A_POSSIBLE_CATION, _ISOCYANIDE = 0.6, 0.8, 0.3
"""What is left of the cost of such an anion."""
_ALTERNATIVES = 48
"""How many structures of one aromatic system are weighed against the rest of the molecule."""


@dataclass(frozen=True)
class Bonds:
    """The bonds of a molecule of n atoms as pairs: localised ones with their order, aromatic ones without."""

    symbols: tuple[str, ...]
    localised: Mapping[tuple[int, int], int]
    aromatic: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Structure:
    """charges and hydrogens: (n,); double_bonds: the aromatic pairs that are double in one Kekule form."""

    charges: tuple[int, ...]
    hydrogens: tuple[int, ...]
    double_bonds: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class _Choice:
    """States for some atoms, with the double bonds among them."""

    cost: float
    charge: int
    states: tuple[tuple[int, AtomState], ...]
    double_bonds: tuple[tuple[int, int], ...] = ()


class StructureSearch:
    """The structures of one molecule, the cheapest first, skipping what the caller refuses.

    usual: only atoms of a usual kind.
    """

    def __init__(self, bonds: Bonds, *, usual: bool = False) -> None:
        states = _discounted(bonds, _usual_states(bonds) if usual else _all_states(bonds))
        systems = _aromatic_systems(bonds)
        self.systems = [frozenset(system) for system in systems]
        inside = {atom for system in systems for atom in system}
        self._alone = [
            [_Choice(state.cost, state.charge, ((atom, state),)) for state in states[atom]]
            for atom in range(len(bonds.symbols))
            if atom not in inside
        ]
        self._stateless = frozenset(atom for atom, own in enumerate(states) if not own)
        self._waiting = [_system_choices(system, bonds.aromatic, states) for system in systems]
        self._known: list[list[_Choice]] = [list(islice(waiting, 1)) for waiting in self._waiting]
        self._size = len(bonds.symbols)
        self._picked: list[_Choice] = []

    def best(self) -> Structure | None:
        """The cheapest structure left, or None."""
        groups = self._known + self._alone
        if not all(groups):
            return None
        picked = [group[0] for group in groups]
        if sum(choice.charge for choice in picked):
            for known, waiting in zip(self._known, self._waiting, strict=True):
                known.extend(islice(waiting, _ALTERNATIVES - len(known)) if len(known) < _ALTERNATIVES else ())
            picked = _balanced(groups)
        self._picked = picked
        states = dict(pair for choice in picked for pair in choice.states)
        return Structure(
            tuple(states[atom].charge for atom in range(self._size)),
            tuple(states[atom].hydrogens for atom in range(self._size)),
            frozenset(bond for choice in picked for bond in choice.double_bonds),
        )

    def impossible(self) -> frozenset[int]:
        """The atoms that have no state, and those of aromatic systems that have no structure left."""
        spent = [system for system, known in zip(self.systems, self._known, strict=True) if not known]
        return frozenset().union(self._stateless, *spent)

    def refuse(self, system: int) -> None:
        """Never again propose what `best` last proposed for the aromatic system."""
        self._known[system].remove(self._picked[system])
        if not self._known[system]:
            self._known[system].extend(islice(self._waiting[system], 1))


def _all_states(bonds: Bonds) -> list[tuple[AtomState, ...]]:
    return [atom_states(*atom) for atom in zip(bonds.symbols, *_orders(bonds), strict=True)]


def _usual_states(bonds: Bonds) -> list[tuple[AtomState, ...]]:
    return [usual_states(*atom) for atom in zip(bonds.symbols, *_orders(bonds), strict=True)]


def _orders(bonds: Bonds) -> tuple[list[int], list[int], list[int]]:
    """(n,) each: the total order of an atom's localised bonds, its aromatic ones, the highest localised order."""
    n = len(bonds.symbols)
    localised, aromatic, highest = [0] * n, [0] * n, [0] * n
    for pair, order in bonds.localised.items():
        for atom in pair:
            localised[atom] += order
            highest[atom] = max(highest[atom], order)
    for pair in bonds.aromatic:
        for atom in pair:
            aromatic[atom] += 1
    return localised, aromatic, highest


def _discounted(bonds: Bonds, states: Sequence[tuple[AtomState, ...]]) -> list[tuple[AtomState, ...]]:
    """The states with anions beside cations costing less, so that charges pair up within a group."""
    n = len(bonds.symbols)
    in_ring = {atom for pair in bonds.aromatic for atom in pair}
    discount = [1.0] * n
    for (first, second), order in bonds.localised.items():
        for anion, cation in ((first, second), (second, first)):
            positive = [state.charge > 0 for state in states[cation]]
            if order == 3 and bonds.symbols[anion] == "C":
                discount[anion] = _ISOCYANIDE
            elif positive and all(positive):
                discount[anion] = min(discount[anion], _BESIDE_A_CATION)
            elif any(positive) and cation in in_ring and bonds.symbols[cation] == "N":
                discount[anion] = min(discount[anion], _BESIDE_A_POSSIBLE_CATION)
    return [
        tuple(
            sorted(
                (replace(state, cost=state.cost * part) if state.charge < 0 else state for state in own),
                key=lambda state: state.cost,
            )
        )
        if part < 1
        else own
        for own, part in zip(states, discount, strict=True)
    ]


def _aromatic_systems(bonds: Bonds) -> list[list[int]]:
    """The sets of atoms that aromatic bonds join."""
    around: dict[int, list[int]] = {}
    for first, second in bonds.aromatic:
        around.setdefault(first, []).append(second)
        around.setdefault(second, []).append(first)
    systems, seen = [], set()
    for start in around:
        if start in seen:
            continue
        system, stack = [], [start]
        seen.add(start)
        while stack:
            atom = stack.pop()
            system.append(atom)
            fresh = [other for other in around[atom] if other not in seen]
            seen.update(fresh)
            stack.extend(fresh)
        systems.append(system)
    return systems


def _system_choices(
    system: Sequence[int], aromatic: Sequence[tuple[int, int]], states: Sequence[tuple[AtomState, ...]]
) -> Iterator[_Choice]:
    """All ways to complete an aromatic system, cheapest first, one Kekule form each; best-first search."""
    position = {atom: at for at, atom in enumerate(system)}
    around: list[list[int]] = [[] for _ in system]
    for first, second in aromatic:
        if first in position:
            around[position[first]].append(position[second])
            around[position[second]].append(position[first])
    plain = [[state for state in states[atom] if not state.doubled] for atom in system]
    doubled = [[state for state in states[atom] if state.doubled] for atom in system]
    if not all(one or two for one, two in zip(plain, doubled, strict=True)):
        return
    cheapest = [min(state.cost for state in one + two) for one, two in zip(plain, doubled, strict=True)]
    empty: tuple[AtomState | None, ...] = (None,) * len(system)
    order = count()
    heap: list[tuple[float, int, tuple[AtomState | None, ...], tuple[tuple[int, int], ...]]]
    heap = [(sum(cheapest), next(order), empty, ())]
    seen = {empty}
    while heap:
        bound, _, chosen, pairs = heapq.heappop(heap)
        free = {at for at, state in enumerate(chosen) if state is None}
        if not free:
            final = [(atom, state) for atom, state in zip(system, chosen, strict=True) if state is not None]
            charge = sum(state.charge for _, state in final)
            ends = tuple((min(system[i], system[j]), max(system[i], system[j])) for i, j in pairs)
            yield _Choice(bound, charge, tuple(final), ends)
            continue
        # The atom with the fewest ways on: dead ends show at once, and chains of forced pairs need no search.
        at = min(
            free,
            key=lambda at: (
                len(plain[at]) + sum(len(doubled[at]) * len(doubled[near]) for near in around[at] if near in free)
            ),
        )
        moves: list[tuple[float, dict[int, AtomState], tuple[tuple[int, int], ...]]] = [
            (state.cost - cheapest[at], {at: state}, pairs) for state in plain[at]
        ]
        for near in around[at]:
            if near in free:
                moves.extend(
                    (
                        one.cost + two.cost - cheapest[at] - cheapest[near],
                        {at: one, near: two},
                        (*pairs, (at, near)),
                    )
                    for one in doubled[at]
                    for two in doubled[near]
                )
        for extra, move, paired in moves:
            after = tuple(move.get(at, state) for at, state in enumerate(chosen))
            if after not in seen:  # atoms paired in another way make the same structure
                seen.add(after)
                heapq.heappush(heap, (bound + extra, next(order), after, paired))


def _balanced(groups: Sequence[Sequence[_Choice]]) -> list[_Choice]:
    """One choice of each group at least total cost, net charge included: dynamic programming over the charge."""
    reached: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for group in groups:
        best: dict[int, tuple[float, tuple[int, ...]]] = {}
        cheapest: dict[int, int] = {}
        for at, choice in enumerate(group):
            if choice.charge not in cheapest or choice.cost < group[cheapest[choice.charge]].cost:
                cheapest[choice.charge] = at
        for net, (cost, path) in reached.items():
            for charge, at in cheapest.items():
                total = cost + group[at].cost
                if net + charge not in best or total < best[net + charge][0]:
                    best[net + charge] = (total, (*path, at))
        reached = best
    net = min(reached, key=lambda net: reached[net][0] + _NET_CHARGE * abs(net))
    return [group[at] for group, at in zip(groups, reached[net][1], strict=True)]
