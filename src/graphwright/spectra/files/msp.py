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
_PEAK = re.compile(r"\(?\s*[+.-]?[0-9]")


def read_msp(source: Source) -> Iterator[Spectrum | SpectrumError]:
    """Spectra, and what is wrong with those that cannot be read.

    A spectrum ends at an empty line after its peaks, or where the next `Name:` begins. `Num Peaks`, where given,
    is checked; without it, lines that begin with a number are peaks. Synonyms, `Synon: ...`, are passed over.
    """
    record: Record | None = None
    comments: list[tuple[str, int]] = []
    in_peaks = False
    for number, line in source.lines():
        text = line.strip()
        starts = text[:5].lower() == "name:"
        if record and (starts or (not text and in_peaks)):
            yield _finished(record, comments)
            record = None
        if record is None:
            comments, in_peaks = [], False
        if not text or (record is None and text[0] == "#"):
            continue
        record = record or Record(source, number)
        if _PEAK.match(text):
            in_peaks = True
            record.add_peaks(text, number, several=True)
            continue
        key, colon, value = text.partition(":")
        if not colon:
            record.fail(f"`Key: value` or a peak was expected, got {text[:40]!r}", number)
        elif plain_key(key) in ("numpeaks", "numpeak"):
            # Some files leave a line empty before the peaks; after none there is nothing to wait for.
            in_peaks = value.strip() == "0"
            record.declare(value, number)
        elif plain_key(key) in ("comment", "comments"):
            comments.append((value, number))
        else:
            record.fields.add(key, value, number)
    if record:
        yield _finished(record, comments)


def _finished(record: Record, comments: list[tuple[str, int]]) -> Spectrum | SpectrumError:
    # After all other keys, since what stands in its own line counts more than what stands in a comment.
    for text, number in comments:
        for key, value in _COMMENT.findall(text):
            record.fields.add(key, value, number)
    return record.result()
