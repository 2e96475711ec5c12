"""Molecular formulas: reading, writing, adding, mass."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from graphwright.spectra.elements import MASS, VALENCE

_TOKEN = re.compile(r"([A-Z][a-z]?)([0-9]*)|(\()|\)([0-9]*)")
# Digits before the sign belong to the charge only after a bracket or a caret: C5H12N2+ has two nitrogens.
_CHARGE = re.compile(r"(?:\]\^?[0-9]*|\^[0-9]*)?[+-]+[0-9]*$")
MOST_ATOMS = 100_000


@dataclass(frozen=True)
class Formula:
    """Atoms of a molecule or ion, (element, count) in Hill order, counts positive."""

    counts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Formula:
        """From counts by element; elements of count 0 are left out, negative counts refused."""
        for element, count in counts.items():
            if element not in MASS:
                raise ValueError(f"unknown element {element!r}")
            if count < 0:
                raise ValueError(f"{-count} more {element} taken away than there are")
        carbon = counts.get("C", 0) > 0
        order = sorted(counts, key=lambda element: (carbon and "CH".find(element) % 3, element))
        return cls(tuple((element, counts[element]) for element in order if counts[element]))

    def count(self, element: str) -> int:
        """Number of atoms of an element."""
        return dict(self.counts).get(element, 0)

    @property
    def mass(self) -> float:
        """Monoisotopic mass in Da of the neutral atoms."""
        return sum(MASS[element] * count for element, count in self.counts)

    @property
    def double_bond_equivalents(self) -> float:
        """Rings and double bonds, 1 + sum of count * (valence - 2) / 2; a half for an even-electron ion."""
        return 1 + sum(count * (VALENCE[element] - 2) for element, count in self.counts) / 2

    def __str__(self) -> str:
        return "".join(f"{element}{count if count > 1 else ''}" for element, count in self.counts)

    def __add__(self, other: Formula) -> Formula:
        return Formula.of(Counter(dict(self.counts)) + Counter(dict(other.counts)))

    def __sub__(self, other: Formula) -> Formula:
        counts = dict(self.counts)
        for element, count in other.counts:
            counts[element] = counts.get(element, 0) - count
        return Formula.of(counts)

    def __mul__(self, times: int) -> Formula:
        return Formula.of({element: times * count for element, count in self.counts})


def parse_formula(text: str) -> Formula:
    """`C9H8O4`; also `Ca(OH)2`, salts, `C6H7N.2ClH`, and a written charge, `[C5H12N]+`, which is ignored."""
    whole = _CHARGE.sub("", text.strip())
    whole = whole.removeprefix("[") if whole.count("[") > whole.count("]") else whole
    total: Counter[str] = Counter()
    for part in re.split(r"[.·*]", whole):
        times = re.match(r"[0-9]*", part)
        assert times is not None
        atoms = _parse_part(part[times.end() :], text)
        for element, count in atoms.items():
            total[element] += count * _number(times.group(), text)
    if not any(total.values()):
        raise ValueError(f"formula {_shown(text)} has no atoms")
    if sum(total.values()) > MOST_ATOMS:
        raise ValueError(f"formula {_shown(text)} has more than {MOST_ATOMS:,} atoms")
    return Formula.of(total)


def _parse_part(part: str, text: str) -> Counter[str]:
    """Counts of one part of a formula, without dots; `text` is the whole, for messages."""
    stack: list[Counter[str]] = [Counter()]
    at = 0
    while at < len(part):
        found = _TOKEN.match(part, at)
        if not found:
            raise ValueError(f"formula {_shown(text)} cannot be read at {part[at : at + 8]!r}")
        element, number, opened, closed = found.groups()
        if element and element not in MASS:
            raise ValueError(f"formula {_shown(text)} has an unknown element {element!r}")
        if element:
            stack[-1][element] += _number(number, text)
        elif opened:
            stack.append(Counter())
        elif len(stack) == 1:
            raise ValueError(f"formula {_shown(text)} closes a bracket that it did not open")
        else:
            inner = stack.pop()
            for name, count in inner.items():
                stack[-1][name] += count * _number(closed, text)
        at = found.end()
    if len(stack) > 1 or not stack[0]:
        raise ValueError(
            f"formula {_shown(text)} " + ("opens a bracket too many" if len(stack) > 1 else "is empty")
        )
    return stack[0]


def _number(digits: str, text: str) -> int:
    if len(digits) > 6:
        raise ValueError(f"formula {_shown(text)} has more than {MOST_ATOMS:,} atoms")
    return int(digits) if digits else 1


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
