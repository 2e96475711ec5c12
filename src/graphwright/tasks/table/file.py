"""Rows of a Parquet, JSONL or CSV file, whatever their columns mean."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from graphwright.files import sha256_of
from graphwright.tasks.table.fault import RowError

LONGEST_CELL = 2**27
"""Characters of a CSV cell: a large graph as JSON is longer than the 131,072 that Python allows unasked."""
Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class TableFile:
    """The rows of a file, or what is wrong with them; numbers: how a person counts them, from 1.

    Rows are counted below the header of a CSV file, lines in a JSONL file.
    """

    path: Path
    columns: tuple[str, ...]
    rows: list[Row | RowError]
    numbers: list[int]

    def __len__(self) -> int:
        return len(self.rows)

    def digest(self) -> str:
        """SHA-256 of the file."""
        return sha256_of(self.path)


def read_table(path: Path) -> TableFile:
    """All rows of a file; an error says in a sentence what the file lacks."""
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise ValueError(f"{path}: a table's name ends in {', '.join(READERS)}, not in {suffix or 'nothing'}")
    if not path.is_file():
        raise ValueError(f"{path} does not exist")
    try:
        table = READERS[suffix](path)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    # Two columns of one name are a KeyError.
    except (OSError, KeyError, pa.ArrowException) as error:
        raise ValueError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    if not len(table):
        raise ValueError(f"{path} has no rows")
    return table


def parsed(value: Any, field: str) -> Any:
    """A cell's value; text that is JSON of a list or an object is what it says."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise RowError("unreadable JSON", field, f"the JSON cannot be read: {error}") from error


def _parquet(path: Path) -> TableFile:
    table = parquet.read_table(path)
    repeated = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if repeated:
        raise ValueError(f"{path} has two columns {repeated[0]!r}")
    rows: list[Row | RowError] = list(table.to_pylist())
    return TableFile(path, tuple(table.column_names), rows, list(range(1, len(rows) + 1)))


def _jsonl(path: Path) -> TableFile:
    rows: list[Row | RowError] = []
    numbers: list[int] = []
    columns: dict[str, None] = {}
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            row = _json_row(line)
            rows.append(row)
            numbers.append(number)
            if not isinstance(row, RowError):
                columns |= dict.fromkeys(row)
    return TableFile(path, tuple(columns), rows, numbers)


def _json_row(line: str) -> Row | RowError:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return RowError("unreadable JSON", "the line", f"the JSON cannot be read: {error}")
    if not isinstance(row, dict):
        return RowError("unreadable JSON", "the line", f"expected an object with the columns, got {_shown(row)}")
    return row


def _csv(path: Path) -> TableFile:
    rows: list[Row | RowError] = []
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            records = _records(path, lines)
            header = tuple(name.strip() for name in next(records, []))
            repeated = sorted({name for name in header if header.count(name) > 1})
            if repeated:
                raise ValueError(f"{path} has two columns {repeated[0]!r}")
            for record in records:
                if not record:
                    continue
                if len(record) != len(header):
                    fault = f"{len(record)} cells for {len(header)} columns"
                    rows.append(RowError("wrong number of cells", "the row", fault))
                else:
                    rows.append({name: _cell(text) for name, text in zip(header, record, strict=True)})
    finally:
        csv.field_size_limit(before)
    return TableFile(path, header, rows, list(range(1, len(rows) + 1)))


def _records(path: Path, lines: Iterator[str]) -> Iterator[list[str]]:
    reader = csv.reader(lines, strict=True)
    begun, row = 1, 0
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            open_quote = "unexpected end" in str(error)
            fault = "a quote is opened and never closed" if open_quote else str(error)
            raise ValueError(f"{path}, row {row}, which begins in line {begun}: {fault}") from error
        yield record
        begun, row = reader.line_num + 1, row + 1


def _cell(text: str) -> Any:
    """A number, nothing, or text; lists and objects stay text until somebody asks for them."""
    plain = text.strip()
    if not plain:
        return None
    try:
        return int(plain) if plain.lstrip("+-").isdigit() else float(plain)
    except ValueError:
        return plain


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 40 else f"{text[:37]}..."


READERS: dict[str, Callable[[Path], TableFile]] = {
    ".parquet": _parquet,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".csv": _csv,
}
"""By the end of a file's name."""
