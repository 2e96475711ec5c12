"""MassSpecGym's tab-separated table, one spectrum a row."""

from __future__ import annotations

from collections.abc import Iterator

from graphwright.spectra.files.fields import Fields, parse_number
from graphwright.spectra.files.source import Source
from graphwright.spectra.spectrum import Spectrum, SpectrumError

COLUMNS = (
    "identifier",
    "mzs",
    "intensities",
    "smiles",
    "inchikey",
    "formula",
    "precursor_formula",
    "parent_mass",
    "precursor_mz",
    "adduct",
    "instrument_type",
    "collision_energy",
    "fold",
    "simulation_challenge",
)
REQUIRED = ("mzs", "intensities")


def read_massspecgym(source: Source) -> Iterator[Spectrum | SpectrumError]:
    """Spectra, and what is wrong with those that cannot be read.

    The first line names the columns; `mzs` and `intensities`, lists with commas, must be there, other columns
    of MassSpecGym may be missing, and unknown ones are passed over. `collision_energy` is in eV.
    """
    header: list[str] | None = None
    for number, line in source.lines():
        if not line.strip():
            continue
        cells = [cell.strip().strip('"') for cell in line.split("\t")]
        if header is None:
            header = [cell.lower() for cell in cells]
            missing = [name for name in REQUIRED if name not in header]
            if missing:
                raise source.error(f"a header with the columns {', '.join(REQUIRED)} was expected", number)
        elif len(cells) != len(header):
            yield source.error(f"{len(header)} cells were expected, as in the header, got {len(cells)}", number)
        else:
            yield _read_row(source, header, cells, number)


def _read_row(source: Source, header: list[str], cells: list[str], number: int) -> Spectrum | SpectrumError:
    fields = Fields(source.origin(number))
    for key, cell in zip(header, cells, strict=True):
        if key in COLUMNS:
            fields.add(key, cell, number)
    column = dict(zip(header, cells, strict=True))
    try:
        mzs, intensities = (_read_list(name, column[name]) for name in REQUIRED)
        energy = fields.text("collision_energy")
        electronvolts = parse_number(energy) if energy is not None else None
    except ValueError as problem:
        return source.error(str(problem), number)
    return fields.spectrum(mzs, intensities, electronvolts=electronvolts)


def _read_list(name: str, cell: str) -> list[float]:
    text = cell.strip("[] ")
    # Semicolons or spaces between the numbers leave the commas to be decimal commas.
    parts = text.replace(";", " ").split() if ";" in text or ("," not in text) else text.split(",")
    try:
        return [parse_number(part) for part in parts]
    except ValueError as problem:
        raise ValueError(f"{name}: {problem}") from None
