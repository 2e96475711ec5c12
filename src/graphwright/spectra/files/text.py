"""The line formats of spectra: MGF, MSP and MassBank's records."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphwright.spectra.files.record import TEXT_LIMIT, Record, SpectrumSource, plain_key
from graphwright.spectra.spectrum import Spectrum, SpectrumError


def read_mgf(source: SpectrumSource) -> Iterator[Spectrum | SpectrumError]:
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


# MoNA keeps much in its comments, as "key=value" in quotes.
_COMMENT = re.compile(r'"([^"=]+)=([^"]*)"')
_NAME = re.compile(r"name\s*:", re.IGNORECASE)
# A number that stands by itself: keys may begin with one too.
_PEAK = re.compile(r"\(?\s*[+-]?[.,]?[0-9][0-9.,eE+-]*(?:[\s:;)]|$)")


def read_msp(source: SpectrumSource) -> Iterator[Spectrum | SpectrumError]:
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
            yield _with_comments(record, comments)
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
        yield _with_comments(record, comments)


def _with_comments(record: Record, comments: list[tuple[str, int]]) -> Spectrum | SpectrumError:
    # After all other keys, since what stands in its own line counts more than what stands in a comment.
    for text, number in comments:
        for key, value in _COMMENT.findall(text):
            record.fields.add(key, value, number)
    return record.result()


# Tags that hold several keys: the first word of the value is the key.
_GROUPS = ("AC$MASS_SPECTROMETRY", "AC$CHROMATOGRAPHY", "MS$FOCUSED_ION", "CH$LINK")
_KEPT = {
    "ACCESSION": "accession",
    "RECORD_TITLE": "record_title",
    "CH$NAME": "name",
    "CH$FORMULA": "formula",
    "CH$SMILES": "smiles",
    "CH$LINK INCHIKEY": "inchikey",
    "AC$INSTRUMENT_TYPE": "instrument_type",
    "AC$MASS_SPECTROMETRY MS_TYPE": "ms_type",
    "AC$MASS_SPECTROMETRY COLLISION_ENERGY": "collision_energy",
    "MS$FOCUSED_ION PRECURSOR_M/Z": "precursor_mz",
    "MS$FOCUSED_ION PRECURSOR_TYPE": "precursor_type",
}
_ADDUCT_IN_TITLE = re.compile(r"\[[0-9]?M[^\]\s]*\][0-9]?[+-]")


def read_massbank(source: SpectrumSource) -> Iterator[Spectrum | SpectrumError]:
    """Spectra, and what is wrong with those that cannot be read; deprecated records are errors too.

    An adduct that no field gives is taken from the title, where MassBank's rules repeat it.
    """
    record: Record | None = None
    in_peaks = False
    for number, line in source.lines():
        if line.startswith("//"):
            if record:
                yield _with_adduct_of_title(record)
            record = None
            continue
        tag, colon, value = line.partition(": ")
        if record and tag == "ACCESSION":
            record.fail("ACCESSION before the // that ends the record before", number)
            yield _with_adduct_of_title(record)
            record = None
        if record is None:
            if not line.strip():
                continue
            record, in_peaks = Record(source, number), False
            if tag != "ACCESSION":
                record.fail(f"ACCESSION was expected, got {line.strip()[:40]!r}", number)
        if in_peaks and line[:1] in (" ", "\t"):
            record.add_peaks(line, number, several=False)
        elif colon and line[:1].isalpha():
            in_peaks = tag == "PK$PEAK"
            _read_tag(record, tag, value, number)
    if record:
        record.fail("the file ends before the // of its last record", number)
        yield _with_adduct_of_title(record)


def _read_tag(record: Record, tag: str, value: str, number: int) -> None:
    if tag in _GROUPS:
        word, _, value = value.partition(" ")
        tag = f"{tag} {word}"
    if tag == "PK$NUM_PEAK":
        record.declare(value, number)
    elif tag == "DEPRECATED":
        record.fail(f"the record is deprecated: {value.strip()[:80]}", number)
    elif tag in _KEPT:
        record.note(_KEPT[tag], value, number)


def _with_adduct_of_title(record: Record) -> Spectrum | SpectrumError:
    if record.fields.text("adduct") is None:
        # The name is the compound's, so the title has to be asked for by its own key.
        match = _ADDUCT_IN_TITLE.search(record.fields.value("record_title") or "")
        if match:
            record.fields.add("precursor_type", match[0], record.line)
    return record.result()
