"""NIST's MSP, in the dialects of NIST and of MassBank of North America (MoNA)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphwright.spectra.files.fields import plain_key
from graphwright.spectra.files.record import Record
from graphwright.spectra.files.source import Source
from graphwright.spectra.spectrum import Spectrum, SpectrumError

# MoNA keeps much in its comments, as "key=value" in quotes.
_COMMENT = re.compile(r'"([^"=]+)=([^"]*)"')
_NAME = re.compile(r"name\s*:", re.IGNORECASE)
# A number that stands by itself: keys may begin with one too.
_PEAK = re.compile(r"\(?\s*[+-]?[.,]?[0-9][0-9.,eE+-]*(?:[\s:;)]|$)")


def read_msp(source: Source) -> Iterator[Spectrum | SpectrumError]:
    """Spectra, and what is wrong with those that cannot be read.

    A spectrum ends where the next `Name:`, or any key after its peaks, begins. `Num Peaks`, where given, is
    checked; without it, lines that begin with a number are peaks. Synonyms, `Synon: ...`, are passed over, and so
    are lines that begin with #.
    """
    record: Record | None = None
    comments: list[tuple[str, int]] = []
    in_peaks = gap = False
    for number, line in source.lines():
        text = line.strip()
        if not text or text[0] == "#":
            gap = gap or not text
            continue
        key, colon, value = text.partition(":")
        is_peak = bool(_PEAK.match(text))
        # What is neither key nor peak, or follows a fault, belongs to the spectrum before, unless an empty line
        # parts them.
        begins = _NAME.match(text) or (in_peaks and (gap or (colon and not (record and record.problem))))
        if record and not is_peak and begins:
            yield _finished(record, comments)
            record = None
        if record is None:
            record, comments, in_peaks = Record(source, number), [], False
            if is_peak:
                record.fail("a peak before the `Name:` of its spectrum", number)
        gap = False
        if is_peak:
            in_peaks = True
            record.add_peaks(text, number, several=True)
        elif not colon:
            record.fail(f"`Key: value` or a peak was expected, got {text[:40]!r}", number)
        elif plain_key(key) in ("numpeaks", "numpeak"):
            in_peaks = value.strip() == "0"  # there is nothing to wait for
            record.declare(value, number)
        elif plain_key(key) not in ("comment", "comments"):
            record.note(key, value, number)
        elif record.has_room(text, number):
            comments.append((value, number))
    if record:
        yield _finished(record, comments)


def _finished(record: Record, comments: list[tuple[str, int]]) -> Spectrum | SpectrumError:
    # After all other keys, since what stands in its own line counts more than what stands in a comment.
    for text, number in comments:
        for key, value in _COMMENT.findall(text):
            record.fields.add(key, value, number)
    return record.result()
