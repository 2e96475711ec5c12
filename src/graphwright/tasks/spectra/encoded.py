"""One spectrum as numbers, as the settings of MS2Scaffold say, from whatever a person has in hand, and varied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from graphwright.decoding import Formula, FormulaRule
from graphwright.graphs import Vocabulary
from graphwright.graphs.molecules import MoleculeError, graph_from_molecule, parse_smiles
from graphwright.models import SpectrumInputs
from graphwright.settings.choices import Capacity, Count, NotNegative, Positive, Share, TaskSettings
from graphwright.spectra import (
    ELEMENTS,
    Composition,
    Origin,
    Spectrum,
    SpectrumError,
    annotate,
    annotated_tokens,
    clean,
    most_intense,
    parse_adduct,
    parse_formula,
    read_spectra,
    tidy_peaks,
)
from graphwright.spectra.spectrum import ELEMENT_SCALES, MZ_SCALE, TOKEN_WIDTH
from graphwright.tasks.spectra.prepared import murcko_scaffold
from graphwright.tasks.task import BadInput, NamedInput, file_stem


class PeakTokens(StrEnum):
    """What an encoder is told of a peak."""

    ANNOTATED = "annotated"
    RAW = "raw"


class TrainingUnit(StrEnum):
    """What an epoch goes through once."""

    MOLECULE = "molecule"
    SPECTRUM = "spectrum"


class SpectrumTask(TaskSettings):
    """MS2Scaffold: the peaks of a tandem mass spectrum; the graph is the molecule's Murcko scaffold."""

    input_kinds = ("spectrum",)
    default_encoder = "spectrum"

    kind: Literal["spectrum"] = "spectrum"
    """What is predicted from what: spectrum, scaffolds from tandem mass spectra."""
    data: Annotated[str, Field(min_length=1)] = "massbank_ms2scaffold"
    """Shipped data (massbank_ms2scaffold), or a file of spectra with SMILES (MassSpecGym's tsv, parquet, msp)."""
    capacity: Capacity = 32
    """Largest number of scaffold atoms, N; larger scaffolds are left out."""
    elements: str = ""
    """Element symbols that a node may have, such as C N O S; empty: those in the data."""
    adducts: str = "[M+H]+ [M+Na]+"
    """Adducts with a token of their own; all others share that of an unknown one."""
    diffusion: bool = True
    """Also predict how many neighbours of each element an atom has, and match by it."""
    tokens: PeakTokens = PeakTokens.ANNOTATED
    """Whether peaks come with the sub-formulas that explain them, where the formula is known, or raw always."""
    peaks: Count = 128
    """Most peaks of a spectrum, the most intense."""
    tolerance: Positive = 10.0
    """Largest error in ppm of a sub-formula that explains a peak."""
    unit: TrainingUnit = TrainingUnit.MOLECULE
    """What an epoch of training goes through once: molecules, one random spectrum of each, or spectra."""
    hide_formula: Share = 0.25
    """Share of training spectra whose formula is hidden, so that the model also learns to do without."""
    hide_conditions: Share = 0.1
    """Share of training spectra whose collision energy is hidden; the same for adduct and precursor m/z."""
    drop_peaks: Share = 0.1
    """Share of the peaks of a training spectrum that is left out."""
    jitter: NotNegative = 0.2
    """Standard deviation of the noise on the logarithm of training intensities."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Which spectra and variations training draws: a pure function of seed, index and epoch."""


UNKNOWN_ADDUCT = 0

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class EncodedSpectrum:
    """peaks: (n, 16) tokens, m/z ascending. precursor: (16,), m/z 0 if unknown. adduct: code, 0 if unknown.

    energy: eV, NaN if unknown. formula: of the molecule, None if unknown; with an adduct that is understood, it
    also explains peaks.
    """

    peaks: Floats
    precursor: Floats
    adduct: int
    energy: float
    formula: str | None

    @property
    def mzs(self) -> NDArray[np.float64]:
        """(n,)"""
        return self.peaks[:, 0].astype(np.float64) * MZ_SCALE

    @property
    def intensities(self) -> Floats:
        """(n,), the largest 1."""
        return self.peaks[:, 1]

    @property
    def explained(self) -> NDArray[np.bool_]:
        """(n,) whether a sub-formula is known of a peak."""
        return np.asarray(self.peaks[:, 2:].any(1))

    def subformulas(self) -> list[Composition | None]:
        """The sub-formula of every peak, as far as `ELEMENTS` go."""
        counts = np.rint(self.peaks[:, 2:] * np.array(ELEMENT_SCALES)).astype(int).tolist()
        return [Composition.of(dict(zip(ELEMENTS, row, strict=True))) if any(row) else None for row in counts]

    def raw(self) -> EncodedSpectrum:
        """The same without element counts."""
        peaks, precursor = self.peaks.copy(), self.precursor.copy()
        peaks[:, 2:] = 0
        precursor[2:] = 0
        return replace(self, peaks=peaks, precursor=precursor)

    def without_formula(self) -> EncodedSpectrum:
        """The same, as if the formula were not known."""
        return replace(self.raw(), formula=None)


def describe(spectrum: EncodedSpectrum) -> str:
    """What is known of a spectrum, in a few words."""
    peaks = len(spectrum.peaks)
    plural = "peak" if peaks == 1 else "peaks"
    if spectrum.formula is None:
        return f"{peaks} {plural}, no formula"
    explained = int(spectrum.explained.sum())
    hint = ", adduct unknown" if not explained and spectrum.adduct == UNKNOWN_ADDUCT else ""
    return f"{explained} of {peaks} {plural} explained, {spectrum.formula}{hint}"


def readable(formula: str | None) -> str | None:
    """A formula that is one."""
    try:
        return None if formula is None else str(parse_formula(formula))
    except ValueError:
        return None


def precursor_token(mz: float | None, formula: str | None, adduct: str | None) -> Floats:
    """(16,): m/z, intensity 1, and the ion's atoms where formula and adduct are known and understood."""
    token = np.zeros(TOKEN_WIDTH, np.float32)
    # The ion's atoms without its m/z would say more than a spectrum of unknown precursor can.
    if mz is not None and np.isfinite(mz):
        token[:2] = mz / MZ_SCALE, 1.0
        token[2:] = _ion_counts(formula, adduct)
    return token


@lru_cache(maxsize=65_536)
def _ion_counts(formula: str | None, adduct: str | None) -> Floats:
    if formula is None or adduct is None:
        return np.zeros(len(ELEMENTS), np.float32)
    try:
        ion = parse_adduct(adduct).ion(parse_formula(formula))
    except ValueError:
        return np.zeros(len(ELEMENTS), np.float32)
    return np.array(
        [ion.count(element) / scale for element, scale in zip(ELEMENTS, ELEMENT_SCALES, strict=True)], np.float32
    )


def encode(spectrum: Spectrum, adducts: Sequence[str], most_peaks: int, tolerance: float) -> EncodedSpectrum:
    """A spectrum from a file, clean already; annotated where formula and adduct are known and understood."""
    counts = np.zeros((len(spectrum), len(ELEMENTS)), np.int64)
    explaining = spectrum.formula
    try:
        counts = annotate(spectrum, tolerance).counts_of(ELEMENTS).astype(np.int64)
    except ValueError:  # no formula, no adduct, or one that cannot be used
        explaining = None
    kept = most_intense(spectrum.intensities, most_peaks)
    return EncodedSpectrum(
        annotated_tokens(spectrum.mzs[kept], spectrum.intensities[kept], counts[kept]),
        precursor_token(spectrum.precursor_mz, explaining, spectrum.adduct),
        adduct_code(spectrum.adduct, adducts),
        np.nan if spectrum.collision_energy is None else spectrum.collision_energy,
        readable(spectrum.formula),
    )


def bound(formula: str | None, vocabulary: Vocabulary) -> Formula | None:
    """At most which atoms a part of a molecule can have; None where that is unknown or leaves nothing."""
    if formula is None:
        return None
    counts = dict(parse_formula(formula).counts)
    hydrogens = counts.pop("H", 0) + counts.pop("D", 0)
    most = Formula(counts, hydrogens, rule=FormulaRule.AT_MOST)
    return most if any(most.most(vocabulary)) else None


def adduct_code(adduct: str | None, adducts: Sequence[str]) -> int:
    """1 + its index among the adducts that have a token."""
    return 1 + list(adducts).index(adduct) if adduct is not None and adduct in adducts else UNKNOWN_ADDUCT


def stack(spectra: Sequence[EncodedSpectrum]) -> SpectrumInputs:
    """A batch, padded to the most peaks."""
    longest = max((len(each.peaks) for each in spectra), default=0)
    peaks = np.zeros((len(spectra), longest, TOKEN_WIDTH), np.float32)
    mask = np.zeros((len(spectra), longest), bool)
    for at, each in enumerate(spectra):
        peaks[at, : len(each.peaks)] = each.peaks
        mask[at, : len(each.peaks)] = True
    return SpectrumInputs(
        torch.from_numpy(peaks),
        torch.from_numpy(mask),
        torch.from_numpy(np.stack([each.precursor for each in spectra])),
        torch.tensor([each.adduct for each in spectra]),
        torch.tensor([each.energy for each in spectra], dtype=torch.float32),
    )


def encode_as(settings: SpectrumTask, spectrum: Spectrum) -> EncodedSpectrum:
    """A spectrum, cleaned and encoded as a task's settings say."""
    spectrum = replace(spectrum, adduct=spectrum.adduct or inferred_adduct(spectrum))
    encoded = encode(clean(spectrum), settings.adducts.split(), settings.peaks, settings.tolerance)
    return encoded.raw() if settings.tokens is PeakTokens.RAW else encoded


PROTONATED = "[M+H]+"
FITS = 0.05
"""Da between a precursor and the ion of a formula: more than rounding, less than a hydrogen."""


def inferred_adduct(spectrum: Spectrum) -> str | None:
    """[M+H]+ of a spectrum that only says that its charge is 1+, unless its formula and precursor deny it."""
    if spectrum.adduct is not None or spectrum.charge != 1 or misfit(replace(spectrum, adduct=PROTONATED)):
        return None
    return PROTONATED


def misfit(spectrum: Spectrum) -> str | None:
    """How a spectrum's formula does not fit its precursor, in words; None where it does or that is not known."""
    if spectrum.formula is None or spectrum.adduct is None or spectrum.precursor_mz is None:
        return None
    try:
        expected = parse_adduct(spectrum.adduct).mz(parse_formula(spectrum.formula).mass)
    except ValueError:
        return None
    if abs(expected - spectrum.precursor_mz) <= FITS:
        return None
    ion = f"{spectrum.formula} as {spectrum.adduct} has m/z {expected:.4f}"
    return f"{ion}, the precursor {spectrum.precursor_mz:.4f}"


def scope_of(spectrum: Spectrum, vocabulary: Vocabulary, capacity: int) -> list[str]:
    """What was taken for granted of a spectrum, and why it is none that a model can know."""
    notes = []
    adduct = inferred_adduct(spectrum)
    if adduct is not None:
        notes.append(f"{adduct} taken from charge 1+")
    if spectrum.charge is not None and spectrum.charge < 0:
        notes.append("out of scope: a negative ion")
    tried = replace(spectrum, adduct=spectrum.adduct or (PROTONATED if spectrum.charge == 1 else None))
    if (apart := misfit(tried)) is not None:
        notes.append(f"out of scope: {apart}")
    formula = readable(spectrum.formula)
    foreign = (
        [] if formula is None else [name for name, _ in parse_formula(formula).counts if name not in ELEMENTS]
    )
    if foreign:
        notes.append(f"out of scope: {', '.join(foreign)} in the formula")
    if spectrum.smiles is not None:
        try:
            scaffold = murcko_scaffold(parse_smiles(spectrum.smiles))
            graph_from_molecule(parse_smiles(scaffold.smiles), vocabulary, capacity)
        except MoleculeError as error:
            notes.append(f"out of scope: {error.detail}")
        except ImportError:  # predicting needs no RDKit, and goes without the remark
            pass
    return notes


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
    several = isinstance(given, list | tuple) and not is_one_spectrum(given)
    return [_encoded(settings, each) for each in (given if several else [given])]


def is_one_spectrum(given: Any) -> bool:
    """Whether it is one spectrum, not several."""
    return isinstance(given, Spectrum | EncodedSpectrum) or _is_pair(given) or _is_peak_list(given)


def _is_pair(given: Any) -> bool:
    """(mzs, intensities): two rows of numbers; a list of two spectra has no such rows."""
    return isinstance(given, tuple) and len(given) == 2 and not isinstance(given[0], Spectrum | EncodedSpectrum)


def _is_peak_list(given: Any) -> bool:
    """m/z and intensity of every peak: an array (n, 2), or a list of pairs of numbers."""
    if isinstance(given, np.ndarray):
        return given.ndim == 2 and given.shape[1] == 2
    return isinstance(given, list) and bool(given) and all(_is_peak(each) for each in given)


def _is_peak(given: Any) -> bool:
    return isinstance(given, list | tuple) and len(given) == 2 and all(isinstance(each, Real) for each in given)


def _encoded(settings: SpectrumTask, given: Any) -> EncodedSpectrum:
    if isinstance(given, EncodedSpectrum):
        return given
    if _is_peak_list(given):
        given = tuple(np.asarray(given, np.float64).T)
    if _is_pair(given):
        given = Spectrum(*tidy_peaks(*given), Origin("given peaks"))
    if not isinstance(given, Spectrum):
        raise ValueError(
            "expected a Spectrum, a pair (mzs, intensities), a list of peaks (m/z, intensity) or a file, got "
            f"{type(given).__name__}"
        )
    return encode_as(settings, given)


def read_inputs(
    settings: SpectrumTask,
    path: Path,
    formula: str | None = None,
    remarked: Callable[[Spectrum], list[str]] = lambda spectrum: [],  # noqa: ARG005
) -> Iterator[NamedInput | BadInput]:
    """Every spectrum of a file; the name is the file and the spectrum's own name, or its number.

    formula: of the molecules whose spectra do not say theirs. remarked: what else to say of a spectrum.
    """
    problems: list[SpectrumError] = []
    number = 0
    try:
        for number, spectrum in enumerate(read_spectra(path, on_error=problems.append), 1):
            yield from bad_inputs(problems)
            spectrum = replace(spectrum, formula=spectrum.formula or formula)
            try:
                encoded = encode_as(settings, spectrum)
            except ValueError as error:
                yield BadInput(str(error))
                continue
            title = spectrum.identifier or spectrum.name or f"{spectrum.origin.unit} {spectrum.origin.number}"
            stem = file_stem(spectrum.identifier or spectrum.name or "", f"{path.stem}-{number}")
            note = "; ".join([describe(encoded), *remarked(spectrum)])
            yield NamedInput(f"{path}:{title}", stem, encoded, note)
    except (SpectrumError, OSError, ImportError) as error:
        yield from bad_inputs(problems)
        yield BadInput(str(error))
        return
    told = list(bad_inputs(problems))
    yield from told
    if not number and not told:
        yield BadInput(f"{path}: no MS2 spectrum in it")


def bad_inputs(problems: list[SpectrumError]) -> Sequence[BadInput]:
    """What could not be read since the last time."""
    bad = [BadInput(str(problem)) for problem in problems]
    problems.clear()
    return bad


def vary(spectrum: EncodedSpectrum, settings: SpectrumTask, rng: np.random.Generator) -> EncodedSpectrum:
    """A spectrum with peaks left out, intensities off, and some of what is known about it hidden."""
    # Always the same draws, so that one setting does not change what another one does.
    hide_formula, hide_energy, hide_adduct, hide_precursor = rng.random(4)
    kept = rng.random(len(spectrum.peaks)) >= settings.drop_peaks
    noise = np.exp(settings.jitter * rng.standard_normal(len(spectrum.peaks)))
    kept[np.argmax(spectrum.intensities)] = True  # a spectrum has at least one peak
    peaks = spectrum.peaks[kept].copy()
    peaks[:, 1] *= noise[kept]
    peaks[:, 1] /= peaks[:, 1].max()
    varied = replace(spectrum, peaks=peaks)
    if hide_formula < settings.hide_formula:
        varied = varied.without_formula()
    if hide_energy < settings.hide_conditions:
        varied = replace(varied, energy=np.nan)
    if hide_adduct < settings.hide_conditions:
        varied = replace(varied, adduct=UNKNOWN_ADDUCT)
    if hide_precursor < settings.hide_conditions:
        varied = replace(varied, precursor=np.zeros_like(varied.precursor))
    return varied
