"""What a person has of a spectrum (a `Spectrum`, two lists, a file) as the encoder takes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphwright.decoding import Formula
from graphwright.graphs import Vocabulary
from graphwright.models import SpectrumInputs
from graphwright.settings import PeakTokens, SpectrumTask
from graphwright.spectra import Origin, Spectrum, SpectrumError, clean, read_spectra, tidy_peaks
from graphwright.tasks.spectra.encoded import EncodedSpectrum, bound, describe, encode, stack
from graphwright.tasks.task import BadInput, NamedInput


def encode_as(settings: SpectrumTask, spectrum: Spectrum) -> EncodedSpectrum:
    """A spectrum, cleaned and encoded as a task's settings say."""
    encoded = encode(clean(spectrum), settings.adducts.split(), settings.peaks, settings.tolerance)
    return encoded.raw() if settings.tokens is PeakTokens.RAW else encoded


def spectrum_batch(settings: SpectrumTask, given: Any) -> SpectrumInputs:
    """Inputs of one or many of: `Spectrum`, pairs (mzs, intensities), encoded spectra; a batch stays as it is."""
    if isinstance(given, SpectrumInputs):
        return given
    return stack(_all(settings, given))


def bounds_of(settings: SpectrumTask, given: Any, vocabulary: Vocabulary) -> list[Formula | None]:
    """At most which atoms the scaffold of each can have, of what `spectrum_batch` takes; None where unknown."""
    if isinstance(given, SpectrumInputs):
        return [None] * len(given.mask)
    return [bound(each.formula, vocabulary) for each in _all(settings, given)]


def _all(settings: SpectrumTask, given: Any) -> list[EncodedSpectrum]:
    one = isinstance(given, Spectrum | EncodedSpectrum) or _is_pair(given)
    return [_encoded(settings, each) for each in ([given] if one else given)]


def _is_pair(given: Any) -> bool:
    """(mzs, intensities): two rows of numbers; a list of two spectra has no such rows."""
    return isinstance(given, tuple) and len(given) == 2 and not isinstance(given[0], Spectrum | EncodedSpectrum)


def _encoded(settings: SpectrumTask, given: Any) -> EncodedSpectrum:
    if isinstance(given, EncodedSpectrum):
        return given
    if _is_pair(given):
        given = Spectrum(*tidy_peaks(*given), Origin("given peaks"))
    if not isinstance(given, Spectrum):
        raise ValueError(f"expected a Spectrum or a pair (mzs, intensities), got {type(given).__name__}")
    return encode_as(settings, given)


def read_inputs(settings: SpectrumTask, path: Path, formula: str | None = None) -> Iterator[NamedInput | BadInput]:
    """Every spectrum of a file; the name is the file and the spectrum's own name, or its place.

    formula: of the molecules whose spectra do not say theirs.
    """
    problems: list[SpectrumError] = []
    number = 0
    try:
        for number, spectrum in enumerate(read_spectra(path, on_error=problems.append), 1):
            yield from _told(problems)
            try:
                encoded = encode_as(settings, replace(spectrum, formula=spectrum.formula or formula))
            except ValueError as error:
                yield BadInput(str(error))
                continue
            title = spectrum.identifier or spectrum.name or f"{spectrum.origin.unit} {spectrum.origin.number}"
            yield NamedInput(f"{path}:{title}", f"{path.stem}-{number}", encoded, describe(encoded))
    except (SpectrumError, OSError, ImportError) as error:
        yield from _told(problems)
        yield BadInput(str(error))
        return
    told = list(_told(problems))
    yield from told
    if not number and not told:
        yield BadInput(f"{path}: no MS2 spectrum in it")


def _told(problems: list[SpectrumError]) -> Sequence[BadInput]:
    """What could not be read since the last time."""
    found = [BadInput(str(problem)) for problem in problems]
    problems.clear()
    return found
