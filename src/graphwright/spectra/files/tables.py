"""Spectra as rows: MassSpecGym's TSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphwright.spectra.files.record import Fields, SpectrumSource, parse_number
from graphwright.spectra.spectrum import Origin, Spectrum, SpectrumError

COLUMNS = (
    "identifier",
    "mzs",
    "intensities",
    "smiles",
    "inchikey",
    "formula",
    "precursor_formula",
    "parent_mass",
    "precursor_mz",
    "adduct",
    "instrument_type",
    "collision_energy",
    "fold",
    "simulation_challenge",
)
REQUIRED = ("mzs", "intensities")


def read_massspecgym(source: SpectrumSource) -> Iterator[Spectrum | SpectrumError]:
    """Spectra, and what is wrong with those that cannot be read.

    The first line names the columns; `mzs` and `intensities`, lists with commas, must be there, other columns
    of MassSpecGym may be missing, and unknown ones are passed over. `collision_energy` is in eV.
    """
    header: list[str] | None = None
    for number, line in source.lines():
        if not line.strip():
            continue
        cells = [cell.strip().strip('"') for cell in line.split("\t")]
        if header is None:
            header = [cell.lower() for cell in cells]
            missing = [name for name in REQUIRED if name not in header]
            if missing:
                raise source.error(f"a header with the columns {', '.join(REQUIRED)} was expected", number)
        elif len(cells) != len(header):
            yield source.error(f"{len(header)} cells were expected, as in the header, got {len(cells)}", number)
        else:
            yield _read_cells(source, header, cells, number)


def _read_cells(
    source: SpectrumSource, header: list[str], cells: list[str], number: int
) -> Spectrum | SpectrumError:
    fields = Fields(source.origin(number))
    for key, cell in zip(header, cells, strict=True):
        if key in COLUMNS:
            fields.add(key, cell, number)
    column = dict(zip(header, cells, strict=True))
    try:
        mzs, intensities = (_read_list(name, column[name]) for name in REQUIRED)
        energy = fields.text("collision_energy")
        electronvolts = parse_number(energy) if energy is not None else None
    except ValueError as problem:
        return source.error(str(problem), number)
    return fields.spectrum(mzs, intensities, electronvolts=electronvolts)


def _read_list(name: str, cell: str) -> list[float]:
    text = cell.strip("[] ")
    # Semicolons or spaces between the numbers leave the commas to be decimal commas.
    parts = text.replace(";", " ").split() if ";" in text or ("," not in text) else text.split(",")
    try:
        return [parse_number(part) for part in parts]
    except ValueError as problem:
        raise ValueError(f"{name}: {problem}") from None


ROWS_AT_ONCE = 1024
# In the order of preference where two name the same field.
TEXTS = (
    "accession",
    "identifier",
    "name",
    "adduct",
    "collision_energy_raw",
    "instrument_type",
    "formula",
    "smiles",
    "inchikey",
    "inchikey14",
    "fold",
)


def read_parquet(source: SpectrumSource) -> Iterator[Spectrum | SpectrumError]:
    """Spectra, and what is wrong with those that cannot be read; rows are numbered from 1.

    `mzs` and `intensities`, lists of numbers, must be there; the rest of the MassBank columns may be missing.
    `collision_energy` is in eV; where it is missing, `collision_energy_raw` goes by `parse_collision_energy`.
    """
    try:
        with pq.ParquetFile(source.path) as file:
            check_peak_columns(file.schema_arrow, source.origin())
            columns = _columns(source, file.schema_arrow)
            number = 0
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    yield _read_row(source, row, number)
    except SpectrumError:
        raise
    # Of a damaged file pyarrow says ValueError, KeyError, MemoryError or OSError as it happens.
    except (pa.ArrowException, ArithmeticError, LookupError, MemoryError, OSError, ValueError) as problem:
        raise source.error(f"not a Parquet file that can be read: {first_line(problem)}") from None


def first_line(problem: BaseException) -> str:
    """What a library says, without its trace of where."""
    return (str(problem) or type(problem).__name__).splitlines()[0][:200]


def check_peak_columns(schema: pa.Schema, origin: Origin) -> None:
    """Refuse a file without the peaks."""
    for name in REQUIRED:
        kind = schema.field(name).type if name in schema.names else None
        if kind is None or not _holds_numbers(kind):
            raise SpectrumError(origin, f"a column {name} of lists of numbers was expected")


def _columns(source: SpectrumSource, schema: pa.Schema) -> list[str]:
    for name in ("precursor_mz", "collision_energy"):
        kind = schema.field(name).type if name in schema.names else pa.float64()
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise source.error(f"column {name}: numbers were expected, got {kind}")
    known = {*REQUIRED, *TEXTS, "precursor_mz", "collision_energy"}
    return [name for name in schema.names if name in known]


def _holds_numbers(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    return bool(pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))


def _read_row(source: SpectrumSource, row: dict[str, Any], number: int) -> Spectrum | SpectrumError:
    fields = Fields(Origin(str(source.path), "row", number))
    for name in (*TEXTS, "precursor_mz"):
        if row.get(name) is not None:
            fields.add(name, str(row[name]), number)
    # A null inside a list becomes NaN, which is refused.
    mzs, intensities = (np.array(row[name] or [], dtype=np.float64) for name in REQUIRED)
    energy = row.get("collision_energy")
    return fields.spectrum(mzs, intensities, electronvolts=float(energy) if energy is not None else None)
