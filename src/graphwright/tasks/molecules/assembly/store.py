"""The alphabet that comes with the package, and how it is made from the training molecules of data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from graphwright.files import SHIPPED_DATA, sha256_of, write_json
from graphwright.graphs.molecules import MoleculeError, parse_smiles
from graphwright.tasks.molecules.assembly.alphabet import Alphabet, make_alphabet
from graphwright.tasks.molecules.source import SmilesTable, find_data, read_smiles

if TYPE_CHECKING:
    from rdkit.Chem import Mol

SHIPPED_ALPHABET = SHIPPED_DATA / "environments.npz"


@cache
def shipped_alphabet() -> Alphabet:
    """Of the training splits of the shipped molecules; read once."""
    if not SHIPPED_ALPHABET.is_file():
        raise ValueError(
            f"there is no {SHIPPED_ALPHABET}: graphwright data environments makes it from the shipped molecules"
        )
    return Alphabet.load(SHIPPED_ALPHABET)


@cache
def alphabet_of(symbols: tuple[str, ...]) -> Alphabet:
    """The part of the shipped alphabet that is made of these elements."""
    from rdkit.Chem import GetPeriodicTable

    table = GetPeriodicTable()
    return shipped_alphabet().of_elements(table.GetAtomicNumber(symbol) for symbol in symbols)


def write_alphabet(names: Sequence[str], out: Path, advance: Callable[[int, int], None]) -> Alphabet:
    """Make the alphabet of the training splits of data sets, by name or file, and write it with its record.

    advance: is told how many molecules were read, of how many. Validation and test molecules are never looked at.
    """
    from rdkit import rdBase

    tables = [read_smiles(find_data(name)) for name in names]
    counts = [0, 0]
    alphabet = make_alphabet(_training_molecules(tables, counts, advance))
    out.parent.mkdir(parents=True, exist_ok=True)
    alphabet.save(out)
    record = {
        "data": {table.path.name: table.digest() for table in tables},
        "split": "train",
        "molecules": counts[0],
        "unusable": counts[1],
        "atoms": len(alphabet.atoms),
        "environments of radius 1": len(alphabet),
        "environments of radius 2": len(alphabet.wide.ids),
        "ring systems": len(alphabet.rings.ids),
        "rdkit": rdBase.rdkitVersion,
        "sha256": sha256_of(out),
    }
    write_json(out.with_suffix(".json"), record)
    return alphabet


def _training_molecules(
    tables: Sequence[SmilesTable], counts: list[int], advance: Callable[[int, int], None]
) -> Iterator[Mol]:
    """Every molecule of the training splits; `counts` says how many could be read, and how many could not."""
    rows = [table.rows("train") for table in tables]
    total = sum(map(len, rows))
    for table, own in zip(tables, rows, strict=True):
        for row in own.tolist():
            try:
                molecule = parse_smiles(table.smiles[row].as_py() or "")
            except MoleculeError:
                counts[1] += 1
            else:
                counts[0] += 1
                yield molecule
            if sum(counts) % 1000 == 0:
                advance(sum(counts), total)
