"""Rows of PubChem's CID-SMILES, SMILES files, CSV, TSV and Parquet, as a stream in bounded memory."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import pyarrow as pa
import pyarrow.parquet as pq

from graphwright.files import TightlyPackedError, unpacked
from graphwright.tasks.molecules.prepare.batch import RowBatch, SourceRow

LONGEST_LINE = 2**20
"""Bytes of a line that are read; no usable SMILES is longer."""

_BUFFER = 2**20


class SourceError(ValueError):
    """A source that cannot be read: the message names the file and what is wrong with it."""


class LineReader:
    """Lines without their ends. Bytes that are not UTF-8 become U+FFFD: a matter of the row, not of the run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read = 0
        """Lines read so far."""
        self._raw: BinaryIO = path.open("rb")
        self._size = max(path.stat().st_size, 1)
        try:
            stream = unpacked(self._raw)
        except TightlyPackedError as error:
            self._raw.close()
            raise SourceError(f"{path}: {error}") from error
        # A GzipFile is no raw stream by its type, but does what one does.
        zipped = stream is not self._raw
        self._file: BinaryIO = io.BufferedReader(cast(io.RawIOBase, stream), _BUFFER) if zipped else self._raw

    @property
    def fraction(self) -> float:
        """Share of the file's bytes that was read."""
        return min(self._raw.tell() / self._size, 1.0)

    def __iter__(self) -> Iterator[str]:
        try:
            while line := self._file.readline(LONGEST_LINE):
                part = line
                while len(part) == LONGEST_LINE and not part.endswith(b"\n"):
                    part = self._file.readline(LONGEST_LINE)
                if not self.read and line.startswith(b"\xef\xbb\xbf"):
                    line = line[3:]
                self.read += 1
                yield line.decode("utf-8", "replace").rstrip("\r\n")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise SourceError(f"{self.path} is damaged somewhere after line {self.read:,}: {error}") from error

    def close(self) -> None:
        self._file.close()
        self._raw.close()


SMILES_NAMES = ("smiles", "canonical_smiles", "canonicalsmiles", "isomeric_smiles", "isomericsmiles", "isosmiles")
ID_NAMES = ("id", "cid", "source_id", "molecule_id", "mol_id", "compound_id", "chembl_id", "zinc_id", "name")


def smiles_column(path: Path, names: Sequence[str], wanted: str | None) -> int:
    """Position of the named column, or of the one that its name gives away."""
    if wanted is not None:
        return _named(path, names, wanted)
    column = _guess(names, SMILES_NAMES)
    if column is None:
        candidates = [at for at, name in enumerate(names) if "smiles" in name.lower()]
        if len(candidates) != 1:
            problem = "no column is called smiles" if not candidates else "several columns could hold the SMILES"
            raise SourceError(f"{path}: {problem}; name one with --smiles-column, there are {_shown(names)}")
        column = candidates[0]
    return column


def id_column(path: Path, names: Sequence[str], wanted: str | None) -> int | None:
    """Position of the named column, or of a usual name; None: rows are identified by their number."""
    return _guess(names, ID_NAMES) if wanted is None else _named(path, names, wanted)


def _named(path: Path, names: Sequence[str], wanted: str) -> int:
    if wanted not in names:
        raise SourceError(f"{path} has no column {wanted!r}, there are {_shown(names)}")
    return list(names).index(wanted)


def _guess(names: Sequence[str], usual: Sequence[str]) -> int | None:
    lower = [name.strip().lower() for name in names]
    return next((lower.index(name) for name in usual if name in lower), None)


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:20])
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")


SNIFFED_LINES = 20
PARQUET_BATCH = 4096


class SourceKind(StrEnum):
    """How the rows of a file are written."""

    ID_FIRST = "id, tab, SMILES"
    SMILES_FIRST = "SMILES, space, id"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"


KINDS = {
    ".smi": SourceKind.SMILES_FIRST,
    ".smiles": SourceKind.SMILES_FIRST,
    ".txt": SourceKind.SMILES_FIRST,
    ".ism": SourceKind.SMILES_FIRST,
    ".csv": SourceKind.CSV,
    ".tsv": SourceKind.TSV,
    ".parquet": SourceKind.PARQUET,
}


@dataclass(frozen=True)
class Source:
    """A file of molecules; columns are named or, if None, guessed from the header."""

    path: Path
    kind: SourceKind
    smiles_column: str | None = None
    id_column: str | None = None

    @classmethod
    def of(cls, path: Path, smiles_column: str | None = None, id_column: str | None = None) -> Source:
        """The file's kind from its name; a .smi or .txt whose lines start with number and tab is CID-SMILES."""
        if not path.is_file():
            raise SourceError(f"{path} is not a file")
        name = path.name.lower().removesuffix(".gz")
        kind = SourceKind.ID_FIRST if name == "cid-smiles" else KINDS.get(Path(name).suffix)
        if kind is None or (kind is SourceKind.PARQUET and path.name.lower().endswith(".gz")):
            raise SourceError(
                f"{path}: cannot tell the format; expected CID-SMILES, {', '.join(list(KINDS)[:-1])} "
                "(each also .gz) or .parquet"
            )
        if kind is SourceKind.SMILES_FIRST and _starts_with_ids(path):
            kind = SourceKind.ID_FIRST
        return cls(path, kind, smiles_column, id_column)

    def open(self) -> RowReader:
        """A reader at the first row; an unknown column or a damaged head is an error here."""
        reader = _ParquetRows(self) if self.kind is SourceKind.PARQUET else _TextRows(self)
        try:
            reader.start()
        except BaseException:
            reader.close()
            raise
        return reader


class RowReader(Protocol):
    """Rows of one source, once, in order."""

    @property
    def fraction(self) -> float:
        """Share of the source that was read, 0 to 1."""

    def __iter__(self) -> Iterator[SourceRow]: ...

    def close(self) -> None:
        """Let go of the file."""


def batches(rows: Iterable[SourceRow], first: int, size: int) -> Iterator[RowBatch]:
    """Rows in batches of `size`; `first` is the number of the first row."""
    stream = iter(rows)
    while chunk := list(islice(stream, size)):
        yield RowBatch(first, chunk)
        first += len(chunk)


class _TextRows:
    """Lines, or records of a CSV."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines = LineReader(source.path)
        self._texts = iter(self._lines)
        self._records: Iterator[SourceRow] = iter(())

    def start(self) -> None:
        """Read the header, if there is one."""
        match self._source.kind:
            case SourceKind.ID_FIRST:
                self._records = map(_id_first, self._texts)
            case SourceKind.SMILES_FIRST:
                self._records = map(_smiles_first, self._texts)
            case _:
                self._records = self._table()

    @property
    def fraction(self) -> float:
        return self._lines.fraction

    def __iter__(self) -> Iterator[SourceRow]:
        for number, row in enumerate(self._records, 1):
            yield row if row.id else SourceRow(f"L{number}", row.text)

    def close(self) -> None:
        self._lines.close()

    def _table(self) -> Iterator[SourceRow]:
        source = self._source
        reader = csv_records(source.path, self._texts, "," if source.kind is SourceKind.CSV else "\t")
        names = next(reader, [])
        if names is None:
            raise SourceError(f"{source.path}: its header cannot be read")
        if not names and not self._lines.read:
            raise SourceError(f"{source.path} is empty")
        text_at = smiles_column(source.path, names, source.smiles_column)
        id_at = id_column(source.path, names, source.id_column)
        return _fields(reader, text_at, id_at)


def csv_records(path: Path, lines: Iterator[str], separator: str) -> Iterator[list[str] | None]:
    """The records of lines without their ends; None for one that no reader can make out.

    A quote that is never closed makes one record of all lines after it: that is an error, which names its line.
    """
    finished = False

    def ended() -> Iterator[str]:
        nonlocal finished
        # csv needs the ends of lines to put quoted ones together again.
        yield from (line + "\n" for line in lines)
        finished = True

    reader = csv.reader(ended(), delimiter=separator)
    while True:
        begun, record, fault = reader.line_num + 1, None, ""
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            fault = str(error) if reader.line_num > begun else ""
        # A record is whole at the end of a line; only inside a quote the reader asks for another.
        fault = "a quote is opened and never closed" if finished else fault
        if fault:
            raise SourceError(f"{path}: the record that begins in line {begun:,} cannot be read: {fault}")
        yield record


def _fields(reader: Iterator[list[str] | None], text_at: int, id_at: int | None) -> Iterator[SourceRow]:
    for fields in reader:
        if fields is None:
            yield SourceRow("", None)
            continue
        identifier = fields[id_at].strip() if id_at is not None and id_at < len(fields) else ""
        yield SourceRow(identifier, fields[text_at] if text_at < len(fields) else None)


class _ParquetRows:
    def __init__(self, source: Source) -> None:
        self._source, self._path = source, source.path
        try:
            self._file = pq.ParquetFile(source.path)
        except (pa.ArrowException, OSError) as error:
            raise SourceError(f"{source.path} cannot be read as Parquet: {error}") from error
        self._text = ""
        self._id: str | None = None
        self._read = 0

    def start(self) -> None:
        names = self._file.schema_arrow.names
        text_at = smiles_column(self._path, names, self._source.smiles_column)
        id_at = id_column(self._path, names, self._source.id_column)
        kind = self._file.schema_arrow.field(text_at).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_text_dictionary(kind)):
            raise SourceError(f"{self._path}: column {names[text_at]!r} must hold text, not {kind}")
        self._text, self._id = names[text_at], None if id_at is None else names[id_at]

    @property
    def fraction(self) -> float:
        return float(self._read / max(self._file.metadata.num_rows, 1))

    def __iter__(self) -> Iterator[SourceRow]:
        columns = [self._text] + ([self._id] if self._id not in (None, self._text) else [])
        try:
            for part in self._file.iter_batches(PARQUET_BATCH, columns=columns, use_threads=False):
                texts = part.column(self._text).to_pylist()
                names = [None] * len(texts) if self._id is None else part.column(self._id).to_pylist()
                for text, name in zip(texts, names, strict=True):
                    self._read += 1
                    yield SourceRow(f"L{self._read}" if name is None else str(name), text or "")
        except (pa.ArrowException, OSError) as error:
            raise SourceError(f"{self._path} is damaged after row {self._read:,}: {error}") from error

    def close(self) -> None:
        self._file.close()


def _id_first(line: str) -> SourceRow:
    identifier, tab, text = line.partition("\t")
    return SourceRow(identifier.strip(), text.partition("\t")[0].strip() if tab else ("" if not line else None))


def _smiles_first(line: str) -> SourceRow:
    words = line.split(None, 1)
    return SourceRow(words[1].split("\t")[0].strip() if len(words) > 1 else "", words[0] if words else "")


def _starts_with_ids(path: Path) -> bool:
    """Whether the first lines are all a number, a tab and something."""
    reader = LineReader(path)
    try:
        heads = [line.partition("\t") for line in islice(reader, SNIFFED_LINES) if line.strip()]
    finally:
        reader.close()
    return bool(heads) and all(head.isdigit() and text for head, _, text in heads)


def _is_text_dictionary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type))
