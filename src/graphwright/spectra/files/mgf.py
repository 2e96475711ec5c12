"""Mascot Generic Format: `KEY=value` lines and peaks between BEGIN IONS and END IONS."""

from __future__ import annotations

from collections.abc import Iterator

from graphwright.spectra.files.fields import plain_key
from graphwright.spectra.files.record import TEXT_LIMIT, Record
from graphwright.spectra.files.source import Source
from graphwright.spectra.spectrum import Spectrum, SpectrumError


def read_mgf(source: Source) -> Iterator[Spectrum | SpectrumError]:
    """Spectra, and what is wrong with those that cannot be read.

    Parameters before the first spectrum hold for all that do not set them. Lines that begin with # ; ! or / are
    comments. NUM PEAKS, where given, is checked.
    """
    shared: dict[str, tuple[str, int]] = {}
    record: Record | None = None
    stray, kept = False, 0
    for number, line in source.lines():
        text = line.strip()
        command = " ".join(text.upper().split())
        if command == "BEGIN IONS":
            if record:
                record.fail("BEGIN IONS before the END IONS of the spectrum before", number)
                yield record.result()
            record, stray = Record(source, number), False
        elif command == "END IONS":
            if record is None:
                yield source.error("END IONS without BEGIN IONS", number)
                continue
            for key, (value, line_of_key) in shared.items():
                record.fields.add(key, value, line_of_key)
            yield record.result()
            record = None
        elif not text or text[0] in "#;!/":
            continue
        elif record is None:
            key, equals, value = text.partition("=")
            if equals:
                kept += len(text)
                if kept > TEXT_LIMIT:
                    raise source.error(
                        f"more than {TEXT_LIMIT:,} characters of parameters for all spectra", number
                    )
                shared.setdefault(plain_key(key), (value, number))
            elif not stray:
                # Once for all such lines in a row, which may be a whole file of something else.
                stray = True
                yield source.error(f"BEGIN IONS was expected, got {text[:40]!r}", number)
        else:
            _read_line(record, text, number)
    if record:
        record.fail("the file ends before END IONS", number)
        yield record.result()


def _read_line(record: Record, text: str, number: int) -> None:
    key, equals, value = text.partition("=")
    if text[0].isdigit() or not equals:
        record.add_peaks(text, number, several=False)
    elif plain_key(key) in ("numpeaks", "numpeak"):
        record.declare(value, number)
    else:
        record.note(key, value, number)
