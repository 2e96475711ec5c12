"""Sub-formula annotation of a file of spectra, on one core."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa

from graphwright.bench.annotation_reference import NAME, plain_errors
from graphwright.bench.row import Row
from graphwright.bench.timing import timed
from graphwright.spectra import Spectrum, annotate, annotate_parquet, read_spectra
from graphwright.spectra.annotation import DEFAULT_PPM


def measure_annotation(path: Path, one_by_one: int = 2000, peer_samples: int = 30) -> Iterator[Row]:
    """A whole Parquet file, reading and writing included; and spectra one by one, as `predict` has them.

    `n` is the median number of peaks. The peer explains few spectra, taken evenly from the file; the objectives
    are the shares of their peaks that each explains. `spectra_per_core_second` goes by the processor's time: what
    other programs do meanwhile does not count.
    """
    spectra = [each for each in read_spectra(path) if each.formula and each.adduct]
    chosen, few = _evenly(spectra, one_by_one), _evenly(spectra, peer_samples)
    peaks = int(np.median([len(each) for each in spectra]))
    errors, seconds = timed(lambda: [error for each in few for error in _plain(each)])
    peer_ms, peer_share = 1000 * seconds / len(few), float(np.mean([error is not None for error in errors]))
    share = float(np.mean(np.concatenate([annotate(each).explained for each in few])))
    with _one_thread(), tempfile.TemporaryDirectory() as folder:
        wall, busy = _seconds(lambda: annotate_parquet(path, Path(folder) / "annotated.parquet"))
        yield Row("annotation of a file", peaks, len(spectra), 1, 1000 * wall / len(spectra), NAME, peer_ms,
                  extras=_speed(len(spectra), wall, busy))  # fmt: skip
        wall, busy = _seconds(lambda: [annotate(each) for each in chosen])
        yield Row("annotation one by one", peaks, len(chosen), 1, 1000 * wall / len(chosen), NAME, peer_ms,
                  share, peer_share, _speed(len(chosen), wall, busy))  # fmt: skip


def _plain(spectrum: Spectrum) -> list[float | None]:
    return plain_errors(spectrum.mzs.tolist(), str(spectrum.formula), str(spectrum.adduct), DEFAULT_PPM)


def _evenly(spectra: Sequence[Spectrum], most: int) -> list[Spectrum]:
    """At most so many, the first among them."""
    return list(spectra[:: -(-len(spectra) // most)])


def _seconds(call: Callable[[], object]) -> tuple[float, float]:
    """Of the clock, and of the processor."""
    before = process_time()
    _, wall = timed(call)
    return wall, process_time() - before


def _speed(spectra: int, wall: float, busy: float) -> dict[str, float]:
    return {"spectra_per_second": spectra / wall, "spectra_per_core_second": spectra / busy}


@contextmanager
def _one_thread() -> Iterator[None]:
    """Read and write Parquet on one thread, then on as many as before."""
    before = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        yield
    finally:
        pa.set_cpu_count(before)
