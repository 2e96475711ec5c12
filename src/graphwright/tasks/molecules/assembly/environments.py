"""The environments that the atoms of a molecule may have, given its fingerprint."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement, product
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from graphwright.tasks.molecules.assembly.alphabet import MOST_NEIGHBOURS, Alphabet, Codes
from graphwright.tasks.molecules.assembly.identifiers import Identifiers, wider_identifiers
from graphwright.tasks.molecules.fingerprint import BITS, BitArray

Half = tuple[int, int, int]
"""Half a bond: the environment of radius 1 that has it, its type, that of the neighbour."""
MOST_COMBINATIONS = 50_000
"""Of neighbours of one atom: with more, those that were met least often are left out."""
UNSEEN = 0.3
"""How often an environment that was never met counts as met."""
SILENT = 3.0
"""What it costs to say that an atom has a bit of radius 2 that the fingerprint does not show."""
INVENTED = 4.0
"""What an environment of radius 1 costs that was never met, besides."""
MOST_INVENTED = 300
"""Environments of radius 1 that are tried though they were never met."""
_INVENTED_SILENT = 200


@dataclass(frozen=True, eq=False)
class Environments:
    """Environments of radius 2, m of them, all of whose bits are on; any molecule is made of these alone.

    narrow: (m,) places in the alphabet of what each is up to radius 1; around: for each, the (bond, narrow) of its
    neighbours, sorted; bits: for each, those that it explains; costs: (m,) how unusual it is, in nats.
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


def environments_of(asked: BitArray, alphabet: Alphabet, *, inventive: bool = False) -> Environments:
    """What the atoms of a molecule with exactly these bits may be.

    Every bit of an environment must be on; and every neighbour that one asks for must be offered by another, which
    is repeated until nothing more goes. Environments of radius 1 are those of the alphabet; if `inventive`, also
    those that its atoms and bonds could make.
    """
    on = np.zeros(BITS, bool)
    on[asked] = True
    if inventive:
        alphabet = _extended(alphabet, on)
    narrow = _consistent(_present(on, alphabet), alphabet)
    rows = _wide(narrow, on, alphabet, inventive=inventive)
    rows = _supported(rows)
    met = np.array([row.met for row in rows], np.float64)
    total = float(alphabet.counts.sum())
    costs = np.log(total) - np.log(np.maximum(met, UNSEEN)) + SILENT * np.array([row.silent for row in rows])
    costs += INVENTED * (alphabet.counts[[row.narrow for row in rows]] == 0)
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
    met: int
    silent: bool

    @property
    def halves(self) -> list[Half]:
        """Its half bonds."""
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


def _extended(alphabet: Alphabet, on: NDArray[np.bool_]) -> Alphabet:
    """The alphabet with environments of radius 1 that were never met, but whose every bond was, the likeliest.

    An atom keeps to a set of bonds that it was met with; its neighbours are any atoms that are on.
    """
    atoms = on[alphabet.atom_ids % BITS]
    pairs: dict[tuple[int, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for column in range(MOST_NEIGHBOURS):
        bonds, there = alphabet.bonds[:, column], alphabet.neighbours[:, column]
        rows = np.flatnonzero((bonds > 0) & atoms[alphabet.centres] & atoms[there])
        for row in rows.tolist():
            pairs[int(alphabet.centres[row]), int(bonds[row])][int(there[row])] += int(alphabet.counts[row])
    usable = np.flatnonzero(atoms[alphabet.centres])
    patterns = np.unique(np.column_stack([alphabet.centres[usable], alphabet.bonds[usable]]), axis=0)
    centres, all_bonds, all_neighbours, scores = [], [], [], []
    for centre, *padded in patterns.tolist():
        bonds = [bond for bond in padded if bond]
        degree = len(bonds)
        choices = [sorted(pairs[centre, bond], key=lambda other: -pairs[centre, bond][other]) for bond in bonds]
        choices = _fewer(choices, [1] * degree)
        picked = np.array(list(product(*choices)), np.int64).reshape(-1, degree)
        if not len(picked):
            continue
        row = np.zeros((len(picked), MOST_NEIGHBOURS), np.int64)
        row[:, :degree] = bonds
        there = np.zeros((len(picked), MOST_NEIGHBOURS), np.int64)
        there[:, :degree] = picked
        own = np.full(len(picked), alphabet.atom_ids[centre], np.uint32)
        identifiers = wider_identifiers(1, own, row, alphabet.atom_ids[there])
        fresh = np.flatnonzero(on[identifiers % BITS] & ~np.isin(identifiers, alphabet.ids))
        fresh = fresh[np.unique(identifiers[fresh], return_index=True)[1]]
        logs = [
            sum(
                float(np.log(pairs[centre, bond][other] / sum(pairs[centre, bond].values())))
                for bond, other in zip(bonds, picked[at].tolist(), strict=True)
            )
            for at in fresh.tolist()
        ]
        centres += [centre] * len(fresh)
        all_bonds.append(row[fresh])
        all_neighbours.append(there[fresh])
        scores += logs
    if not centres:
        return alphabet
    best = np.argsort(-np.array(scores), kind="stable")[:MOST_INVENTED]
    return replace(
        alphabet,
        centres=np.concatenate([alphabet.centres, np.array(centres)[best]]),
        bonds=np.concatenate([alphabet.bonds, np.concatenate(all_bonds)[best]]),
        neighbours=np.concatenate([alphabet.neighbours, np.concatenate(all_neighbours)[best]]),
        counts=np.concatenate([alphabet.counts, np.zeros(len(best), np.int64)]),
    )


def _wide(narrow: Codes, on: NDArray[np.bool_], alphabet: Alphabet, *, inventive: bool) -> list[_Row]:
    """All ways to give an environment of radius 1 neighbours of radius 1, if its bit of radius 2 is then on."""
    offers: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for place in narrow.tolist():
        centre = int(alphabet.centres[place])
        slots = zip(alphabet.bonds[place].tolist(), alphabet.neighbours[place].tolist(), strict=True)
        for bond, other in {slot for slot in slots if slot[0]}:
            offers[centre, bond, other].append(place)
    for places in offers.values():
        places.sort(key=lambda place: -alphabet.counts[place])
    rows: list[_Row] = []
    for place in narrow.tolist():
        rows += _widened(place, offers, on, alphabet, inventive=inventive)
    return rows


def _widened(
    place: int,
    offers: dict[tuple[int, int, int], list[int]],
    on: NDArray[np.bool_],
    alphabet: Alphabet,
    *,
    inventive: bool,
) -> list[_Row]:
    centre = int(alphabet.centres[place])
    slots: dict[tuple[int, int], int] = defaultdict(int)
    for bond, other in zip(alphabet.bonds[place].tolist(), alphabet.neighbours[place].tolist(), strict=True):
        if bond:
            slots[bond, other] += 1
    choices = [offers[other, bond, centre] for bond, other in slots]
    choices = _fewer(choices, list(slots.values()))
    ways = [
        list(combinations_with_replacement(options, count))
        for options, count in zip(choices, slots.values(), strict=True)
    ]
    bonds = np.repeat([bond for bond, _ in slots], list(slots.values()))
    picked = np.array([sum(way, ()) for way in product(*ways)], np.int64).reshape(-1, len(bonds))
    own = np.full(len(picked), alphabet.ids[place], np.uint32)
    wide: Identifiers = wider_identifiers(2, own, np.broadcast_to(bonds, picked.shape), alphabet.ids[picked])
    met = alphabet.met(wide)
    shown = on[wide % BITS]
    if len(bonds) == 1:
        # All bonds around an end atom are its neighbour's: RDKit never gives it a bit of radius 2.
        kept, silent = np.ones(len(wide), bool), np.zeros(len(wide), bool)
    else:
        # Without a bit nothing speaks for an environment that was never met; there would be too many.
        likely = (met > 0) | (inventive and len(picked) <= _INVENTED_SILENT)
        silent = ~shown & likely & _may_be_silent(place, picked, alphabet)
        kept = shown | silent
    return [
        _Row(
            place,
            tuple(sorted(zip(bonds.tolist(), picked[at].tolist(), strict=True))),
            int(wide[at]),
            int(met[at]),
            bool(silent[at]),
        )
        for at in np.flatnonzero(kept)
    ]


def _fewer(choices: list[list[int]], counts: list[int]) -> list[list[int]]:
    """The choices, the longest cut until there are few enough combinations."""
    choices = list(choices)
    while (
        prod(comb(len(own) + count - 1, count) for own, count in zip(choices, counts, strict=True))
        > MOST_COMBINATIONS
    ):
        longest = max(range(len(choices)), key=lambda at: len(choices[at]))
        choices[longest] = choices[longest][: len(choices[longest]) * 3 // 4]
    return choices


def _may_be_silent(place: int, picked: Codes, alphabet: Alphabet) -> NDArray[np.bool_]:
    """(c,) whether another atom may have the same bonds around it, with these neighbours.

    That takes rings of three or four atoms, or a molecule that is two atoms with their end atoms: all neighbours
    but one are end atoms, or in a ring as the atom is.
    """
    end = (alphabet.bonds[picked] > 0).sum(2) == 1
    ring = alphabet.atoms[alphabet.centres[picked], 4] > 0
    in_ring = bool(alphabet.atoms[alphabet.centres[place], 4])
    others: NDArray[np.bool_] = (~(end | (ring & in_ring))).sum(1) <= 1
    return others


def _supported(rows: list[_Row]) -> list[_Row]:
    """Those whose every half bond has its other half."""
    while True:
        halves = {half for row in rows for half in row.halves}
        kept = [row for row in rows if all((other, bond, own) in halves for own, bond, other in row.halves)]
        if len(kept) == len(rows):
            return rows
        rows = kept
