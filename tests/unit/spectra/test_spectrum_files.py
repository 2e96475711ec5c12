"""One spectrum in every format; golden files of the dialects; formats told apart."""

import base64
import gzip
import json
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphwright.spectra import Origin, Spectrum, SpectrumError, read_spectra
from graphwright.spectra.files import SpectrumSource, format_of
from graphwright.spectra.files.tables import COLUMNS

GOLDEN = Path(__file__).parents[2] / "golden" / "spectra"
CAFFEINE = Spectrum(
    mzs=np.array([110.0713, 138.0662, 195.0877]),
    intensities=np.array([20.5, 100.0, 55.0]),
    origin=Origin("memory"),
    identifier="X1",
    name="Caffeine",
    precursor_mz=195.0877,
    charge=1,
    adduct="[M+H]+",
    collision_energy=30.0,
    collision_energy_raw="30 eV",
    instrument_type="QTOF",
    formula="C8H10N4O2",
    smiles="Cn1c(=O)c2c(ncn2C)n(C)c1=O",
    inchikey="RYYVLZVUVIJVGH-UHFFFAOYSA-N",
    fold="train",
)
FIELDS = {
    "identifier": "X1",
    "name": "Caffeine",
    "precursor_mz": "195.0877",
    "adduct": "[M+H]+",
    "collision_energy": "30 eV",
    "instrument_type": "QTOF",
    "formula": "C8H10N4O2",
    "smiles": "Cn1c(=O)c2c(ncn2C)n(C)c1=O",
    "inchikey": "RYYVLZVUVIJVGH-UHFFFAOYSA-N",
    "fold": "train",
}
PEAKS = list(zip(CAFFEINE.mzs.tolist(), CAFFEINE.intensities.tolist(), strict=True))
LINES = "".join(f"{mz} {intensity}\n" for mz, intensity in PEAKS)

MGF = "BEGIN IONS\n" + "".join(f"{key.upper()}={value}\n" for key, value in FIELDS.items()) + LINES + "END IONS\n"
MSP = "".join(f"{key}: {value}\n" for key, value in sorted(FIELDS.items(), key=lambda item: item[0] != "name")) + (
    f"Num Peaks: {len(PEAKS)}\n{LINES}\n"
)
MASSBANK = f"""ACCESSION: X1
CH$NAME: Caffeine
CH$FORMULA: C8H10N4O2
CH$SMILES: {FIELDS["smiles"]}
CH$LINK: INCHIKEY {FIELDS["inchikey"]}
AC$INSTRUMENT_TYPE: QTOF
AC$MASS_SPECTROMETRY: MS_TYPE MS2
AC$MASS_SPECTROMETRY: COLLISION_ENERGY 30 eV
MS$FOCUSED_ION: PRECURSOR_M/Z 195.0877
MS$FOCUSED_ION: PRECURSOR_TYPE [M+H]+
PK$NUM_PEAK: 3
PK$PEAK: m/z int. rel.int.
{"".join(f"  {mz} {intensity} 999{chr(10)}" for mz, intensity in PEAKS)}//
"""
TSV = "\t".join(COLUMNS) + "\n" + "\t".join(
    {
        **FIELDS,
        "mzs": ",".join(str(mz) for mz, _ in PEAKS),
        "intensities": ",".join(str(intensity) for _, intensity in PEAKS),
        "precursor_formula": "C8H11N4O2",
        "parent_mass": "194.0804",
        "collision_energy": "30.0",
        "simulation_challenge": "True",
    }[column]
    for column in COLUMNS
)  # fmt: skip
JSON = json.dumps([{**FIELDS, "mzs": CAFFEINE.mzs.tolist(), "intensities": CAFFEINE.intensities.tolist()}])
TEXTS = {"mgf": MGF, "msp": MSP, "massbank": MASSBANK, "tsv": TSV, "json": JSON}


def write(folder: Path, text: str | bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def expected(kind: str) -> Spectrum:
    from dataclasses import replace

    if kind == "massbank":
        return replace(CAFFEINE, fold=None)
    if kind == "tsv":
        return replace(CAFFEINE, name=None, collision_energy_raw="30.0")
    return CAFFEINE


def mzml(spectra: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<mzML xmlns="http://psi.hupo.org/ms/mzml" version="1.1.0">\n'
        f'<run id="r"><spectrumList count="1">{spectra}</spectrumList></run></mzML>'
    )


def mzml_spectrum(level: int = 2, extra: str = "", mzs: np.ndarray = CAFFEINE.mzs, *, packed: bool = False) -> str:
    def term(name: str, value: object = "", accession: str = "MS:1000000", unit: str = "") -> str:
        return f'<cvParam cvRef="MS" accession="{accession}" name="{name}" value="{value}" {unit}/>'

    def array(values: np.ndarray, name: str) -> str:
        content = values.astype("<f8").tobytes()
        data = base64.b64encode(zlib.compress(content) if packed else content).decode()
        compression = ("zlib compression", "MS:1000574") if packed else ("no compression", "MS:1000576")
        return (
            f'<binaryDataArray encodedLength="{len(data)}">{term("64-bit float", accession="MS:1000523")}'
            f"{term(compression[0], accession=compression[1])}{term(name)}"
            f"<binary>{data}</binary></binaryDataArray>"
        )

    return (
        f'<spectrum index="0" id="X1" defaultArrayLength="{len(mzs)}">'
        f"{term('ms level', level, 'MS:1000511')}{extra}{term('spectrum title', 'Caffeine', 'MS:1000796')}"
        '<precursorList count="1"><precursor><selectedIonList count="1"><selectedIon>'
        f"{term('selected ion m/z', 195.0877, 'MS:1000744')}{term('charge state', 1, 'MS:1000041')}"
        f"</selectedIon></selectedIonList><activation>{term('collision energy', 30.0, 'MS:1000045')}</activation>"
        f'</precursor></precursorList><binaryDataArrayList count="2">{array(mzs, "m/z array")}'
        f"{array(CAFFEINE.intensities, 'intensity array')}</binaryDataArrayList></spectrum>"
    )


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("change", ["plain", "crlf", "cr", "bom", "utf-16", "gzip", "no last line end"])
def test_the_same_spectrum_from_every_text_format(tmp_path, kind, change):
    data = TEXTS[kind].encode()
    data = {
        "plain": lambda: data,
        "crlf": lambda: data.replace(b"\n", b"\r\n"),
        "cr": lambda: data.replace(b"\n", b"\r"),
        "bom": lambda: b"\xef\xbb\xbf" + data,
        "utf-16": lambda: TEXTS[kind].encode("utf-16"),
        "gzip": lambda: gzip.compress(data),
        "no last line end": lambda: data.rstrip(b"\n"),
    }[change]()
    assert list(read_spectra(write(tmp_path, data))) == [expected(kind)]


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [("mgf", ".mgf"), ("msp", ".MSP"), ("massbank", ".txt"), ("tsv", ".tsv.gz"), ("json", ".json")],
)
def test_the_same_spectrum_by_the_files_ending(tmp_path, kind, suffix):
    data = TEXTS[kind].encode()
    path = write(tmp_path, gzip.compress(data) if suffix.endswith(".gz") else data, "file" + suffix)
    assert list(read_spectra(path)) == [expected(kind)]


def test_the_same_spectrum_from_parquet(tmp_path):
    row = {**FIELDS, "precursor_mz": 195.0877, "collision_energy": 30.0, "collision_energy_raw": "30 eV"}
    row |= {"mzs": CAFFEINE.mzs.tolist(), "intensities": CAFFEINE.intensities.tolist()}
    broken = {**row, "mzs": [1.0]}
    pq.write_table(pa.Table.from_pylist([row, broken, row]), tmp_path / "file")
    errors: list[SpectrumError] = []
    assert list(read_spectra(tmp_path / "file", errors.append)) == [CAFFEINE, CAFFEINE]
    assert [str(error) for error in errors] == [
        f"{tmp_path / 'file'}, row 2: as many intensities as m/z values expected, got 3 and 1"
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_the_same_spectrum_from_mzml(tmp_path, packed):
    from dataclasses import replace

    spectra = (
        mzml_spectrum(level=1)
        + mzml_spectrum()
        + mzml_spectrum(extra='<cvParam name="profile spectrum" value=""/>')
    )
    data = mzml(spectra).encode()
    errors: list[SpectrumError] = []
    [found] = read_spectra(write(tmp_path, gzip.compress(data) if packed else data), errors.append)
    nothing = dict.fromkeys(["adduct", "instrument_type", "formula", "smiles", "inchikey", "fold"])
    assert found == replace(CAFFEINE, **nothing)
    assert found.origin == Origin(str(tmp_path / "file"), "spectrum", 2)
    assert "spectrum 3: a profile spectrum" in str(errors[0])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (mzml(mzml_spectrum())[:900], "spectrum 1: not mzML that can be read"),
        (mzml(mzml_spectrum() + mzml_spectrum())[:-200], "spectrum 2: not mzML that can be read"),
        (mzml(mzml_spectrum(mzs=CAFFEINE.mzs[:2])), "spectrum 1: as many intensities"),
        (mzml(mzml_spectrum()).replace("<mzML", "<!DOCTYPE x><mzML"), "document type"),
        (mzml(mzml_spectrum()).replace("<binary>", "<binary>&%$"), "spectrum 1: not mzML that can be read"),
        (mzml(mzml_spectrum()).replace("<binary>", "<binary>A"), "spectrum 1: an array that cannot be decoded"),
        ("<mzML", "spectrum 1: not mzML that can be read"),
    ],
)
def test_spoilt_mzml_is_refused(tmp_path, data, problem):
    with pytest.raises(SpectrumError, match=problem):
        list(read_spectra(write(tmp_path, data)))


def test_an_array_of_mzml_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    from graphwright.spectra.files import mzml as reader

    path = write(tmp_path, mzml(mzml_spectrum(packed=True) + mzml_spectrum()))
    assert [spectrum.mzs.tolist() for spectrum in read_spectra(path)] == [CAFFEINE.mzs.tolist()] * 2
    monkeypatch.setattr(reader, "PEAK_LIMIT", 2)
    errors: list[SpectrumError] = []
    assert [spectrum.origin.number for spectrum in read_spectra(path, errors.append)] == [2]
    assert "spectrum 1: an array that cannot be decoded: more than 16 bytes" in str(errors[0])


def test_a_spoilt_array_in_mzml_does_not_hide_the_other_spectra(tmp_path):
    spoilt = mzml_spectrum().replace("<binary>", "<binary>A")
    errors: list[SpectrumError] = []
    path = write(tmp_path, mzml(mzml_spectrum() + spoilt + mzml_spectrum()))
    assert [spectrum.origin.number for spectrum in read_spectra(path, errors.append)] == [1, 3]
    assert [error.origin.number for error in errors] == [2]


@pytest.mark.parametrize(
    ("name", "count", "errors"),
    [("library.mgf", 2, 1), ("nist.msp", 2, 0), ("mona.msp", 2, 0), ("record.massbank.txt", 1, 0)],
)
def test_golden_files(name, count, errors):
    problems: list[SpectrumError] = []
    spectra = list(read_spectra(GOLDEN / name, problems.append))
    assert (len(spectra), len(problems)) == (count, errors)
    first = spectra[0]
    assert (first.precursor_mz, first.adduct or "", first.formula) == (195.0877, "[M+H]+", "C8H10N4O2")
    scaled = dict(zip(first.mzs.tolist(), (first.intensities / first.intensities.max()).tolist(), strict=True))
    assert scaled[110.0713] == pytest.approx(0.2055, abs=1e-3)
    assert scaled[195.0877] == pytest.approx(0.55)


def test_golden_details():
    problems: list[SpectrumError] = []
    library = list(read_spectra(GOLDEN / "library.mgf", problems.append))
    assert str(problems[0]).endswith("library.mgf, line 25: a number was expected, got 'sixty'")
    assert [spectrum.origin.number for spectrum in library] == [4, 28]
    nist, nicotine = read_spectra(GOLDEN / "nist.msp")
    assert (nist.identifier, nist.collision_energy, len(nist), len(nicotine)) == ("1234567", 14.0, 4, 3)
    caffeine, theobromine = read_spectra(GOLDEN / "mona.msp")
    assert caffeine.smiles == "Cn1c(=O)c2c(ncn2C)n(C)c1=O"
    assert caffeine.collision_energy == pytest.approx(15 * 195.0877 / 500)
    assert (theobromine.identifier, theobromine.precursor_mz, theobromine.adduct) == (
        "XY000002",
        181.072,
        "[M+H]+",
    )
    assert (theobromine.collision_energy, len(theobromine)) == (20.0, 2)
    [record] = read_spectra(GOLDEN / "record.massbank.txt")
    # The record's field for the adduct is missing; its title has it.
    assert (record.name, record.adduct, record.inchikey) == ("Caffeine", "[M+H]+", "RYYVLZVUVIJVGH-UHFFFAOYSA-N")


@pytest.mark.parametrize(
    "data",
    [
        {"peaks": [[110.0713, 20.5], [138.0662, 100.0], [195.0877, 55.0]]},
        {"peaks_json": "[[110.0713,20.5],[138.0662,100.0],[195.0877,55.0]]"},
        {"spectrum": "110.0713:20.5 138.0662:100.0 195.0877:55"},
    ],
)
@pytest.mark.parametrize("shape", ["one", "array", "lines", "spectra"])
def test_layouts_of_json(tmp_path, data, shape):
    item = {**FIELDS, **data}
    text = {
        "one": json.dumps(item, indent=2),
        "array": json.dumps([item, item]),
        "lines": json.dumps(item) + "\n" + json.dumps(item) + "\n",
        "spectra": json.dumps({"spectra": [item, item]}),
    }[shape]
    assert list(read_spectra(write(tmp_path, text))) == [CAFFEINE] * (1 if shape == "one" else 2)


def test_monas_nested_json(tmp_path):
    item = {
        "id": "X1",
        "spectrum": "110.0713:20.5 138.0662:100.0",
        "compound": [
            {
                "names": [{"name": "Caffeine"}],
                "metaData": [{"name": "SMILES", "value": "C"}, {"name": "molecular formula", "value": "CH4"}],
            }
        ],
        "metaData": [{"name": "precursor m/z", "value": 17.5}, {"name": "collision energy", "value": "20 eV"}],
    }
    [found] = read_spectra(write(tmp_path, json.dumps(item)))
    assert (found.identifier, found.name, found.smiles, found.formula) == ("X1", "Caffeine", "C", "CH4")
    assert (found.precursor_mz, found.collision_energy) == (17.5, 20.0)


def test_a_spoilt_object_in_a_json_array_is_skipped(tmp_path):
    good = json.dumps({"mzs": [50.0], "intensities": [1.0], "name": 'quotes " and } and \\'})
    errors: list[SpectrumError] = []
    path = write(tmp_path, f"[{good},\n{{nonsense}},\n{{}},\n{good}]")
    assert len(list(read_spectra(path, errors.append))) == 2
    assert [error.origin.number for error in errors] == [2, 3]


def test_formats_are_told_apart_by_content(tmp_path):
    names = {"mgf": "mgf", "msp": "msp", "massbank": "massbank", "tsv": "massspecgym", "json": "json"}
    for kind, text in TEXTS.items():
        assert format_of(SpectrumSource(write(tmp_path, text, f"{kind}.txt"))) == names[kind]
    assert format_of(SpectrumSource(write(tmp_path, mzml("")))) == "mzml"
    with pytest.raises(SpectrumError, match="not a file of spectra"):
        format_of(SpectrumSource(write(tmp_path, "Dear reader,\n")))
