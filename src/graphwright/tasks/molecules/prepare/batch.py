"""The unit of work: some rows of a source to arrays and rejections, a pure function for any engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa

from graphwright.tasks.molecules.fingerprint import active_bits
from graphwright.tasks.molecules.prepare.connectivity import connectivity_block, connectivity_hash, split_of
from graphwright.tasks.molecules.prepare.rejection import RejectedMoleculeError, Rejection, RejectionReason
from graphwright.tasks.molecules.prepare.settings import PrepareSettings
from graphwright.tasks.molecules.prepare.standard import atomic_numbers, bond_triples, standard_molecule

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
