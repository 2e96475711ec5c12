"""Spectra of a file in any of the formats, told by its name or by how it begins."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import cast

from graphwright.spectra.files.json_file import read_json
from graphwright.spectra.files.mzml import read_mzml
from graphwright.spectra.files.record import SIZE_LIMIT, SpectrumSource
from graphwright.spectra.files.tables import read_massspecgym, read_parquet
from graphwright.spectra.files.text import read_massbank, read_mgf, read_msp
from graphwright.spectra.spectrum import Spectrum, SpectrumError

Reader = Callable[[SpectrumSource], Iterator[Spectrum | SpectrumError]]

READERS: dict[str, Reader] = {
    "mgf": read_mgf,
    "msp": read_msp,
    "massbank": read_massbank,
    "massspecgym": read_massspecgym,
    "mzml": read_mzml,
    "json": read_json,
    "parquet": read_parquet,
}
_SUFFIXES = {
    ".mgf": "mgf",
    ".msp": "msp",
    ".tsv": "massspecgym",
    ".mzml": "mzml",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
_BEGINNINGS = (
    ("parquet", r"\APAR1"),
    ("mzml", r"\A\s*<(?s:.*)<(?:indexed)?mzML|\A\s*<(?:indexed)?mzML"),
    ("json", r"\A\s*[\[{]"),
    ("mgf", r"(?im)^\s*BEGIN IONS\s*$"),
    ("massbank", r"(?m)^ACCESSION: "),
    ("massspecgym", r"\A(?=[^\n]*\bmzs\b)(?=[^\n]*\bintensities\b)[^\n]*\t"),
    ("msp", r"(?im)^\s*(?:name|num[ _]?peaks|precursor_?mz)\s*:"),
)


def format_of(source: SpectrumSource) -> str:
    """Name in `READERS` of the format of a file; other endings, such as .txt, leave it to the first 64 kB."""
    suffixes = [suffix.lower() for suffix in source.path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    if suffixes and suffixes[-1] in _SUFFIXES:
        return _SUFFIXES[suffixes[-1]]
    with source.bytes() as stream:
        head = cast(io.BufferedReader, stream).read(2**16)
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = head.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n")
    for name, beginning in _BEGINNINGS:
        if re.search(beginning, text):
            return name
    raise source.error(f"not a file of spectra: none of {', '.join(READERS)} begins so")


def read_spectra(
    path: str | PathLike[str],
    on_error: Callable[[SpectrumError], None] | None = None,
    size_limit: int = SIZE_LIMIT,
) -> Iterator[Spectrum]:
    """Spectra of an MGF, MSP, MassBank, MassSpecGym, mzML, JSON or Parquet file, one by one as they are read.

    on_error: is told of each spectrum that cannot be read, and the rest is read; without it the first is raised.
        What makes the whole file unreadable is raised in any case.
    size_limit: most bytes that are read, after decompression.
    """
    source = SpectrumSource(Path(path), size_limit)
    for result in READERS[format_of(source)](source):
        if isinstance(result, Spectrum):
            yield result
        elif on_error is None:
            raise result
        else:
            on_error(result)
