"""Collision energies, as people write them, in eV."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

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
            # The scale holds between its two ends and stays at the value of the nearer one beyond.
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
