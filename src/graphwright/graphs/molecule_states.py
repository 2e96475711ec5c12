"""The charges and hydrogens that an atom can have, given its element and its bonds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from graphwright.graphs.molecule_error import MoleculeError, Reason

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
_STRANGE_CHARGE = 2.5
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
        cost = abs(charge) * _CHARGE_COSTS.get((symbol, charge), _STRANGE_CHARGE)
    # P(=O)H is common, hydrogen on other atoms beyond their first valence is not.
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
