"""A mass spectrum and where it came from, at which collision energy; its peaks as tokens, and made clean."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Unit = Literal["eV", "NCE"]
REFERENCE_MZ = 500.0

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_RANGE = re.compile(rf"(?:ramp(?:ed)?:?\s*)?({_NUMBER})\s*(?:%|e?v)?\s*(?:-|–|to)\s*({_NUMBER})")
_LINE = re.compile(
    rf"({_NUMBER})\s*-\s*({_NUMBER})\s*\*?\s*m/?z(?:\s*or\s*({_NUMBER})\s*\(m/?z\s*>\s*({_NUMBER})\))?"
)
_SCALED = re.compile(
    rf"scaled\s*({_NUMBER})\s*\(m/z\s*=\s*({_NUMBER})\)\s*to\s*({_NUMBER})\s*\(m/z\s*=\s*({_NUMBER})\)"
)
_NORMALISED = re.compile(r"%|nominal|nce|normali[sz]ed|\bhcd|\bcid|\bce\s*[0-9]")
_VOLTS = re.compile(r"(?<![a-z])e?v(?![a-z])")
_VOLTS_VALUE = re.compile(rf"({_NUMBER})\s*ev\b")
_NOISE = re.compile(
    r"[0-9.,;/\s()%+-]|nominal|normali[sz]ed|stepped|steps?|nce|hcd|cid|ce|e?v|and|collision|energy|:|="
)
_FREE_TEXT = re.compile(r"with stepped collision energies.*|ft-ms.*")


@dataclass(frozen=True)
class CollisionEnergy:
    """Energy in eV, the unit that the text was taken to mean, and whether it was ramped or stepped."""

    electronvolts: float
    unit: Unit
    multiple: bool


def parse_collision_energy(
    text: str, instrument_type: str | None = None, precursor_mz: float | None = None
) -> CollisionEnergy | None:
    """What a record's text means; None where that cannot be known.

    `eV` and `V` are eV (charge 1). `%`, `nominal`, `NCE`, `HCD`, `CID` and `CE n` are normalised energy, and so
    are bare numbers on Orbitraps and other Fourier-transform instruments: eV = NCE * precursor m/z / 500. Bare
    numbers on time-of-flight instruments are eV. A range means its middle, a list its mean; functions of m/z
    are evaluated.
    """
    plain = re.sub(r"\s+", " ", text.strip().lower())
    reading = _evaluate(plain, precursor_mz)
    unit = _unit(plain, (instrument_type or "").lower())
    if reading is None or unit is None:
        return None
    value, multiple = reading
    if unit == "NCE":
        if precursor_mz is None:
            return None
        value = value * precursor_mz / REFERENCE_MZ
    if not (math.isfinite(value) and value > 0):
        return None
    return CollisionEnergy(value, unit, multiple)


def _unit(plain: str, instrument: str) -> Unit | None:
    volts, normalised = bool(_VOLTS.search(re.sub(r"[0-9]", " ", plain))), bool(_NORMALISED.search(plain))
    fourier = bool(re.search(r"ft\b|orbitrap|exactive|icr|hybrid ft", instrument))
    flight = "tof" in instrument
    if volts:
        return "eV"
    if normalised:
        # A percentage of a time-of-flight instrument's range is no normalised energy.
        return "NCE" if not flight else None
    if fourier == flight:
        return None
    return "NCE" if fourier else "eV"


def _evaluate(plain: str, precursor_mz: float | None) -> tuple[float, bool] | None:
    """The number that the text stands for, before its unit, and whether it is one of several."""
    scaled, line = _SCALED.search(plain), _LINE.search(plain)
    if scaled or line:
        if precursor_mz is None:
            return None
        if scaled:
            first, at_first, last, at_last = map(float, scaled.groups())
            if at_first == at_last:
                return None
            # Outside the scale's range the value at its nearer end holds.
            share = min(1.0, max(0.0, (precursor_mz - at_first) / (at_last - at_first)))
            return first + (last - first) * share, False
        assert line is not None
        start, slope, floor, threshold = line.groups()
        if threshold is not None and precursor_mz > float(threshold):
            return float(floor), False
        return float(start) - float(slope) * precursor_mz, False
    both = _VOLTS_VALUE.search(plain) if _NORMALISED.search(plain) else None
    if both:
        # NIST writes the normalised energy and then what it comes to: NCE=35% 14eV.
        return float(both[1]), False
    # Text that says in words that there were several steps, beside their nominal mean.
    stepped = "stepped" in plain
    plain = _FREE_TEXT.sub("", plain)
    # Between the numbers of a range a comma is a decimal comma; elsewhere it lists.
    ranged = _RANGE.search(re.sub(r"(?<=[0-9]),(?=[0-9])", ".", plain))
    if ranged:
        low, high = map(float, ranged.groups())
        return (low + high) / 2, True
    if _NOISE.sub("", plain) or " or " in plain:
        return None
    return _mean(plain, stepped=stepped)


def _mean(plain: str, *, stepped: bool) -> tuple[float, bool] | None:
    """Mean of the numbers in a text: `25,60,100` are three, `22,9 eV` is one with a decimal comma."""
    single = re.fullmatch(r"([0-9]+),([0-9])\s*(e?v|%|nce)?", plain)
    numbers = [f"{single[1]}.{single[2]}"] if single else re.findall(_NUMBER, plain)
    if not numbers:
        return None
    return sum(map(float, numbers)) / len(numbers), stepped or len(numbers) > 1


Floats = NDArray[np.float64]

MOST_MZ = 1e7
"""Far above what is measured, far below what single precision loses."""
MOST_ENERGY = 1e7
"""The same of a collision energy, in eV."""


@dataclass(frozen=True)
class Origin:
    """Where in a file something stands; `number` counts from 1, and 0 stands for the file as a whole."""

    path: str
    unit: Literal["line", "row", "spectrum"] = "line"
    number: int = 0

    def __str__(self) -> str:
        return f"{self.path}, {self.unit} {self.number}" if self.number else self.path


class SpectrumError(ValueError):
    """A spectrum or a file that cannot be read: names the file, the line or row, and what was expected."""

    def __init__(self, origin: Origin, problem: str) -> None:
        super().__init__(f"{origin}: {problem}")
        self.origin = origin
        self.problem = problem


@dataclass(frozen=True, eq=False)
class Spectrum:
    """A centroided tandem (MS2) spectrum; everything but the peaks may be unknown (None).

    mzs, intensities: (n,) float64, n >= 1, m/z strictly ascending, intensities positive, in the file's own scale.
    precursor_mz: as reported, else computed from `formula` and `adduct`.
    adduct: in the spelling of `adducts.parse_adduct` where that understands it, else as written.
    collision_energy: eV; collision_energy_raw: as written.
    inchikey: whole or its first block. fold: the split that the file assigns.
    """

    mzs: Floats
    intensities: Floats
    origin: Origin
    identifier: str | None = None
    name: str | None = None
    precursor_mz: float | None = None
    charge: int | None = None
    adduct: str | None = None
    collision_energy: float | None = None
    collision_energy_raw: str | None = None
    instrument_type: str | None = None
    formula: str | None = None
    smiles: str | None = None
    inchikey: str | None = None
    fold: str | None = None

    def __post_init__(self) -> None:
        for name in ("mzs", "intensities"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.mzs.ndim != 1 or self.mzs.shape != self.intensities.shape:
            raise ValueError(
                f"mzs {self.mzs.shape} and intensities {self.intensities.shape} must be two equal rows"
            )
        if not self.mzs.size:
            raise ValueError("no peaks")
        _check_values(self.mzs, self.intensities)
        if self.intensities.min() <= 0 or (np.diff(self.mzs) <= 0).any():
            raise ValueError("m/z must be strictly ascending and intensities positive; see tidy_peaks")
        if self.precursor_mz is not None and not 0 < self.precursor_mz <= MOST_MZ:
            raise ValueError(f"precursor_mz must be positive and at most {MOST_MZ:g}, got {self.precursor_mz!r}")
        if self.collision_energy is not None and not 0 <= self.collision_energy <= MOST_ENERGY:
            raise ValueError(f"collision_energy must be 0 to {MOST_ENERGY:g} eV, got {self.collision_energy!r}")

    def __len__(self) -> int:
        return self.mzs.size

    def __eq__(self, other: object) -> bool:
        """Equal in every field but the origin."""
        if not isinstance(other, Spectrum):
            return NotImplemented
        names = [field.name for field in fields(self) if field.name not in ("mzs", "intensities", "origin")]
        return (
            all(getattr(self, name) == getattr(other, name) for name in names)
            and np.array_equal(self.mzs, other.mzs)
            and np.array_equal(self.intensities, other.intensities)
        )

    __hash__ = None  # type: ignore[assignment]


def tidy_peaks(mzs: ArrayLike, intensities: ArrayLike) -> tuple[Floats, Floats]:
    """(n,) and (n,) as a `Spectrum` holds them: sorted, without peaks of no intensity, one peak per m/z.

    Of several peaks at the very same m/z the most intense stays: they are mostly one peak written twice.
    """
    mzs, intensities = np.asarray(mzs, dtype=np.float64), np.asarray(intensities, dtype=np.float64)
    if mzs.shape != intensities.shape or mzs.ndim != 1:
        raise ValueError(f"as many intensities as m/z values expected, got {intensities.size} and {mzs.size}")
    _check_values(mzs, intensities)
    seen = intensities > 0
    mzs, intensities = mzs[seen], intensities[seen]
    order = np.lexsort((-intensities, mzs))
    mzs, intensities = mzs[order], intensities[order]
    first = np.diff(mzs, prepend=-1.0) > 0
    return mzs[first], intensities[first]


def _check_values(mzs: Floats, intensities: Floats) -> None:
    if not (np.isfinite(mzs).all() and np.isfinite(intensities).all()):
        raise ValueError("m/z and intensity must be finite numbers")
    if mzs.size and mzs.min() <= 0:
        raise ValueError(f"m/z must be positive, got {mzs.min():g}")
    if mzs.size and mzs.max() > MOST_MZ:
        raise ValueError(f"m/z must be at most {MOST_MZ:g}, got {mzs.max():g}")


# With m/z and intensity, sixteen features: every element of the MassBank molecules, and the sodium of [M+Na]+.
ELEMENTS = ("C", "H", "N", "O", "S", "Cl", "F", "P", "Br", "I", "Si", "B", "As", "Na")
# About the largest usual count in a fragment, so that features lie mostly between 0 and 1.
ELEMENT_SCALES = (20.0, 20.0, 5.0, 5.0, 2.0, 3.0, 3.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0)
MZ_SCALE = 1000.0
TOKEN_WIDTH = 2 + len(ELEMENTS)
RAW_TOKEN_WIDTH = 2


def raw_tokens(mzs: ArrayLike, intensities: ArrayLike) -> NDArray[np.float32]:
    """(n, 2): m/z / 1000 and intensity over the largest."""
    intensities = np.asarray(intensities, dtype=np.float64)
    return np.stack(
        [np.asarray(mzs, dtype=np.float64) / MZ_SCALE, intensities / intensities.max(initial=1e-300)], axis=1
    ).astype(np.float32)


def annotated_tokens(mzs: ArrayLike, intensities: ArrayLike, counts: ArrayLike) -> NDArray[np.float32]:
    """(n, 16): the raw token, then the counts (n, 14) of `ELEMENTS`, each over its scale; 0 if unexplained."""
    counts = np.asarray(counts)
    if counts.ndim != 2 or counts.shape[1] != len(ELEMENTS):
        raise ValueError(f"counts must be (n, {len(ELEMENTS)}), got {counts.shape}")
    scaled = (counts / np.array(ELEMENT_SCALES)).astype(np.float32)
    return np.concatenate([raw_tokens(mzs, intensities), scaled], axis=1)


def most_intense(intensities: ArrayLike, most: int) -> NDArray[np.int64]:
    """Ascending indices of the `most` most intense peaks; of equally intense ones the first."""
    order = np.argsort(-np.asarray(intensities), kind="stable")[:most]
    return np.sort(order).astype(np.int64)


def clean(spectrum: Spectrum, max_peaks: int = 256, above_precursor: float = 1.0) -> Spectrum:
    """Without peaks over precursor + `above_precursor` Da, the `max_peaks` most intense, largest intensity 1.

    Of equally intense peaks at the cut the one of smaller m/z stays. An unknown precursor removes nothing.
    """
    mzs, intensities = spectrum.mzs, spectrum.intensities
    if spectrum.precursor_mz is not None:
        below = mzs <= spectrum.precursor_mz + above_precursor
        mzs, intensities = mzs[below], intensities[below]
    if not mzs.size:
        raise ValueError(f"{spectrum.origin}: every peak lies above the precursor, m/z {spectrum.precursor_mz:g}")
    kept = most_intense(intensities, max_peaks)
    mzs, intensities = mzs[kept], intensities[kept]
    scaled = intensities / intensities.max()
    # A ratio over 1e308 leaves nothing of the smallest peaks.
    visible = scaled > 0
    return replace(spectrum, mzs=mzs[visible], intensities=scaled[visible])
