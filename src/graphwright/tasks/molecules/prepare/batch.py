"""The unit of work: some rows of a source to arrays and rejections, measured; by any engine."""

from __future__ import annotations

import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, field_validator

from graphwright.parallel import Engine, Lost
from graphwright.tasks.molecules.fingerprint import active_bits
from graphwright.tasks.molecules.prepare.standard import (
    RejectedMoleculeError,
    Rejection,
    RejectionReason,
    atomic_numbers,
    bond_triples,
    connectivity_block,
    connectivity_hash,
    split_of,
    standard_molecule,
)

ELEMENTS = ("C", "N", "O", "F", "S", "Cl", "Br", "I", "P", "B", "Si")
"""The elements of nearly all organic molecules."""

BLOCK_ROWS = 4096
"""Molecules in a row group: what a loader reads, decodes and forgets at once."""


class PrepareSettings(BaseModel):
    """Everything besides the sources that decides what the shards hold."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_atoms: int = Field(32, ge=2, le=255, description="molecules with more heavy atoms are rejected")
    elements: tuple[str, ...] = Field(ELEMENTS, min_length=1, description="any other element is rejected")
    shard_rows: int = Field(65_536, ge=1, description="rows of a source that make one shard")
    list_rejected: bool = Field(False, description="write rejected.csv.gz")

    @field_validator("elements")
    @classmethod
    def _known_elements(cls, symbols: tuple[str, ...]) -> tuple[str, ...]:
        from graphwright.graphs.molecules import molecule_vocabulary

        return molecule_vocabulary(symbols).nodes


SCHEMA = pa.schema(
    [
        pa.field("row", pa.uint32(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("smiles", pa.string(), nullable=False),
        pa.field("n_atoms", pa.uint8(), nullable=False),
        pa.field("atoms", pa.list_(pa.field("item", pa.uint8(), nullable=False)), nullable=False),
        pa.field("bonds", pa.list_(pa.field("item", pa.uint8(), nullable=False)), nullable=False),
        pa.field("fingerprint", pa.list_(pa.field("item", pa.uint16(), nullable=False)), nullable=False),
        pa.field("connectivity", pa.uint64(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
    ]
)
"""A prepared molecule.

row: its number in the source, from 1. atoms: atomic numbers, in the order of `smiles`.
bonds: flat i, j, code (1 single, 2 double, 3 triple, 4 aromatic). fingerprint: sorted on-bits.
connectivity: the hash that decides duplicates and the split.
"""


class SourceRow(NamedTuple):
    """A row as read: `text` is None where the row has no such field."""

    id: str
    text: str | None


@dataclass(frozen=True)
class RowBatch:
    """Consecutive rows of a source; `first` is the number of the first, counted from 1."""

    first: int
    rows: Sequence[SourceRow]


@dataclass(frozen=True, eq=False)
class PreparedBatch:
    """What became of a `RowBatch`: molecules (of `SCHEMA`) and rejections, both in the order of the rows."""

    rows: int
    molecules: pa.RecordBatch
    rejections: tuple[Rejection, ...]


def prepare_batch(batch: RowBatch, settings: PrepareSettings) -> PreparedBatch:
    """Standardise, describe and split every row that can be; a pure function of its arguments."""
    from rdkit import rdBase

    kept: list[tuple[Any, ...]] = []
    rejections = []
    with rdBase.BlockLogs():
        for number, (identifier, text) in enumerate(batch.rows, batch.first):
            try:
                kept.append((number, identifier, *_prepare(text, settings)))
            except RejectedMoleculeError as error:
                rejections.append(Rejection(number, identifier, text or "", error.reason, error.detail))
    columns = zip(*kept, strict=True) if kept else [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return PreparedBatch(len(batch.rows), pa.RecordBatch.from_arrays(arrays, schema=SCHEMA), tuple(rejections))


def _prepare(text: str | None, settings: PrepareSettings) -> tuple[Any, ...]:
    """All columns but the row and its identifier."""
    if text is None:
        raise RejectedMoleculeError(RejectionReason.MALFORMED, "the row has too few fields")
    standard = standard_molecule(text, settings.max_atoms)
    atoms = atomic_numbers(standard.smiles)
    unknown = set(atoms) - _atomic_numbers_of(settings.elements)
    if unknown:
        raise RejectedMoleculeError(
            RejectionReason.UNKNOWN_ELEMENT, f"{_symbol(min(unknown))} is none of {' '.join(settings.elements)}"
        )
    bonds = bond_triples(standard)
    block = connectivity_block(standard.molecule)
    if not block:
        raise RejectedMoleculeError(RejectionReason.NO_INCHI, f"{standard.smiles} has no InChI")
    bits = active_bits(standard.molecule)
    connectivity = connectivity_hash(block)
    return standard.smiles, len(atoms), atoms, bonds, bits, connectivity, split_of(connectivity)


@cache
def _atomic_numbers_of(symbols: tuple[str, ...]) -> frozenset[int]:
    from rdkit import Chem

    return frozenset(Chem.GetPeriodicTable().GetAtomicNumber(symbol) for symbol in symbols)


def _symbol(number: int) -> str:
    from rdkit import Chem

    return Chem.GetPeriodicTable().GetElementSymbol(number) if number else "*"


PUBCHEM_MOLECULES = 80_900_000
"""Molecules of at most 32 heavy atoms in PubChem, on which the paper trains."""


@dataclass(frozen=True)
class WorkerUsage:
    """What one process spent on one batch, and the most memory that it has held since it started.

    worker: host and process; empty if it is not alive to tell.
    """

    worker: str
    cpu_seconds: float
    peak_bytes: int


@dataclass(frozen=True, eq=False)
class MeasuredBatch:
    """A prepared batch and what it cost."""

    prepared: PreparedBatch
    usage: WorkerUsage


def measured_batch(batch: RowBatch, settings: PrepareSettings) -> MeasuredBatch:
    """`prepare_batch`, measured."""
    start = time.process_time()
    prepared = prepare_batch(batch, settings)
    return MeasuredBatch(prepared, WorkerUsage(this_worker(), time.process_time() - start, peak_memory()))


def this_worker() -> str:
    """The name of this process, among those of all machines."""
    return f"{socket.gethostname()}:{os.getpid()}"


def peak_memory() -> int:
    """Bytes of memory that this process has held at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


@dataclass
class UsageTotal:
    """The sum of many batches."""

    rows: int = 0
    molecules: int = 0
    cpu_seconds: float = 0.0
    peaks: dict[str, int] = field(default_factory=dict)
    """Bytes by worker."""

    def add(self, batch: MeasuredBatch) -> None:
        self.rows += batch.prepared.rows
        self.molecules += batch.prepared.molecules.num_rows
        self.cpu_seconds += batch.usage.cpu_seconds
        if batch.usage.worker:
            self.peaks[batch.usage.worker] = max(self.peaks.get(batch.usage.worker, 0), batch.usage.peak_bytes)

    @property
    def rows_per_core_second(self) -> float:
        """Rows read, kept or not, per second of one core."""
        return self.rows / max(self.cpu_seconds, 1e-9)

    @property
    def molecules_per_core_second(self) -> float:
        """Molecules kept per second of one core, which also read what was rejected."""
        return self.molecules / max(self.cpu_seconds, 1e-9)

    @property
    def projected_core_hours(self) -> float:
        """Core-hours for as many molecules as PubChem has, at this rate."""
        return PUBCHEM_MOLECULES / max(self.molecules_per_core_second, 1e-9) / 3600


Work = Callable[[RowBatch, PrepareSettings], MeasuredBatch]
"""What becomes of a batch: a function of a module, and pure."""
Attempt = Callable[[RowBatch], MeasuredBatch | Lost]


class WorkerCrashError(RuntimeError):
    """Workers die whatever they are given."""


def prepared_batches(
    engine: Engine, batches: Iterable[RowBatch], settings: PrepareSettings, work: Work = measured_batch
) -> Iterator[MeasuredBatch]:
    """What became of the batches, in their order."""
    task = _Task(work, settings)
    for batch, result in engine.map(task, batches):
        yield isolate(batch, lambda part: engine.alone(task, part)) if isinstance(result, Lost) else result


@dataclass(frozen=True, eq=False)
class _Task:
    """A batch prepared under some settings."""

    work: Work
    settings: PrepareSettings

    def __call__(self, batch: RowBatch) -> MeasuredBatch:
        return self.work(batch, self.settings)


def isolate(batch: RowBatch, attempt: Attempt) -> MeasuredBatch:
    """The result of a batch that was lost with its worker; the rows that kill one again are rejected."""
    without_rows = attempt(RowBatch(batch.first, ()))
    if isinstance(without_rows, Lost):
        raise WorkerCrashError(f"a process that prepares molecules died: {without_rows.reason}")
    return _halved(batch, attempt)


def _halved(batch: RowBatch, attempt: Attempt) -> MeasuredBatch:
    result = attempt(batch)
    if not isinstance(result, Lost):
        return result
    if len(batch.rows) == 1:
        return MeasuredBatch(_crashed(batch), WorkerUsage("", 0.0, 0))
    middle = len(batch.rows) // 2
    first = _halved(RowBatch(batch.first, batch.rows[:middle]), attempt)
    second = _halved(RowBatch(batch.first + middle, batch.rows[middle:]), attempt)
    return _joined(first, second)


def _crashed(batch: RowBatch) -> PreparedBatch:
    identifier, text = batch.rows[0]
    rejection = Rejection(
        batch.first, identifier, text or "", RejectionReason.CRASHED, "the process that read it died"
    )
    return PreparedBatch(1, pa.RecordBatch.from_pylist([], schema=SCHEMA), (rejection,))


def _joined(first: MeasuredBatch, second: MeasuredBatch) -> MeasuredBatch:
    one, two = first.prepared, second.prepared
    molecules = pa.concat_batches([one.molecules, two.molecules])
    return MeasuredBatch(
        PreparedBatch(one.rows + two.rows, molecules, one.rejections + two.rejections),
        WorkerUsage(
            second.usage.worker,
            first.usage.cpu_seconds + second.usage.cpu_seconds,
            max(first.usage.peak_bytes, second.usage.peak_bytes),
        ),
    )
