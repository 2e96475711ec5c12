"""Sub-formula annotation of a file of spectra, on one core, beside plain loops."""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa

from benchmarks.measurement import Row, timed
from graphwright.spectra import Spectrum, annotate, annotate_parquet, parse_adduct, parse_formula, read_spectra
from graphwright.spectra.formula import ELECTRON_MASS, MASS, VALENCE
from graphwright.spectra.subformulas import DEFAULT_PPM

NAME = "plain loop over sub-formulas"


def plain_errors(mzs: Sequence[float], formula: str, adduct: str, tolerance_ppm: float) -> list[float | None]:
    """ppm of the best sub-formula of every peak, None where nothing explains it; for ions of charge 1."""
    masses = _masses(formula, adduct)
    explained: list[float | None] = []
    for mz in mzs:
        best = None
        at = bisect_left(masses, mz * (1 - 2e-6 * tolerance_ppm))
        while at < len(masses) and masses[at] <= mz * (1 + 2e-6 * tolerance_ppm):
            ppm = (mz - masses[at]) / masses[at] * 1e6
            if abs(ppm) <= tolerance_ppm and (best is None or abs(ppm) < abs(best)):
                best = ppm
            at += 1
        explained.append(best)
    return explained


def _masses(formula: str, adduct: str) -> list[float]:
    """m/z of every choice of the ion's atoms with at least -1/2 rings and double bonds, ascending."""
    ion = parse_adduct(adduct).ion(parse_formula(formula)).counts
    masses = []
    for counts in product(*(range(count + 1) for _, count in ion)):
        atoms = [(element, count) for (element, _), count in zip(ion, counts, strict=True) if count]
        bonds = sum(count * (VALENCE[element] - 2) for element, count in atoms)
        if atoms and bonds >= -3:
            masses.append(sum(count * MASS[element] for element, count in atoms) - ELECTRON_MASS)
    return sorted(masses)


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
    """By the clock, and by the processor."""
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
