"""Which parts of a formula explain the peaks of a spectrum, also kept in a Parquet file beside the peaks."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphwright.files import replacing
from graphwright.spectra.files.tables import check_peak_columns, first_line
from graphwright.spectra.formula import ELECTRON_MASS, MASS, VALENCE, Composition, parse_adduct, parse_formula
from graphwright.spectra.spectrum import (
    ELEMENTS,
    Floats,
    Origin,
    Spectrum,
    SpectrumError,
    annotated_tokens,
    raw_tokens,
)

TABLE_LIMIT = 4_000_000
# Peaks times hydrogens that are looked up together: bounds the memory of one call.
LOOKUPS_AT_ONCE = 2_000_000
# Errors closer than this, in ppm, are equal: far below what any instrument tells apart.
EQUAL_PPM = 1e-3


@dataclass(frozen=True, eq=False)
class SubformulaTable:
    """What an ion can break into: every choice of its atoms other than hydrogen, by mass.

    Hydrogen is left out since it is a ladder on top of every row: a table of all sub-formulas would be some forty
    times as large, and looking a peak up once per number of hydrogens costs less than building that.

    elements: of the columns of `counts`, without hydrogen. counts: (rows, elements).
    masses: (rows,) ascending, Da. most_hydrogens: (rows,) by valence, at most those of the ion; -1 for none.
    heteroatoms: (rows,) atoms other than carbon. hydrogens: of the ion. charge: of the ion, signed.
    """

    elements: tuple[str, ...]
    counts: NDArray[np.int16]
    masses: Floats
    most_hydrogens: NDArray[np.int64]
    heteroatoms: NDArray[np.int64]
    hydrogens: int
    charge: int


@dataclass(frozen=True, eq=False)
class Explanation:
    """The best sub-formula of every peak.

    elements: of the columns of `counts`, hydrogen last. counts: (n, elements), all 0 where nothing explains.
    ppm: (n,), (measured - computed) / computed * 1e6, NaN where nothing explains.
    charge: (n,) signed, 0 where nothing explains.
    """

    elements: tuple[str, ...]
    counts: NDArray[np.int16]
    ppm: Floats
    charge: NDArray[np.int8]

    @property
    def explained(self) -> NDArray[np.bool_]:
        """(n,)"""
        return np.not_equal(self.charge, 0)

    def counts_of(self, elements: tuple[str, ...]) -> NDArray[np.int16]:
        """(n, len(elements)): counts in another order, 0 for elements that the ion has not."""
        result = np.zeros((len(self.ppm), len(elements)), dtype=np.int16)
        for column, element in enumerate(elements):
            if element in self.elements:
                result[:, column] = self.counts[:, self.elements.index(element)]
        return result

    def formulas(self) -> list[Composition | None]:
        """The sub-formulas; the ion's charge is that of `charge`."""
        return [
            Composition.of(dict(zip(self.elements, row, strict=True))) if known else None
            for row, known in zip(self.counts.tolist(), self.explained.tolist(), strict=True)
        ]


def subformula_table(ion: Composition, charge: int = 1) -> SubformulaTable:
    """The table of an ion, of `ion` atoms (adduct included) and `charge`."""
    if charge == 0:
        raise ValueError("an ion has a charge")
    heavy = [(element, count) for element, count in ion.counts if element != "H"]
    rows = int(np.prod([count + 1.0 for _, count in heavy]))
    if rows > TABLE_LIMIT:
        raise ValueError(f"{ion} has {rows:,} sub-formulas without counting hydrogen, over {TABLE_LIMIT:,}")
    counts = np.indices([count + 1 for _, count in heavy], dtype=np.int16).reshape(len(heavy), -1).T
    if not heavy:
        counts = np.zeros((1, 0), dtype=np.int16)
    masses: Floats = counts.astype(np.float64) @ np.array(
        [MASS[element] for element, _ in heavy], dtype=np.float64
    )
    order = np.argsort(masses, kind="stable")
    counts, masses = np.ascontiguousarray(counts[order]), masses[order]
    # Rings and double bonds, 1 + sum count * (valence - 2) / 2, are at least -1/2 in an ion such as NH4+.
    bonds = counts @ np.array([VALENCE[element] - 2 for element, _ in heavy], dtype=np.int64)
    not_carbon = np.array([element != "C" for element, _ in heavy], dtype=np.int64)
    return SubformulaTable(
        elements=tuple(element for element, _ in heavy),
        counts=counts,
        masses=masses,
        most_hydrogens=np.clip(bonds + 3, -1, ion.count("H")),
        heteroatoms=counts @ not_carbon,
        hydrogens=ion.count("H"),
        charge=charge,
    )


def explain(mzs: Floats, table: SubformulaTable, tolerance_ppm: float) -> Explanation:
    """The best sub-formula within the tolerance for every m/z, (n,).

    Best is the smallest |ppm|. Of errors that are equal to 0.001 ppm: the lowest charge, then the fewest atoms
    other than carbon and hydrogen, then the most hydrogens, then the first in the table's order.
    """
    if not 0 < tolerance_ppm < 1e6:
        raise ValueError(f"tolerance_ppm must be positive, got {tolerance_ppm}")
    mzs = np.asarray(mzs, dtype=np.float64)
    if mzs.ndim != 1 or not (np.isfinite(mzs) & (mzs > 0)).all():
        raise ValueError("mzs must be a row of positive numbers")
    step = max(1, LOOKUPS_AT_ONCE // (table.hydrogens + 1))
    parts = [_explain(mzs[at : at + step], table, tolerance_ppm) for at in range(0, max(1, len(mzs)), step)]
    return Explanation(
        (*table.elements, "H"),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.ppm for part in parts]),
        np.concatenate([part.charge for part in parts]),
    )


def _explain(mzs: Floats, table: SubformulaTable, tolerance_ppm: float) -> Explanation:
    by_size = [_candidates(mzs, table, size, tolerance_ppm) for size in range(1, abs(table.charge) + 1)]
    peak, row, hydrogens, ppm, size = (np.concatenate(column) for column in zip(*by_size, strict=True))
    rounded = np.round(np.abs(ppm) / EQUAL_PPM)
    order = np.lexsort((row, -hydrogens, table.heteroatoms[row], size, rounded, peak))
    best = order[np.diff(peak[order], prepend=-1) > 0]
    counts = np.zeros((len(mzs), len(table.elements) + 1), dtype=np.int16)
    errors = np.full(len(mzs), np.nan)
    charge = np.zeros(len(mzs), dtype=np.int8)
    counts[peak[best], :-1] = table.counts[row[best]]
    counts[peak[best], -1] = hydrogens[best]
    errors[peak[best]] = ppm[best]
    charge[peak[best]] = np.sign(table.charge) * size[best]
    return Explanation((*table.elements, "H"), counts, errors, charge)


def _candidates(
    mzs: Floats, table: SubformulaTable, size: int, tolerance_ppm: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Floats, NDArray[np.int64]]:
    """Peak, table row, hydrogens, ppm and charge size of all within the tolerance, for one charge size."""
    electrons = np.sign(table.charge) * size * ELECTRON_MASS
    ladder = np.arange(table.hydrogens + 1)
    # |measured - computed| <= computed * tolerance, solved for the computed mass.
    low = (mzs * size / (1 + tolerance_ppm * 1e-6) + electrons)[:, None] - ladder * MASS["H"]
    high = (mzs * size / (1 - tolerance_ppm * 1e-6) + electrons)[:, None] - ladder * MASS["H"]
    first = np.searchsorted(table.masses, low.ravel(), side="left")
    number = np.searchsorted(table.masses, high.ravel(), side="right") - first
    hit = np.flatnonzero(number)
    number = number[hit]
    starts = np.cumsum(number) - number
    row = np.repeat(first[hit] - starts, number) + np.arange(number.sum())
    peak, hydrogens = np.divmod(np.repeat(hit, number), len(ladder))
    allowed = (hydrogens <= table.most_hydrogens[row]) & ((row > 0) | (hydrogens > 0))
    peak, row, hydrogens = peak[allowed], row[allowed], hydrogens[allowed]
    computed = (table.masses[row] + hydrogens * MASS["H"] - electrons) / size
    ppm = (mzs[peak] - computed) / computed * 1e6
    return peak, row, hydrogens, ppm, np.full(len(peak), size)


DEFAULT_PPM = 10.0


def table_of(formula: str, adduct: str) -> SubformulaTable:
    """Sub-formulas of the ion that a molecule makes with an adduct."""
    ionised = parse_adduct(adduct)
    return subformula_table(ionised.ion(parse_formula(formula)), ionised.charge)


def annotate(spectrum: Spectrum, tolerance_ppm: float = DEFAULT_PPM) -> Explanation:
    """The best sub-formula of every peak; the spectrum must have a formula and an adduct.

    For many spectra of one molecule, build `table_of` once and call `explain` on the peaks of all.
    """
    if spectrum.formula is None or spectrum.adduct is None:
        missing = "formula" if spectrum.formula is None else "adduct"
        raise ValueError(f"{spectrum.origin}: annotation needs the {missing}")
    try:
        return explain(spectrum.mzs, table_of(spectrum.formula, spectrum.adduct), tolerance_ppm)
    except ValueError as problem:
        raise ValueError(f"{spectrum.origin}: {problem}") from None


ROWS_AT_ONCE = 32_768
METADATA_KEY = b"graphwright.annotation"
COUNTS, ERRORS = "peak_counts", "peak_ppm"
NEEDED = ("formula", "adduct")


@dataclass(frozen=True)
class AnnotationSummary:
    """Rows: all, annotated, unknown (no formula or adduct), failed. Peaks of the annotated: all, explained."""

    rows: int
    annotated: int
    unknown: int
    failed: int
    peaks: int
    explained: int


@dataclass(frozen=True, eq=False)
class AnnotatedPeaks:
    """Peaks of all rows of an annotated file, one after the other.

    offsets: (rows + 1,), row i has the peaks offsets[i] .. offsets[i + 1] - 1. annotated: (rows,).
    mzs, intensities: (peaks,). counts: (peaks, 14) of `spectrum.ELEMENTS`. ppm: (peaks,), NaN where unexplained.
    """

    offsets: NDArray[np.int64]
    mzs: NDArray[np.float32]
    intensities: NDArray[np.float32]
    counts: NDArray[np.uint16]
    ppm: NDArray[np.float32]
    annotated: NDArray[np.bool_]

    def tokens(self, row: int) -> NDArray[np.float32]:
        """(n, 16): annotated tokens of one spectrum; counts are 0 where the row is not annotated."""
        part = slice(self.offsets[row], self.offsets[row + 1])
        return annotated_tokens(self.mzs[part], self.intensities[part], self.counts[part])

    def raw_tokens(self, row: int) -> NDArray[np.float32]:
        """(n, 2): raw tokens of one spectrum."""
        part = slice(self.offsets[row], self.offsets[row + 1])
        return raw_tokens(self.mzs[part], self.intensities[part])


def annotate_parquet(
    source: str | PathLike[str],
    destination: str | PathLike[str],
    tolerance_ppm: float = DEFAULT_PPM,
    on_error: Callable[[SpectrumError], None] | None = None,
) -> AnnotationSummary:
    """Copy a Parquet file of spectra with two more columns, and say how much was explained.

    peak_counts: list of uint16, 14 counts per peak in the order of `spectrum.ELEMENTS`, peak after peak.
    peak_ppm: list of float32, (measured - computed) / computed * 1e6, NaN where nothing explains the peak.
    Both are null in rows without formula or adduct. A row whose formula or adduct cannot be used is null too and
    told to `on_error`; without it, the first is raised. The destination appears whole or not at all.
    """
    path, parts = str(source), []
    with _parquet(path) as file, replacing(Path(destination)) as scratch:
        schema = _annotated_schema(file.schema_arrow, path, tolerance_ppm)
        with pq.ParquetWriter(scratch, schema, compression="zstd") as writer:
            first_row = 1
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
                columns, summary, problems = _annotate_batch(batch, tolerance_ppm)
                for row, problem in problems:
                    error = SpectrumError(Origin(path, "row", first_row + row), problem)
                    if on_error is None:
                        raise error
                    on_error(error)
                kept = [batch.column(name) for name in batch.schema.names if name not in (COUNTS, ERRORS)]
                writer.write_batch(pa.record_batch([*kept, *columns], schema=schema))
                parts.append(summary)
                first_row += batch.num_rows
    names = AnnotationSummary.__dataclass_fields__
    return AnnotationSummary(**{name: sum(getattr(part, name) for part in parts) for name in names})


def load_annotated(path: str | PathLike[str]) -> AnnotatedPeaks:
    """Peaks and annotation of a file that `annotate_parquet` wrote."""
    with _parquet(str(path)) as file:
        noted = json.loads((file.schema_arrow.metadata or {}).get(METADATA_KEY, b"{}"))
        if noted.get("elements") != list(ELEMENTS):
            raise SpectrumError(Origin(str(path)), "not annotated for these elements; run annotate_parquet")
        table = file.read(columns=["mzs", "intensities", COUNTS, ERRORS]).combine_chunks()
    lengths = _lengths(table["mzs"])
    unequal = np.flatnonzero(lengths != _lengths(table["intensities"]))
    if unequal.size:
        raise SpectrumError(
            Origin(str(path), "row", int(unequal[0]) + 1), "as many intensities as mzs were expected"
        )
    known = table[COUNTS].is_valid().to_numpy()
    of_known = np.repeat(known, lengths)
    counts = np.zeros((lengths.sum(), len(ELEMENTS)), dtype=np.uint16)
    counts[of_known] = _flat(table[COUNTS]).reshape(-1, len(ELEMENTS))
    ppm = np.full(lengths.sum(), np.nan, dtype=np.float32)
    ppm[of_known] = _flat(table[ERRORS])
    mzs, intensities = (_flat(table[name]).astype(np.float32) for name in ("mzs", "intensities"))
    return AnnotatedPeaks(np.concatenate([[0], np.cumsum(lengths)]), mzs, intensities, counts, ppm, known)


def _annotate_batch(
    batch: pa.RecordBatch, tolerance_ppm: float
) -> tuple[list[pa.Array], AnnotationSummary, list[tuple[int, str]]]:
    """The two columns of a batch, and the rows that failed with the reason, in order.

    Rows of one formula and adduct share a table and one look-up.
    """
    lengths, mzs = _lengths(batch.column("mzs")), _flat(batch.column("mzs")).astype(np.float64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    row_of_peak = np.repeat(np.arange(batch.num_rows), lengths)
    spoilt = set(row_of_peak[~(np.isfinite(mzs) & (mzs > 0))].tolist())
    groups: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    problems, unknown = [(row, "mzs: positive numbers were expected") for row in spoilt], 0
    for row, key in enumerate(zip(*(batch.column(name).to_pylist() for name in NEEDED), strict=True)):
        if row in spoilt:
            continue
        if all(key):
            groups[str(key[0]), str(key[1])].append(row)
        else:
            unknown += 1
    counts = np.zeros((len(mzs), len(ELEMENTS)), dtype=np.uint16)
    ppm = np.full(len(mzs), np.nan, dtype=np.float32)
    known = np.zeros(batch.num_rows, dtype=bool)
    for (formula, adduct), rows in groups.items():
        indices = np.concatenate([np.arange(offsets[row], offsets[row + 1]) for row in rows])
        try:
            explanation = explain(mzs[indices], table_of(formula, adduct), tolerance_ppm)
        except ValueError as problem:
            problems += [(row, str(problem)) for row in rows]
            continue
        counts[indices], ppm[indices], known[rows] = explanation.counts_of(ELEMENTS), explanation.ppm, True
    of_known = known[row_of_peak]
    summary = AnnotationSummary(
        rows=batch.num_rows,
        annotated=int(known.sum()),
        unknown=unknown,
        failed=len(problems),
        peaks=int(of_known.sum()),
        explained=int((~np.isnan(ppm)).sum()),
    )
    columns = [
        _lists(counts[of_known].ravel(), lengths * len(ELEMENTS), known),
        _lists(ppm[of_known], lengths, known),
    ]
    return columns, summary, sorted(problems)


def _annotated_schema(schema: pa.Schema, path: str, tolerance_ppm: float) -> pa.Schema:
    check_peak_columns(schema, Origin(path))
    missing = [name for name in NEEDED if name not in schema.names]
    if missing:
        raise SpectrumError(Origin(path), f"a column {missing[0]} was expected")
    fields = [field for field in schema if field.name not in (COUNTS, ERRORS)]
    fields += [pa.field(COUNTS, pa.list_(pa.uint16())), pa.field(ERRORS, pa.list_(pa.float32()))]
    noted = json.dumps({"elements": list(ELEMENTS), "tolerance_ppm": tolerance_ppm}).encode()
    return pa.schema(fields, metadata={**(schema.metadata or {}), METADATA_KEY: noted})


def _lists(values: NDArray[np.generic], lengths: NDArray[np.int64], known: NDArray[np.bool_]) -> pa.Array:
    """Lists of the given lengths where `known`, null elsewhere; `values` has those of the known rows alone."""
    ends = np.cumsum(np.where(known, lengths, 0))
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array(values), mask=pa.array(~known))


def _lengths(column: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False), dtype=np.int64)


def _flat(column: pa.Array | pa.ChunkedArray) -> NDArray[np.generic]:
    return np.asarray(pc.list_flatten(column).to_numpy(zero_copy_only=False))


@contextmanager
def _parquet(path: str) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError) as problem:
        raise SpectrumError(Origin(path), f"not a Parquet file that can be read: {first_line(problem)}") from None
