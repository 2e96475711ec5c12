"""Spectra as JSON: a list, lines, or what MoNA and GNPS export."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from graphwright.spectra.files.record import LINE_LIMIT, Fields, SpectrumSource, plain_key
from graphwright.spectra.spectrum import Spectrum, SpectrumError

CHUNK = 2**16
_STRUCTURE = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'["\\]')
_GAP = re.compile(r"[\s,]*")


def json_objects(source: SpectrumSource) -> Iterator[tuple[int, str]]:
    """First line and text of every object of an array, or of objects that follow each other (JSON lines).

    Only brackets and strings are looked at: a spoilt object is for its reader to refuse, the next is found still.
    """
    scanner = _Scanner(source)
    with source.text() as file:
        while True:
            try:
                chunk = file.read(CHUNK)
            except UnicodeError as problem:
                raise source.error(f"not text: {problem}", scanner.line) from None
            if not chunk:
                break
            yield from scanner.feed(source.checked(chunk, scanner.line))
    scanner.finish()


@dataclass
class _Scanner:
    """Where in the nesting the text stands so far."""

    source: SpectrumSource
    line: int = 1
    base: int = 0
    depth: int = 0
    begun: bool = False
    closed: bool = False
    in_string: bool = False
    escaped: bool = False
    start: int = 0
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def feed(self, chunk: str) -> Iterator[tuple[int, str]]:
        """Objects that end in this piece of the text."""
        at = kept = 0
        while at < len(chunk):
            if self.escaped:
                self.escaped, at = False, at + 1
                continue
            match = (_IN_STRING if self.in_string else _STRUCTURE).search(chunk, at)
            end = match.start() if match else len(chunk)
            if self.depth == self.base:
                self._check_gap(chunk[at:end])
            self.line += chunk.count("\n", at, end)
            at = end + 1
            if not match:
                break
            inside = self.depth > self.base
            if self._step(match[0]) and not inside and self.depth > self.base:
                self.start, kept = self.line, end
            elif inside and self.depth == self.base:
                yield self.start, "".join([*self.parts, chunk[kept:at]])
                self.parts, self.size = [], 0
        if self.depth > self.base:
            self.parts.append(chunk[kept:])
            self.size += len(chunk) - kept
            if self.size > LINE_LIMIT:
                raise self.source.error(f"an object of more than {LINE_LIMIT:,} characters", self.start)

    def finish(self) -> None:
        """Refuse a text that ends too early."""
        if self.depth > self.base:
            raise self.source.error("the file ends inside the object that begins here", self.start)
        if self.depth:
            raise self.source.error("the file ends before the ] of its array", self.line)

    def _step(self, mark: str) -> bool:
        """Go past one bracket, quote or backslash; whether it was a bracket that opens an object."""
        if self.in_string:
            self.escaped, self.in_string = mark == "\\", mark != '"'
            return False
        outside = self.depth == self.base
        if mark == "[" and not self.begun:
            self.begun, self.base, self.depth = True, 1, 1
            return False
        if mark == "]" and outside and self.base == 1:
            self.base, self.depth, self.closed = 0, 0, True
            return False
        if outside and (mark != "{" or self.closed):
            raise self.source.error(f"an object was expected, got {mark!r}", self.line)
        self.begun = True
        self.in_string = mark == '"'
        self.depth += {"{": 1, "[": 1, "}": -1, "]": -1, '"': 0}[mark]
        return mark == "{"

    def _check_gap(self, text: str) -> None:
        gap = _GAP.match(text)
        if gap and gap.end() < len(text):
            raise self.source.error(f"an object was expected, got {text[gap.end() : gap.end() + 20]!r}", self.line)


DEEPEST = 8


def read_json(source: SpectrumSource) -> Iterator[Spectrum | SpectrumError]:
    """Spectra, and what is wrong with those that cannot be read.

    An array of objects, objects one after the other (JSON lines), or one object with a list `spectra`. Peaks are
    `mzs` and `intensities`, or pairs under `peaks` or `peaks_json` (a list, or that list as text), or MoNA's
    `spectrum`, "m/z:intensity ...". Other keys are those of the text formats. A `collision_energy` that is a
    number is in eV; a text follows the rules of `parse_collision_energy`.
    """
    for line, text in json_objects(source):
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as problem:
            yield source.error(f"not JSON: {problem}", line)
            continue
        spectra = data.get("spectra")
        if not isinstance(spectra, list):
            yield _read_object(source, data, line)
            continue
        for number, item in enumerate(spectra, start=1):
            if isinstance(item, dict):
                yield _read_object(source, item, line)
            else:
                yield source.error(f"spectra: item {number} is not an object", line)


def _read_object(source: SpectrumSource, data: dict[str, Any], line: int) -> Spectrum | SpectrumError:
    fields = Fields(source.origin(line))
    _note(fields, data, line, depth=0)
    try:
        mzs, intensities = _peaks(data)
    except (ValueError, RecursionError) as problem:
        return source.error(str(problem), line)
    energy = next((value for key, value in data.items() if plain_key(key) == "collisionenergy"), None)
    return fields.spectrum(mzs, intensities, electronvolts=float(energy) if _is_number(energy) else None)


def _note(fields: Fields, data: dict[str, Any], line: int, depth: int) -> None:
    """Texts and numbers of an object and of MoNA's nested lists of {name, value}."""
    for key, value in data.items():
        if isinstance(value, str) or _is_number(value):
            fields.add(key, str(value), line)
    if depth == DEEPEST:
        return
    for value in data.values():
        for item in value if isinstance(value, list) else []:
            if not isinstance(item, dict):
                continue
            name, content = item.get("name"), item.get("value")
            if isinstance(name, str) and (isinstance(content, str) or _is_number(content)):
                fields.add(name, str(content), line)
            else:
                _note(fields, item, line, depth + 1)


def _peaks(data: dict[str, Any]) -> tuple[list[float], list[float]]:
    if "mzs" in data or "intensities" in data:
        return _numbers(data.get("mzs"), "mzs"), _numbers(data.get("intensities"), "intensities")
    for key in ("peaks_json", "peaks"):
        pairs = data.get(key)
        if isinstance(pairs, str):
            try:
                pairs = json.loads(pairs)
            except ValueError:
                raise ValueError(f"{key}: a list of [m/z, intensity] was expected") from None
        if pairs is not None:
            return _unzipped(pairs, key)
    text = data.get("spectrum")
    if isinstance(text, str):
        pairs = [item.split(":") for item in re.split(r"[\s;]+", text.strip())]
        try:
            return _unzipped([[float(number) for number in pair] for pair in pairs], "spectrum")
        except ValueError:
            raise ValueError('spectrum: "m/z:intensity m/z:intensity ..." was expected') from None
    raise ValueError("no peaks: mzs and intensities, peaks, peaks_json or spectrum was expected")


def _unzipped(pairs: Any, key: str) -> tuple[list[float], list[float]]:
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) >= 2 for pair in pairs):
        raise ValueError(f"{key}: a list of [m/z, intensity] was expected")
    return _numbers([pair[0] for pair in pairs], key), _numbers([pair[1] for pair in pairs], key)


def _numbers(values: Sequence[Any] | None, key: str) -> list[float]:
    if not isinstance(values, list) or not all(map(_is_number, values)):
        raise ValueError(f"{key}: a list of numbers was expected")
    return [float(value) for value in values]


def _is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number that a float can hold."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) < 10**300
    return isinstance(value, float)
