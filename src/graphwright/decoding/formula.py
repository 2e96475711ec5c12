"""Molecular formulas, as a constraint on decoding."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from graphwright.graphs import Vocabulary

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
