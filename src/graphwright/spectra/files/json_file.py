"""Spectra as JSON: our own layout, matchms's, GNPS's and MoNA's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from graphwright.spectra.files.fields import Fields, plain_key
from graphwright.spectra.files.json_objects import json_objects
from graphwright.spectra.files.source import Source
from graphwright.spectra.spectrum import Spectrum, SpectrumError

DEEPEST = 8


def read_json(source: Source) -> Iterator[Spectrum | SpectrumError]:
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


def _read_object(source: Source, data: dict[str, Any], line: int) -> Spectrum | SpectrumError:
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
