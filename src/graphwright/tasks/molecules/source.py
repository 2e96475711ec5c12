"""SMILES, their splits and their elements from a file: Parquet, CSV, TSV, one SMILES a line, or CID-SMILES."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from graphwright.files import check_row_counts, sha256_of, shipped_table
from graphwright.graphs.molecules import MoleculeError, parse_smiles
from graphwright.tasks.molecules.prepare.sources import (
    LineReader,
    Source,
    SourceError,
    SourceKind,
    csv_records,
    smiles_column,
)
from graphwright.tasks.split import SPLIT_NAMES, Split, check_names, tenth

MOLECULE_SETS = ("molecules", "qm9")
SPLIT_COLUMN = "split"
TENTHS = {"validation": 8, "test": 9}


@dataclass(frozen=True, eq=False)
class SmilesTable:
    """The rows of a file. smiles: (r,) strings, null where a row has none. split: (r,) names or nulls, or None.

    numbers: (r,) how a person counts the rows, from 1: lines of a file of lines, rows below the header of a table.
    names: (r,) what a file of lines calls its molecules, nothing where it does not; None of other files.
    """

    path: Path
    smiles: pa.StringArray
    split: pa.StringArray | None
    numbers: NDArray[np.int64]
    names: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.smiles)

    def rows(self, split: Split) -> NDArray[np.int64]:
        """Indices of a split's rows: by the file's column, or 80, 10 and 10 % by a hash of the molecule."""
        if self.split is not None:
            check_names(pc.unique(self.split).to_pylist(), SPLIT_COLUMN, self.path)
            wanted = [name for name, meaning in SPLIT_NAMES.items() if meaning == split]
            chosen = pc.is_in(pc.utf8_lower(self.split), pa.array(wanted)).to_numpy(zero_copy_only=False)
            return np.flatnonzero(chosen)
        tenths = self._tenths
        return np.flatnonzero(tenths == TENTHS[split] if split in TENTHS else tenths < min(TENTHS.values()))

    def digest(self) -> str:
        """SHA-256 of the file."""
        return sha256_of(self.path)

    @cached_property
    def _tenths(self) -> NDArray[np.int64]:
        """(r,) a number from 0 to 9, the same for all rows of one molecule however it is written."""
        return np.array([tenth(_molecule_key(text)) for text in self.smiles.to_pylist()], np.int64)


def shipped_data() -> list[str]:
    """Names of the molecules that come with the package."""
    return [name for name in MOLECULE_SETS if shipped_table(name)]


def find_data(name: str) -> Path:
    """The file of a shipped data set's name, or of a path."""
    path = (shipped_table(name) if name in MOLECULE_SETS else None) or Path(name)
    if not path.is_file():
        known = ", ".join(shipped_data()) or "none is installed"
        raise ValueError(f"no data {name!r}: give a file with SMILES, or the name of a data set ({known})")
    return path


def read_smiles(path: Path) -> SmilesTable:
    """The SMILES of a file, whatever of the formats it is in; an error names what was expected."""
    source = Source.of(path)
    try:
        if source.kind is SourceKind.PARQUET:
            table = _parquet(path)
        elif source.kind in _SEPARATORS:
            table = _separated(path, _SEPARATORS[source.kind])
        else:
            table = _lines(source)
    # Two columns of one name are a KeyError; a column's name may be any bytes.
    except (OSError, KeyError, UnicodeDecodeError, pa.ArrowException) as error:
        raise ValueError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not len(table):
        raise ValueError(f"{path} has no rows")
    return table


_SEPARATORS = {SourceKind.CSV: ",", SourceKind.TSV: "\t"}


def _parquet(path: Path) -> SmilesTable:
    check_row_counts(path)
    names = parquet.read_schema(path).names
    wanted = [names[at] for at in (_smiles_column(path, names), _split_column(names)) if at is not None]
    table = parquet.read_table(path, columns=wanted)
    smiles, *split = (table[name].cast(pa.string()).combine_chunks() for name in wanted)
    for column in (smiles, *split):
        column.validate(full=True)  # Parquet's strings may be any bytes
    return SmilesTable(path, smiles, split[0] if split else None, np.arange(1, len(smiles) + 1))


def _separated(path: Path, separator: str) -> SmilesTable:
    """Records below a header; one that is too short, or that no reader can make out, has no SMILES."""
    with closing(LineReader(path)) as lines:
        records = ([""] if record is None else record for record in csv_records(path, iter(lines), separator))
        names = next(records, None)
        if names is None:
            raise ValueError(f"{path} has no rows")
        text_at, split_at = _smiles_column(path, names), _split_column(names)
        rows = [(number, record) for number, record in enumerate(records, 1) if record != []]
    smiles = [_field(record, text_at) for _, record in rows]
    split = None if split_at is None else [_field(record, split_at) for _, record in rows]
    return _table(path, smiles, split, [number for number, _ in rows])


def _field(record: Sequence[str], at: int) -> str | None:
    return record[at].strip() or None if at < len(record) else None


def _lines(source: Source) -> SmilesTable:
    """Lines that are not empty."""
    with closing(source.open()) as lines:
        rows = [(number, row) for number, row in enumerate(lines, 1) if row.text != ""]
    table = _table(source.path, [row.text for _, row in rows], None, [number for number, _ in rows])
    # A line without a name is called after its number, which is no name.
    return replace(table, names=["" if row.id == f"L{number}" else row.id for number, row in rows])


def _table(
    path: Path, smiles: Sequence[str | None], split: Sequence[str | None] | None, numbers: Sequence[int]
) -> SmilesTable:
    return SmilesTable(
        path,
        pa.array(smiles, pa.string()),
        None if split is None else pa.array(split, pa.string()),
        np.array(numbers, np.int64),
    )


def _smiles_column(path: Path, names: Sequence[str]) -> int:
    try:
        return smiles_column(path, names, None)
    except SourceError as error:
        # Its own message names an option of `data prepare`.
        there = ", ".join(_printable(name) for name in names) or "none"
        raise ValueError(f"{path} has no column smiles, only {there}") from error


def _printable(name: str) -> str:
    """Fit for a message: in a file that is no text the names of columns may be anything."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _split_column(names: Sequence[str]) -> int | None:
    return next((at for at, name in enumerate(names) if name.strip().lower() == SPLIT_COLUMN), None)


def _molecule_key(text: str | None) -> str:
    """What all ways to write a molecule, and its stereoisomers, have in common; the text if it is none."""
    from rdkit import Chem

    try:
        return Chem.MolToSmiles(parse_smiles(text or ""), isomericSmiles=False)
    except MoleculeError:
        return text or ""


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
