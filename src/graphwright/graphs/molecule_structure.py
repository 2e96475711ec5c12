"""Lewis structures of a graph of elements and bond types: charges, hydrogens and double bonds, cheapest first.

Outside aromatic systems every atom chooses its state alone. Within one, the atoms with a double bond in the
ring must be paired along aromatic bonds. Atoms and systems meet only in the net charge, which a small dynamic
program keeps at zero where it can.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

from graphwright.graphs.molecule_states import AtomState, atom_states, usual_states

_NET_CHARGE = 100.0
"""Cost of a unit of net charge: more than charges that cancel could ever cost."""
_BESIDE_A_CATION, _BESIDE_A_POSSIBLE_CATION, _ISOCYANIDE = 0.6, 0.8, 0.3
"""What is left of the cost of an anion in such a place."""
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
            after = tuple(move.get(place, state) for place, state in enumerate(chosen))
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
