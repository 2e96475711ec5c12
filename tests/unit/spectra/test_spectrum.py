"""What belongs to a spectrum: collision energies, as people write them."""

import csv
from pathlib import Path

import pytest

from graphwright.spectra import parse_collision_energy

GOLDEN = Path(__file__).parents[2] / "golden" / "spectra" / "collision_energy.csv"
with GOLDEN.open(newline="") as file:
    ROWS = list(csv.DictReader(file))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['text']} {row['instrument_type']}")
def test_as_the_massbank_data_was_made(row):
    energy = parse_collision_energy(row["text"], row["instrument_type"], float(row["precursor_mz"]))
    if not row["unit"]:
        assert energy is None
        return
    assert energy is not None
    assert energy.electronvolts == pytest.approx(float(row["electronvolts"]), rel=1e-6)
    assert (energy.unit, energy.multiple) == (row["unit"], row["multiple"] == "true")


@pytest.mark.parametrize(
    ("text", "instrument", "electronvolts"),
    [
        ("NCE=35% 14eV", "HCD-Orbitrap", 14),
        ("HCD 30", "LC-ESI-QFT", 15),
        ("30 HCD", "Q Exactive Orbitrap", 15),
        ("22,5 eV", "QTOF", 22.5),
        ("10, 20, 40 eV", "QTOF", 70 / 3),
        ("10-40", "QTOF", 25),
        ("30", "Orbitrap", 15),
        ("30", "QTOF", 30),
        ("30 eV", None, 30),
        ("30", None, None),
        ("30", "QqQ", None),
        ("", "QTOF", None),
        ("eV", "QTOF", None),
        ("high", "QTOF", None),
        ("0 eV", "QTOF", None),
        ("9" * 400 + " eV", "QTOF", None),
        ("10 or 20 eV", "QTOF", None),
    ],
)
def test_other_ways_of_writing(text, instrument, electronvolts):
    energy = parse_collision_energy(text, instrument, 250.0)
    assert (energy.electronvolts if energy else None) == (electronvolts and pytest.approx(electronvolts))


def test_normalised_energy_needs_the_precursor():
    assert parse_collision_energy("30 % (nominal)", "LC-ESI-QFT") is None
    assert parse_collision_energy("scaled 80 (m/z=200) to 110 (m/z=120)", "LC-ESI-QFT") is None
