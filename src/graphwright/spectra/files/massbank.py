"""MassBank records: one or more in a file, each ended by a line of two slashes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphwright.spectra.files.record import Record
from graphwright.spectra.files.source import Source
from graphwright.spectra.spectrum import Spectrum, SpectrumError

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


def read_massbank(source: Source) -> Iterator[Spectrum | SpectrumError]:
    """Spectra, and what is wrong with those that cannot be read; deprecated records are errors too.

    An adduct that no field gives is taken from the title, where MassBank's rules repeat it.
    """
    record: Record | None = None
    in_peaks = False
    for number, line in source.lines():
        if line.startswith("//"):
            if record:
                yield _finished(record)
            record = None
            continue
        tag, colon, value = line.partition(": ")
        if record and tag == "ACCESSION":
            record.fail("ACCESSION before the // that ends the record before", number)
            yield _finished(record)
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
        yield _finished(record)


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


def _finished(record: Record) -> Spectrum | SpectrumError:
    if record.fields.text("adduct") is None:
        # The name is the compound's, so the title has to be asked for by its own key.
        found = _ADDUCT_IN_TITLE.search(record.fields.value("record_title") or "")
        if found:
            record.fields.add("precursor_type", found[0], record.line)
    return record.result()
