"""SMILES and their splits from a file: Parquet, CSV, TSV or one SMILES a line."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv, parquet

from graphwright.tasks.split import SPLITS, Split

SHIPPED = Path(__file__).parents[2] / "data"
"""Data sets that come with the package, a Parquet file each."""
NAMES = {"train": "train", "training": "train", "val": "validation", "valid": "validation",
         "validation": "validation", "dev": "validation", "test": "test"}  # fmt: skip
"""What a split may be called in a file."""
TENTHS = {"validation": 8, "test": 9}
COLUMNS = ("smiles", "canonical_smiles", "isosmiles")
SMILES_LINES = (".smi", ".smiles", ".txt", ".ism")


@dataclass(frozen=True, eq=False)
class SmilesTable:
    """The rows of a file. smiles: (r,) strings, null where a row has none. split: (r,) names or nulls, or None.

    unreadable: lines of the file that are no rows at all.
    """

    path: Path
    smiles: pa.StringArray
    split: pa.StringArray | None
    unreadable: int = 0

    def __len__(self) -> int:
        return len(self.smiles)

    def rows(self, split: Split) -> NDArray[np.int64]:
        """Indices of a split's rows: by the file's column, or 80, 10 and 10 % by a hash of the SMILES."""
        if self.split is not None:
            wanted = [name for name, meaning in NAMES.items() if meaning == split]
            chosen = pc.is_in(pc.utf8_lower(self.split), pa.array(wanted)).to_numpy(zero_copy_only=False)
            return np.flatnonzero(chosen)
        tenth = np.array([_tenth(text) for text in self.smiles.to_pylist()], np.int64)
        return np.flatnonzero(tenth == TENTHS[split] if split in TENTHS else tenth < min(TENTHS.values()))

    def digest(self) -> str:
        """SHA-256 of the file."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def shipped_data() -> list[str]:
    """Names of the data sets that come with the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.parquet"))


def find_data(name: str) -> Path:
    """The file of a shipped data set's name, or of a path."""
    path = SHIPPED / f"{name}.parquet" if name in shipped_data() else Path(name)
    if not path.is_file():
        known = ", ".join(shipped_data()) or "none is installed"
        raise ValueError(f"no data {name!r}: give a file with SMILES, or the name of a data set ({known})")
    return path


def read_smiles(path: Path) -> SmilesTable:
    """The SMILES of a file, whatever of the formats it is in; an error names what was expected."""
    readers: dict[str, Callable[[Path], SmilesTable]] = {".parquet": _parquet, ".csv": _csv, ".tsv": _csv}
    readers |= dict.fromkeys(SMILES_LINES, _lines)
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise ValueError(f"{path}: expected a file of {', '.join(readers)}")
    try:
        table = readers[suffix](path)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not len(table):
        raise ValueError(f"{path} has no rows")
    return table


def _parquet(path: Path) -> SmilesTable:
    names = parquet.read_schema(path).names
    column = _smiles_column(path, names)
    wanted = [column, *(["split"] if "split" in names else [])]
    return _table(path, parquet.read_table(path, columns=wanted), column, 0)


def _csv(path: Path) -> SmilesTable:
    skipped = []

    def skip(row: csv.InvalidRow) -> str:
        skipped.append(row.number)
        return "skip"

    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    table = csv.read_csv(
        path,
        parse_options=csv.ParseOptions(delimiter=separator, invalid_row_handler=skip),
        convert_options=csv.ConvertOptions(check_utf8=False, strings_can_be_null=True),
    )
    return _table(path, table, _smiles_column(path, table.column_names), len(skipped))


def _lines(path: Path) -> SmilesTable:
    """SMILES up to the first blank or tab of every line that is not empty."""
    lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    smiles = [line.split()[0] for line in lines if line.split()]
    return SmilesTable(path, pa.array(smiles, pa.string()), None)


def _smiles_column(path: Path, names: list[str]) -> str:
    found = next((name for wanted in COLUMNS for name in names if name.strip().lower() == wanted), None)
    if found is None:
        raise ValueError(f"{path} has no column smiles, only {', '.join(names) or 'none'}")
    return found


def _table(path: Path, table: pa.Table, column: str, unreadable: int) -> SmilesTable:
    strings = [
        table[name].cast(pa.string()).combine_chunks() if name in table.column_names else None
        for name in (column, "split")
    ]
    smiles, split = (pa.concat_arrays(s.chunks) if isinstance(s, pa.ChunkedArray) else s for s in strings)
    if split is not None:
        found = set(pc.unique(pc.utf8_lower(split)).to_pylist()) - {None}
        strange = sorted(found - set(NAMES))
        if strange:
            raise ValueError(f"{path}: column split holds {strange[0]!r}, expected {', '.join(SPLITS)}")
    return SmilesTable(path, smiles, split, unreadable)


def _tenth(text: str | None) -> int:
    return int.from_bytes(hashlib.sha256((text or "").encode()).digest()[:8], "big") % 10
