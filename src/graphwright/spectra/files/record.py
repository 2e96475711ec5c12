"""A spectrum while it is being read: a file as bytes or lines, fields under the names of many formats, peaks."""

from __future__ import annotations

import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from numpy.typing import ArrayLike

from graphwright.files import unpacked
from graphwright.spectra.formula import Composition, parse_adduct, parse_formula, usual_adduct_name
from graphwright.spectra.spectrum import Origin, Spectrum, SpectrumError, parse_collision_energy, tidy_peaks

SIZE_LIMIT = 8 * 2**30
LINE_LIMIT = 64 * 2**20

_BINARY = re.compile(r"[\x00-\x08\x0e-\x1f]")


class _TooLargeError(OSError):
    """More bytes came out of a file than its reader wanted."""


class _Limited(io.RawIOBase):
    """A stream that refuses to give more than `limit` bytes."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self._stream, self._limit = stream, limit

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._stream.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        # From the end, gzip would unpack everything to find it.
        if whence == io.SEEK_END:
            raise _TooLargeError
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        if self._stream.tell() > self._limit:
            raise _TooLargeError
        buffer[: len(data)] = data
        return len(data)


@dataclass(frozen=True)
class SpectrumSource:
    """A file of spectra; gzip is known by its first bytes and read in place.

    size_limit: most bytes that are read, after decompression, so that a small file cannot fill a machine.
    """

    path: Path
    size_limit: int = SIZE_LIMIT

    def origin(self, line: int = 0) -> Origin:
        """A line of this file, as an error names it."""
        return Origin(str(self.path), "line", line)

    def error(self, problem: str, line: int = 0) -> SpectrumError:
        """What is wrong with a line, or with the file as a whole."""
        return SpectrumError(self.origin(line), problem)

    @contextmanager
    def bytes(self) -> Iterator[BinaryIO]:
        """The decompressed bytes; whatever goes wrong in reading them is a `SpectrumError`."""
        try:
            with open(self.path, "rb") as file:
                yield cast(BinaryIO, io.BufferedReader(_Limited(unpacked(file), self.size_limit), 2**16))
        except _TooLargeError:
            raise self.error(f"more than {self.size_limit:,} bytes, the limit") from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
            raise self.error(f"damaged gzip file: {problem}") from None
        except OSError as problem:
            raise self.error(f"cannot be read: {problem.strerror or problem}") from None

    def lines(self) -> Iterator[tuple[int, str]]:
        """Numbered lines without their ends; UTF-8, UTF-16 with a mark, or else Latin-1."""
        with self.text() as file:
            number = 0
            while True:
                number += 1
                try:
                    line = file.readline(LINE_LIMIT)
                except UnicodeError as problem:
                    raise self.error(f"not text: {problem}", number) from None
                if not line:
                    return
                if len(line) >= LINE_LIMIT:
                    raise self.error(f"a line of more than {LINE_LIMIT:,} characters", number)
                yield number, self.checked(line, number).rstrip("\n")

    @contextmanager
    def text(self) -> Iterator[io.TextIOWrapper]:
        """The decompressed text, line ends unified, without a byte-order mark; pass what it gives to `checked`."""
        with self.bytes() as stream:
            head = cast(io.BufferedReader, stream).peek(4)[:4]
            encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
            errors = "strict" if encoding == "utf-16" else "surrogateescape"
            yield io.TextIOWrapper(stream, encoding=encoding, errors=errors, newline=None)

    def checked(self, text: str, line: int) -> str:
        """Text of this file, bytes that are no UTF-8 read as Latin-1; refuses binary data."""
        if _BINARY.search(text):
            raise self.error("binary data where text was expected", line)
        if text.isascii():
            return text
        try:
            text.encode()
        except UnicodeEncodeError:
            return text.encode("utf-8", "surrogateescape").decode("latin-1")
        return text


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
        entry = self._entry(name)
        return entry[0] if entry else None

    def value(self, key: str) -> str | None:
        """Value of one key, whatever field it stands for."""
        entry = self._values.get(plain_key(key))
        return entry[0] if entry else None

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

    def _entry(self, name: str) -> tuple[str, int] | None:
        return next((self._values[key] for key in _SPELLINGS[name] if key in self._values), None)

    def _error(self, name: str, problem: str) -> SpectrumError:
        entry = self._entry(name)
        origin = Origin(self.origin.path, self.origin.unit, entry[1] if entry else self.origin.number)
        return SpectrumError(origin, f"{name}: {problem}")

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
        match = re.fullmatch(r"(?:ms)?\s*-?([0-9]*)(?:\.0)?", level.lower()) if level else None
        # `MS` alone is a spectrum of whole molecules; words such as `Tandem` say nothing against MS2.
        if match and (match[1] or "1") != "2":
            raise self._error("level", f"a tandem (MS2) spectrum was expected, got {level!r}")

    def _formula(self) -> Composition | None:
        text = self.text("formula")
        try:
            return parse_formula(text) if text else None
        except ValueError as problem:
            raise self._error("formula", str(problem)) from None

    def _precursor(self, formula: Composition | None) -> float | None:
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
        match = re.fullmatch(r"([+-]?)([0-9]{1,2})(?:\.0)?([+-]?)", text) if text else None
        if not match or not int(match[2]):
            return None
        return -int(match[2]) if "-" in (match[1], match[3]) else int(match[2])


# Nearly every line of nearly every file: worth not taking apart.
_PLAIN = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]*)?)\s+([0-9]{1,15}(?:\.[0-9]*)?)\s*")
_QUOTED = re.compile(r'"[^"]*"?|\'[^\']*\'?')


def parse_peak_line(line: str, *, several: bool) -> list[tuple[float, float]]:
    """Peaks of a line: `m/z intensity`, after which an annotation may follow.

    Spaces, tabs, one comma or one colon part the two numbers, `;` or brackets part peaks; commas between digits
    are decimal commas where something else parts the numbers. With `several`, a line of four, six, ... numbers
    and nothing else is two, three, ... peaks. A point in one number of a peak and a comma in the other are
    refused: `100.5 1,234` means a thousand to those who write it.
    """
    plain = _PLAIN.fullmatch(line)
    if plain:
        return [(float(plain[1]), float(plain[2]))]
    peaks = []
    bare = _QUOTED.sub(" ", line) if '"' in line or "'" in line else line
    for group in re.split(r"[;()]" if bare.lstrip().startswith("(") else ";", bare):
        tokens = [token.rstrip(",") for token in re.split(r"[\s:]+", group) if token.rstrip(",")]
        if len(tokens) == 1 and tokens[0].count(",") == 1:
            tokens = tokens[0].split(",")
        if not tokens:
            continue
        if len(tokens) == 1:
            raise ValueError(f"a peak is two numbers, m/z and intensity, got {tokens[0][:40]!r}")
        numbers = _numbers(tokens) if several and len(tokens) > 2 and len(tokens) % 2 == 0 else None
        if numbers is None:
            tokens = tokens[:2]
            numbers = [parse_number(token) for token in tokens]
        if any("." in token for token in tokens) and any("," in token for token in tokens):
            raise ValueError(f"a decimal point and a comma in one line, {' '.join(tokens)[:40]!r}")
        peaks += list(zip(numbers[::2], numbers[1::2], strict=True))
    return peaks


def _numbers(tokens: list[str]) -> list[float] | None:
    try:
        return [parse_number(token) for token in tokens]
    except ValueError:
        return None


PEAK_LIMIT = 2_000_000
TEXT_LIMIT = 4 * 2**20
"""Characters of one spectrum beside its peaks: without end they would fill the memory."""


@dataclass
class Record:
    """Fields and peaks read so far; the first problem is kept, so that the rest of the file can be read."""

    source: SpectrumSource
    line: int
    fields: Fields = field(init=False)
    mzs: list[float] = field(default_factory=list)
    intensities: list[float] = field(default_factory=list)
    problem: SpectrumError | None = None
    _declared: tuple[int, int] | None = None
    _text: int = 0

    def __post_init__(self) -> None:
        self.fields = Fields(self.source.origin(self.line))

    def fail(self, problem: str, line: int) -> None:
        """Note what is wrong, unless something was before."""
        if self.problem is None:
            self.problem = self.source.error(problem, line)

    def has_room(self, text: str, line: int) -> bool:
        """Whether a line is worth keeping: not after a problem, nor beyond what any spectrum says."""
        self._text += len(text)
        if self._text > TEXT_LIMIT:
            self.fail(f"more than {TEXT_LIMIT:,} characters beside the peaks of one spectrum", line)
        return self.problem is None

    def note(self, key: str, value: str, line: int) -> None:
        if self.has_room(key + value, line):
            self.fields.add(key, value, line)

    def declare(self, number: str, line: int) -> None:
        """The number of peaks that the file announces."""
        if number.strip().isdecimal() and len(number) < 12:
            self._declared = int(number), line
        else:
            self.fail(f"the number of peaks was expected, got {number.strip()[:40]!r}", line)

    def add_peaks(self, text: str, line: int, *, several: bool) -> None:
        if self.problem is not None:
            return
        try:
            peaks = parse_peak_line(text, several=several)
        except ValueError as problem:
            self.fail(str(problem), line)
            return
        for mz, intensity in peaks:
            self.mzs.append(mz)
            self.intensities.append(intensity)
        if len(self.mzs) > PEAK_LIMIT:
            self.fail(f"more than {PEAK_LIMIT:,} peaks in one spectrum", line)

    def result(self) -> Spectrum | SpectrumError:
        """The spectrum, or what is wrong with it."""
        if self._declared and self._declared[0] != len(self.mzs):
            number, line = self._declared
            self.fail(f"{number} peaks announced, {len(self.mzs)} found", line)
        return self.problem or self.fields.spectrum(self.mzs, self.intensities)
