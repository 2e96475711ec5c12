"""What spectra files say beside the peaks: many spellings of the same fields, one `Spectrum`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from graphwright.spectra.adducts import parse_adduct, usual_adduct_name
from graphwright.spectra.collision_energy import parse_collision_energy
from graphwright.spectra.formula import Formula, parse_formula
from graphwright.spectra.spectrum import Origin, Spectrum, SpectrumError, tidy_peaks

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_UNKNOWN = {"", "n/a", "na", "nan", "none", "null", "unknown", "-", "--", "?", "not available"}

# Spellings by field, best first, as `plain_key` writes them.
_SPELLINGS = {
    "identifier": ("accession", "identifier", "spectrumid", "spectrumidentifier", "id", "db", "nist", "featureid"),
    "name": ("name", "compoundname", "title", "recordtitle", "scans"),
    "precursor_mz": ("precursormz", "precursormass", "pepmass", "precursor", "precursorion", "parentmz"),
    "charge": ("charge", "precursorcharge"),
    "adduct": ("adduct", "precursortype", "adducttype", "iontype", "adductionname", "ion", "ionization"),
    "collision_energy": ("collisionenergy", "collisionenergyraw", "ce", "energy"),
    "instrument_type": ("instrumenttype", "instrument", "sourceinstrument", "msmassanalyzer"),
    "formula": ("formula", "molecularformula", "compoundformula"),
    "smiles": ("smiles", "computedsmiles"),
    "inchikey": ("inchikey", "inchikey14", "inchiaux"),
    "fold": ("fold", "split"),
    "level": ("mslevel", "spectrumtype", "mstype"),
}


def plain_key(key: str) -> str:
    """A key without case, spaces and punctuation, so that `PRECURSOR_M/Z` and `PrecursorMZ` are one."""
    return re.sub(r"[^a-z0-9]", "", key.lower())


def parse_number(text: str) -> float:
    """A finite number, with a decimal point or a decimal comma."""
    text = text.strip()
    value = float(text.replace(",", ".")) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise ValueError(f"a number was expected, got {text[:40]!r}")
    return value


@dataclass
class Fields:
    """Keys and values of one spectrum as its file gives them, with the line of each."""

    origin: Origin
    _values: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add(self, key: str, value: str, line: int) -> None:
        """Note a value; the first of a key stands, empty and `N/A` ones are none."""
        # JSON can write what no terminal and no file of text should be given.
        value = _CONTROL.sub(" ", value.encode("utf-8", "replace").decode()).strip()
        if value.lower() not in _UNKNOWN:
            self._values.setdefault(plain_key(key), (value, line))

    def text(self, name: str) -> str | None:
        """Value of the field under its best spelling that the file uses."""
        found = self._found(name)
        return found[0] if found else None

    def value(self, key: str) -> str | None:
        """Value of one key, whatever field it stands for."""
        found = self._values.get(plain_key(key))
        return found[0] if found else None

    def spectrum(
        self, mzs: ArrayLike, intensities: ArrayLike, electronvolts: float | None = None
    ) -> Spectrum | SpectrumError:
        """The spectrum with these peaks, or what is wrong with it; `electronvolts` overrides the energy's text."""
        try:
            return self._spectrum(mzs, intensities, electronvolts)
        except SpectrumError as problem:
            return problem
        except ValueError as problem:
            return SpectrumError(self.origin, str(problem))

    def _found(self, name: str) -> tuple[str, int] | None:
        return next((self._values[key] for key in _SPELLINGS[name] if key in self._values), None)

    def _error(self, name: str, problem: str) -> SpectrumError:
        found = self._found(name)
        place = Origin(self.origin.path, self.origin.unit, found[1] if found else self.origin.number)
        return SpectrumError(place, f"{name}: {problem}")

    def _spectrum(self, mzs: ArrayLike, intensities: ArrayLike, electronvolts: float | None) -> Spectrum:
        self._check_level()
        formula, adduct = self._formula(), self.text("adduct")
        precursor = self._precursor(formula)
        raw = self.text("collision_energy")
        if electronvolts is None and raw is not None:
            energy = parse_collision_energy(raw, self.text("instrument_type"), precursor)
            electronvolts = energy.electronvolts if energy else None
        tidy_mzs, tidy_intensities = tidy_peaks(mzs, intensities)
        return Spectrum(
            tidy_mzs,
            tidy_intensities,
            self.origin,
            identifier=self.text("identifier"),
            name=self.text("name"),
            precursor_mz=precursor,
            charge=self._charge(),
            adduct=usual_adduct_name(adduct) if adduct else None,
            collision_energy=electronvolts,
            collision_energy_raw=raw,
            instrument_type=self.text("instrument_type"),
            formula=str(formula) if formula else None,
            smiles=self.text("smiles"),
            inchikey=self.text("inchikey"),
            fold=self.text("fold"),
        )

    def _check_level(self) -> None:
        level = self.text("level")
        found = re.fullmatch(r"(?:ms)?\s*-?([0-9]*)(?:\.0)?", level.lower()) if level else None
        # `MS` alone is a spectrum of whole molecules; words such as `Tandem` say nothing against MS2.
        if found and (found[1] or "1") != "2":
            raise self._error("level", f"a tandem (MS2) spectrum was expected, got {level!r}")

    def _formula(self) -> Formula | None:
        text = self.text("formula")
        try:
            return parse_formula(text) if text else None
        except ValueError as problem:
            raise self._error("formula", str(problem)) from None

    def _precursor(self, formula: Formula | None) -> float | None:
        text = self.text("precursor_mz")
        if text is not None:
            try:
                value = parse_number(re.split(r"[\s;]", text)[0])
            except ValueError as problem:
                raise self._error("precursor_mz", str(problem)) from None
            if value < 0:
                raise self._error("precursor_mz", f"must be positive, got {value:g}")
            if value > 0:
                return value
        adduct = self.text("adduct")
        if formula is None or adduct is None:
            return None
        try:
            computed = parse_adduct(adduct).mz(formula.mass)
        except ValueError:
            return None
        return computed if computed > 0 else None

    def _charge(self) -> int | None:
        """Charge of the precursor, of the adduct where that is understood; several (`2+ and 3+`) are none."""
        adduct, text = self.text("adduct"), self.text("charge")
        if adduct:
            try:
                return parse_adduct(adduct).charge
            except ValueError:
                pass
        found = re.fullmatch(r"([+-]?)([0-9]{1,2})(?:\.0)?([+-]?)", text) if text else None
        if not found or not int(found[2]):
            return None
        return -int(found[2]) if "-" in (found[1], found[3]) else int(found[2])
