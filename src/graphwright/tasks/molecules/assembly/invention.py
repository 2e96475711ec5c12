"""Environments of radius 1 that were never met, but that known atoms and bonds could make."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import comb, log, prod

import numpy as np
from numpy.typing import NDArray

from graphwright.tasks.molecules.assembly.alphabet import MOST_NEIGHBOURS, Alphabet, Codes
from graphwright.tasks.molecules.assembly.identifiers import Identifiers, wider_identifiers
from graphwright.tasks.molecules.fingerprint import BITS

MOST_INVENTED = 300
"""Environments that are tried though they were never met."""
MOST_COMBINATIONS = 50_000
"""Of neighbours of one atom: with more, those that were met least often are left out."""

Partners = Mapping[tuple[int, int], Counter[int]]
"""By atom and bond: the atoms at its other end, and how often each was met there."""


@dataclass(frozen=True, eq=False)
class _Invented:
    """Environments around one atom with one set of bonds: bonds and neighbours (c, 6), likelihood (c,) in nats."""

    centre: int
    bonds: Codes
    neighbours: Codes
    likelihood: NDArray[np.float64]


def with_invented(alphabet: Alphabet, on: NDArray[np.bool_]) -> Alphabet:
    """The alphabet with the likeliest environments that were never met and whose bits are on (2048,).

    An atom keeps to a set of bonds that it was met with, and each bond to atoms that were met at its ends.
    """
    found = list(_inventions(alphabet, on))
    if not found:
        return alphabet
    likelihood = np.concatenate([each.likelihood for each in found])
    best = np.argsort(-likelihood, kind="stable")[:MOST_INVENTED]
    centres = np.concatenate([np.full(len(each.bonds), each.centre) for each in found])[best]
    bonds = np.concatenate([each.bonds for each in found])[best]
    neighbours = np.concatenate([each.neighbours for each in found])[best]
    return replace(
        alphabet,
        centres=np.concatenate([alphabet.centres, centres]),
        bonds=np.concatenate([alphabet.bonds, bonds]),
        neighbours=np.concatenate([alphabet.neighbours, neighbours]),
        counts=np.concatenate([alphabet.counts, np.zeros(len(best), np.int64)]),
    )


def _inventions(alphabet: Alphabet, on: NDArray[np.bool_]) -> Iterator[_Invented]:
    atoms = on[alphabet.atom_ids % BITS]
    partners = _partners(alphabet, atoms)
    usable = atoms[alphabet.centres]
    patterns = np.unique(np.column_stack([alphabet.centres, alphabet.bonds])[usable], axis=0)
    for centre, *padded in patterns.tolist():
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
    """The places of those that are on and not in the alphabet, each once."""
    places = np.flatnonzero(on[identifiers % BITS] & ~np.isin(identifiers, alphabet.ids))
    _, first = np.unique(identifiers[places], return_index=True)
    return places[first]


def fewer(choices: list[list[int]], counts: list[int] | None = None) -> list[list[int]]:
    """Choices for kinds of place, so many of each, the longest cut until there are few enough combinations."""
    choices = list(choices)
    places = counts or [1] * len(choices)
    while (
        prod(comb(len(own) + count - 1, count) for own, count in zip(choices, places, strict=True))
        > MOST_COMBINATIONS
    ):
        longest = max(range(len(choices)), key=lambda at: len(choices[at]))
        choices[longest] = choices[longest][: len(choices[longest]) * 3 // 4]
    return choices
