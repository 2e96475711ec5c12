"""Spectra of a file in any of the formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path

from graphwright.spectra.files.sniff import READERS, format_of
from graphwright.spectra.files.source import SIZE_LIMIT, Source
from graphwright.spectra.spectrum import Spectrum, SpectrumError


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
    source = Source(Path(path), size_limit)
    for result in READERS[format_of(source)](source):
        if isinstance(result, Spectrum):
            yield result
        elif on_error is None:
            raise result
        else:
            on_error(result)
