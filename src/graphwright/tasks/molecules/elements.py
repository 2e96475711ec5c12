"""Which elements a file of SMILES names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_SMILES = re.compile(r"(?:\[[^\]]+\]|Br|Cl|[BCNOPSFIbcnops*]|[-=#$:/\\.()%0-9~])+")
_ATOM = re.compile(r"\[\d*(se|as|te|si|[A-Z][a-z]?|[bcnops])|(Br|Cl|[BCNOPSFI])|([bcnops])")


def elements_of(smiles: Iterable[str | None]) -> tuple[str, ...]:
    """Symbols of the heavy elements that occur, the commonest first; read off the text, without parsing it."""
    counts: Counter[str] = Counter()
    for text in smiles:
        # Other words have letters, too, that would pass for atoms.
        if text and _SMILES.fullmatch(text):
            counts.update(bracket or plain or aromatic for bracket, plain, aromatic in _ATOM.findall(text))
    symbols: Counter[str] = Counter()
    for name, count in counts.items():
        symbols[name.capitalize()] += count
    # Brackets may hold anything.
    for name in symbols.keys() - _heavy_elements():
        del symbols[name]
    return tuple(sorted(symbols, key=lambda name: (-symbols[name], name)))


def _heavy_elements() -> set[str]:
    from rdkit.Chem import GetPeriodicTable

    table = GetPeriodicTable()
    return {table.GetElementSymbol(number) for number in range(2, 119)}
