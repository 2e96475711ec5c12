"""Sub-formula annotation kept in a Parquet file beside the peaks."""

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
from graphwright.spectra.spectrum import ELEMENTS, Origin, SpectrumError, annotated_tokens, raw_tokens
from graphwright.spectra.subformulas import DEFAULT_PPM, explain, table_of

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
