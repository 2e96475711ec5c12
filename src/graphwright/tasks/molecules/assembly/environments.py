"""The environments that the atoms of a molecule may have, given its fingerprint; also some that were never met."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement, product
from math import comb, inf, log, prod

import numpy as np
from numpy.typing import NDArray

from graphwright.tasks.molecules.assembly.alphabet import (
    MOST_NEIGHBOURS,
    Alphabet,
    Codes,
    Identifiers,
    wider_identifiers,
)
from graphwright.tasks.molecules.fingerprint import BITS, BitArray

MOST_INVENTED = 300
"""Environments that are tried though they were never met."""
MOST_COMBINATIONS = 50_000
"""Combinations of an atom's neighbours; of more, those met least often are left out."""

Partners = Mapping[tuple[int, int], Counter[int]]
"""By atom and bond: the atoms at its other end, and how often each was met there."""


@dataclass(frozen=True, eq=False)
class _Invented:
    """Environments around one atom with one set of bonds: bonds and neighbours (c, 6), likelihood (c,) in nats."""

    centre: int
    bonds: Codes
    neighbours: Codes
    likelihood: NDArray[np.float64]


def with_invented(alphabet: Alphabet, on: NDArray[np.bool_], deadline: float = inf) -> Alphabet:
    """The alphabet with the likeliest environments that were never met and whose bits are on (2048,).

    An atom keeps to a set of bonds that it was met with, and each bond to atoms that were met at its ends.
    After the deadline (of `perf_counter`) a TimeoutError is raised.
    """
    invented = list(_inventions(alphabet, on, deadline))
    if not invented:
        return alphabet
    likelihood = np.concatenate([each.likelihood for each in invented])
    best = np.argsort(-likelihood, kind="stable")[:MOST_INVENTED]
    centres = np.concatenate([np.full(len(each.bonds), each.centre) for each in invented])[best]
    bonds = np.concatenate([each.bonds for each in invented])[best]
    neighbours = np.concatenate([each.neighbours for each in invented])[best]
    return replace(
        alphabet,
        centres=np.concatenate([alphabet.centres, centres]),
        bonds=np.concatenate([alphabet.bonds, bonds]),
        neighbours=np.concatenate([alphabet.neighbours, neighbours]),
        counts=np.concatenate([alphabet.counts, np.zeros(len(best), np.int64)]),
    )


def _inventions(alphabet: Alphabet, on: NDArray[np.bool_], deadline: float) -> Iterator[_Invented]:
    atoms = on[alphabet.atom_ids % BITS]
    partners = _partners(alphabet, atoms)
    usable = atoms[alphabet.centres]
    patterns = np.unique(np.column_stack([alphabet.centres, alphabet.bonds])[usable], axis=0)
    for centre, *padded in patterns.tolist():
        _refuse_lateness(deadline)
        bonds = [bond for bond in padded if bond]
        shares = [_shares(partners[centre, bond]) for bond in bonds]
        ways = np.array(list(product(*fewer([list(each) for each in shares]))), np.int64)
        if not ways.size:
            continue
        types, there = (np.zeros((len(ways), MOST_NEIGHBOURS), np.int64) for _ in range(2))
        types[:, : len(bonds)], there[:, : len(bonds)] = bonds, ways
        own = np.full(len(ways), alphabet.atom_ids[centre], np.uint32)
        fresh = _fresh(wider_identifiers(1, own, types, alphabet.atom_ids[there]), alphabet, on)
        likelihood = [
            sum(share[other] for share, other in zip(shares, way, strict=True)) for way in ways[fresh].tolist()
        ]
        yield _Invented(centre, types[fresh], there[fresh], np.array(likelihood, np.float64))


def _partners(alphabet: Alphabet, atoms: NDArray[np.bool_]) -> Partners:
    partners: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for bonds, there in zip(alphabet.bonds.T, alphabet.neighbours.T, strict=True):
        rows = np.flatnonzero((bonds > 0) & atoms[alphabet.centres] & atoms[there])
        columns = (each[rows].tolist() for each in (alphabet.centres, bonds, there, alphabet.counts))
        for centre, bond, other, count in zip(*columns, strict=True):
            partners[centre, bond][other] += count
    return partners


def _shares(partners: Counter[int]) -> dict[int, float]:
    """The logarithm of each one's share, the commonest first."""
    total = partners.total()
    return {other: log(count / total) for other, count in partners.most_common()}


def _fresh(identifiers: Identifiers, alphabet: Alphabet, on: NDArray[np.bool_]) -> Codes:
    """The indices of those that are on and not in the alphabet, each once."""
    indices = np.flatnonzero(on[identifiers % BITS] & ~np.isin(identifiers, alphabet.ids))
    _, first = np.unique(identifiers[indices], return_index=True)
    return indices[first]


def fewer(choices: list[list[int]], counts: list[int] | None = None) -> list[list[int]]:
    """Choices for kinds of position, so many of each, the longest cut until there are few enough combinations."""
    choices = list(choices)
    numbers = counts or [1] * len(choices)
    while (
        prod(comb(len(own) + count - 1, count) for own, count in zip(choices, numbers, strict=True))
        > MOST_COMBINATIONS
    ):
        longest = max(range(len(choices)), key=lambda at: len(choices[at]))
        choices[longest] = choices[longest][: len(choices[longest]) * 3 // 4]
    return choices


Half = tuple[int, int, int]
"""Half a bond: the environment of radius 1 that has it, its type, that of the neighbour."""
SILENT = 3.0
"""What it costs to say that an atom has a bit of radius 2 that the fingerprint does not show."""
INVENTED = 4.0
"""What an environment of radius 1 costs that was never met, besides."""
_FEW = 200
"""Ways to surround an atom, up to which they may be without a bit though they were never met."""


@dataclass(frozen=True, eq=False)
class Environments:
    """Environments of radius 2, m of them, all of whose bits are on; any molecule is made of these alone.

    narrow: (m,) indices in the alphabet of what each is up to radius 1; around: for each, the (bond, narrow) of
    its neighbours, sorted; bits: for each, those that it explains; costs: (m,) how unusual it is, in nats.
    """

    alphabet: Alphabet
    asked: BitArray
    narrow: tuple[int, ...]
    around: tuple[tuple[tuple[int, int], ...], ...]
    bits: tuple[frozenset[int], ...]
    costs: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.narrow)

    @cached_property
    def unexplained(self) -> frozenset[int]:
        """Bits that none of them has: with one, no molecule can be made."""
        return frozenset(self.asked.tolist()).difference(*self.bits)


def environments_of(
    asked: BitArray, alphabet: Alphabet, *, inventive: bool = False, deadline: float = inf
) -> Environments:
    """What the atoms of a molecule with exactly these bits may be.

    Every bit of an environment must be on; and every neighbour that one asks for must be offered by another, which
    is repeated until nothing more goes. Environments of radius 1 are those of the alphabet; if `inventive`, also
    those that its atoms and bonds could make. After the deadline (of `perf_counter`) a TimeoutError is raised: a
    part of them would stand for other molecules than were asked for.
    """
    on = np.zeros(BITS, bool)
    on[asked] = True
    if inventive:
        alphabet = with_invented(alphabet, on, deadline)
    narrow = _consistent(_present(on, alphabet), alphabet)
    rows = _wide(narrow, on, alphabet, deadline, inventive=inventive)
    rows = _supported(rows, deadline)
    costs = alphabet.wide.costs(np.array([row.wide for row in rows], np.uint32))
    costs += SILENT * np.array([row.silent for row in rows])
    costs += INVENTED * (alphabet.counts[np.array([row.narrow for row in rows], np.int64)] == 0)
    return Environments(
        alphabet,
        asked,
        tuple(row.narrow for row in rows),
        tuple(row.around for row in rows),
        tuple(_bits(row, alphabet) for row in rows),
        costs,
    )


@dataclass(frozen=True)
class _Row:
    """An environment; silent: its bit of radius 2 is not on, because another environment has the same bonds."""

    narrow: int
    around: tuple[tuple[int, int], ...]
    wide: int
    silent: bool

    @property
    def halves(self) -> list[Half]:
        return [(self.narrow, *each) for each in self.around]


def _bits(row: _Row, alphabet: Alphabet) -> frozenset[int]:
    bits = {int(alphabet.atom_ids[alphabet.centres[row.narrow]]) % BITS, int(alphabet.ids[row.narrow]) % BITS}
    return frozenset(bits if row.silent or len(row.around) == 1 else bits | {row.wide % BITS})


def _present(on: NDArray[np.bool_], alphabet: Alphabet) -> Codes:
    """Environments of radius 1 whose bit, and whose atoms' bits, are on."""
    atoms = on[alphabet.atom_ids % BITS]
    around = (atoms[alphabet.neighbours] | (alphabet.bonds == 0)).all(1)
    return np.flatnonzero(atoms[alphabet.centres] & around & on[alphabet.ids % BITS])


def _consistent(narrow: Codes, alphabet: Alphabet) -> Codes:
    """Those whose every neighbour is the centre of another that has the bond, too."""
    while True:
        bonds = alphabet.bonds[narrow]
        here = alphabet.centres[narrow][:, None]
        there = alphabet.neighbours[narrow]
        forward = (here * 16 + bonds) * 256 + there
        backward = (there * 16 + bonds) * 256 + here
        fine = (np.isin(backward, forward[bonds > 0]) | (bonds == 0)).all(1)
        if fine.all():
            return narrow
        narrow = narrow[fine]


def _wide(
    narrow: Codes, on: NDArray[np.bool_], alphabet: Alphabet, deadline: float, *, inventive: bool
) -> list[_Row]:
    """All ways to give an environment of radius 1 neighbours of radius 1, if its bit of radius 2 is then on."""
    offers: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for index in narrow.tolist():
        centre = int(alphabet.centres[index])
        slots = zip(alphabet.bonds[index].tolist(), alphabet.neighbours[index].tolist(), strict=True)
        for bond, other in {slot for slot in slots if slot[0]}:
            offers[centre, bond, other].append(index)
    for indices in offers.values():
        indices.sort(key=lambda index: -alphabet.counts[index])
    rows: list[_Row] = []
    for index in narrow.tolist():
        _refuse_lateness(deadline)
        rows += _widened(index, offers, on, alphabet, inventive=inventive)
    return rows


def _widened(
    index: int,
    offers: dict[tuple[int, int, int], list[int]],
    on: NDArray[np.bool_],
    alphabet: Alphabet,
    *,
    inventive: bool,
) -> list[_Row]:
    centre = int(alphabet.centres[index])
    slots: dict[tuple[int, int], int] = defaultdict(int)
    for bond, other in zip(alphabet.bonds[index].tolist(), alphabet.neighbours[index].tolist(), strict=True):
        if bond:
            slots[bond, other] += 1
    choices = fewer([offers[other, bond, centre] for bond, other in slots], list(slots.values()))
    ways = [
        list(combinations_with_replacement(options, count))
        for options, count in zip(choices, slots.values(), strict=True)
    ]
    bonds = np.repeat([bond for bond, _ in slots], list(slots.values()))
    picked = np.array([sum(way, ()) for way in product(*ways)], np.int64).reshape(-1, len(bonds))
    own = np.full(len(picked), alphabet.ids[index], np.uint32)
    wide: Identifiers = wider_identifiers(2, own, np.broadcast_to(bonds, picked.shape), alphabet.ids[picked])
    met = alphabet.wide.met(wide)
    shown = on[wide % BITS]
    if len(bonds) == 1:
        # All bonds around an end atom are its neighbour's: RDKit never gives it a bit of radius 2.
        kept, silent = np.ones(len(wide), bool), np.zeros(len(wide), bool)
    else:
        # Without a bit nothing speaks for an environment that was never met; there would be too many.
        likely = (met > 0) | (inventive and len(picked) <= _FEW)
        silent = ~shown & likely & _may_be_silent(index, picked, alphabet)
        kept = shown | silent
    return [
        _Row(
            index,
            tuple(sorted(zip(bonds.tolist(), picked[at].tolist(), strict=True))),
            int(wide[at]),
            bool(silent[at]),
        )
        for at in np.flatnonzero(kept)
    ]


def _may_be_silent(index: int, picked: Codes, alphabet: Alphabet) -> NDArray[np.bool_]:
    """(c,) whether another atom may have the same bonds around it, with these neighbours.

    That takes rings of three or four atoms, or a molecule that is two atoms with their end atoms: all neighbours
    but one are end atoms, or in a ring as the atom is.
    """
    end = (alphabet.bonds[picked] > 0).sum(2) == 1
    ring = alphabet.atoms[alphabet.centres[picked], 4] > 0
    in_ring = bool(alphabet.atoms[alphabet.centres[index], 4])
    others: NDArray[np.bool_] = (~(end | (ring & in_ring))).sum(1) <= 1
    return others


def _supported(rows: list[_Row], deadline: float) -> list[_Row]:
    """Those whose every half bond has its other half."""
    while True:
        _refuse_lateness(deadline)
        halves = {half for row in rows for half in row.halves}
        kept = [row for row in rows if all((other, bond, own) in halves for own, bond, other in row.halves)]
        if len(kept) == len(rows):
            return rows
        rows = kept


def _refuse_lateness(deadline: float) -> None:
    if time.perf_counter() > deadline:
        raise TimeoutError("there was no time to list the environments that a fingerprint allows")
