"""What people's files are like: read right, or refused by file and line."""

import gzip
import json

import numpy as np
import pytest

from graphwright.spectra import SpectrumError, read_spectra, tidy_peaks

MGF = "BEGIN IONS\nPEPMASS=200\n{}\nEND IONS\n"
MSP = "Name: x\nPrecursorMZ: 200\n{}\n\n"


def peaks_of(tmp_path, text, name="file"):
    path = tmp_path / name
    path.write_text(text)
    [spectrum] = read_spectra(path)
    return list(zip(spectrum.mzs.tolist(), spectrum.intensities.tolist(), strict=True))


@pytest.mark.parametrize("layout", [MGF, MSP])
@pytest.mark.parametrize(
    "lines",
    [
        "50.5 10\n60.25 20",
        "50.5\t10\n60.25\t20",
        "  50.5   10  \n\t60.25 \t 20",
        "50,5 10\n60,25 20,0",
        "50,5\t10,0\n60,25\t20,0",
        "50.5, 10\n60.25, 20",
        "50.5,10\n60.25,20",
        "50.5:10\n60.25:20",
        "60.25 20\n50.5 10",
        "50.5 10\n60.25 20\n60.25 20",
        "50.5 10\n60.25 20\n60.25 3",
        "50.5 10\n55 0\n60.25 20",
        "50.5 1e1\n6.025E+01 +2.0e1",
        '50.5 10 "a; b"\n60.25 20 y3',
    ],
)
def test_ways_of_writing_peaks(tmp_path, layout, lines):
    assert peaks_of(tmp_path, layout.format(lines)) == [(50.5, 10.0), (60.25, 20.0)]


@pytest.mark.parametrize(
    "lines",
    [
        "50.5 10; 60.25 20",
        "50.5 10;60.25 20;",
        "50.5 10 60.25 20",
        "(50.5 10) (60.25 20)",
        "Num Peaks: 2\n50.5 10\n60.25 20",
        "Num peaks: 2\n50.5 10; 60.25 20",
        'NUM PEAKS: 2\n50.5 10 "x/1ppm"\n60.25 20 "y 3 4"',
        "Num Peaks: 2\n\n50.5 10\n60.25 20",
        "Num Peaks: 2\n50.5 10\n\n60.25 20",
        "# by hand\n50.5 10\n# more\n60.25 20",
        "2nd name: y\n(50.5,10) (60.25,20)",
    ],
)
def test_ways_of_writing_peaks_in_msp(tmp_path, lines):
    assert peaks_of(tmp_path, MSP.format(lines)) == [(50.5, 10.0), (60.25, 20.0)]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (MGF.format("50.5"), 3, "two numbers"),
        (MGF.format("50.5 ten"), 3, "number was expected"),
        (MGF.format("50.5 nan"), 3, "number was expected"),
        (MGF.format("50.5 1e999"), 3, "number was expected"),
        (MGF.format("1,000.5 10"), 3, "number was expected"),
        (MGF.format("50.5 1,234"), 3, "a decimal point and a comma"),
        (MGF.format("50,5 12.5"), 3, "a decimal point and a comma"),
        (MGF.format("1e300 10"), 1, "at most 1e+07"),
        (MGF.replace("200", "1e300").format("50 1"), 1, "precursor_mz must be positive and at most"),
        (MGF.format("FORMULA=C0H0\n50 1"), 3, "has no atoms"),
        (MGF.format("NUMPEAKS=3\n50 1"), 3, "3 peaks announced, 1 found"),
        (MGF.format("0 10"), 1, "must be positive"),
        (MGF.format("-5 10"), 1, "must be positive"),
        (MGF.format(""), 1, "no peaks"),
        (MGF.format("50 0"), 1, "no peaks"),
        (MGF.format("FORMULA=Zz3\n50 1"), 3, "formula: formula 'Zz3' has an unknown element"),
        (MGF.format("MSLEVEL=1\n50 1"), 3, "tandem"),
        (MGF.format("NUM_PEAKS=3\n50 1"), 3, "3 peaks announced, 1 found"),
        (MGF.replace("200", "-3").format("50 1"), 2, "precursor_mz: must be positive"),
        (MGF.replace("200", "many").format("50 1"), 2, "precursor_mz: a number"),
        (MGF.format("50 1").replace("END IONS", ""), 4, "ends before END IONS"),
        ("50 1\n" + MGF.format("50 1"), 1, "BEGIN IONS was expected"),
        ("END IONS\n" + MGF.format("50 1"), 1, "without BEGIN IONS"),
        (MSP.format("Num Peaks: 3\n50 1\n60 2"), 3, "3 peaks announced, 2 found"),
        (MSP.format("Num Peaks: 2\n50 1\n\n60 2\n70 3"), 3, "2 peaks announced, 3 found"),
        (MSP.format("50.5 1,234"), 3, "a decimal point and a comma"),
        (MSP.format("50-02-2 registry\nNum Peaks: 1\n50 1"), 3, "number was expected"),
        (MSP.format("50 1\nwhat is this\n51 1"), 4, "`Key: value`"),
        ("50 1\n60 1\nwhat is this\nNum Peaks: 2\n", 1, "a peak before the `Name:`"),
        (MSP.format("Num Peaks: many\n50 1"), 3, "number of peaks"),
        (MSP.format("Num Peaks: 0"), 1, "no peaks"),
        (MSP.format("Spectrum_type: MS1\n50 1"), 3, "tandem"),
        (MSP.format("what is this\n50 1"), 3, "`Key: value`"),
        ("ACCESSION: X\nPK$PEAK: m/z int. rel.int.\n  50 1 999\n", 3, "ends before the //"),
        ("ACCESSION: X\nPK$NUM_PEAK: 2\nPK$PEAK: m/z int.\n  50 1 999\n//\n", 2, "2 peaks announced"),
        ("ACCESSION: X\nDEPRECATED: 2020 wrong\nPK$PEAK: m/z int.\n  50 1 999\n//\n", 2, "deprecated"),
        ("mzs\tintensities\n1,2\t1\n", 2, "as many intensities"),
        ("mzs\tintensities\n1,x\t1,2\n", 2, "mzs: a number"),
        ("mzs\tintensities\n1,2\n", 2, "2 cells"),
        ("mzs\tintensities\tcollision_energy\n1\t1\t-4\n", 2, "collision_energy"),
        ("mzs\tintensities\tcollision_energy\n1\t1\tlow\n", 2, "number"),
        ("[\n{}\n]", 2, "no peaks"),
        ('[\n{"mzs": [1], "intensities": [true]}\n]', 2, "intensities: a list of numbers"),
        ('[\n{"mzs": [NaN], "intensities": [1]}\n]', 2, "finite"),
        ('[\n{"mzs": [1' + "0" * 400 + '], "intensities": [1]}\n]', 2, "mzs: a list of numbers"),
        ('{"peaks": [[1]]}', 1, "peaks: a list of"),
        ('{"spectrum": "1:2:x"}', 1, "spectrum: "),
        ('{"spectra": [3]}', 1, "item 1 is not an object"),
        ('[{"a": [1, 2', 1, "ends inside the object"),
        ('[{"mzs": [1], "intensities": [1]}', 1, "before the ]"),
        ("[1, 2]", 1, "object was expected"),
        ("[]{}", 1, "object was expected"),
        ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", 1, "not JSON"),
        ("BEGIN IONS\n\x00\x01\n", 2, "binary data"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path, text, line, problem):
    path = tmp_path / "file"
    path.write_text(text)
    errors: list[SpectrumError] = []
    try:
        spectra = list(read_spectra(path, errors.append))
    except SpectrumError as error:
        errors, spectra = [error], []
    assert spectra == [] or "BEGIN IONS" in problem
    assert len(errors) == 1
    assert str(path) in str(errors[0])
    assert problem in str(errors[0])
    assert errors[0].origin.number == line


@pytest.mark.parametrize("layout", [MGF, MSP])
def test_a_bad_spectrum_does_not_hide_the_others(tmp_path, layout):
    path = tmp_path / "file"
    path.write_text("\n".join(layout.format(peak) for peak in ["50 1", "50 x", "51 1", "", "52 1"]))
    errors: list[SpectrumError] = []
    assert [spectrum.mzs[0] for spectrum in read_spectra(path, errors.append)] == [50, 51, 52]
    assert len(errors) == 2
    with pytest.raises(SpectrumError, match="'x'"):
        list(read_spectra(path))


@pytest.mark.parametrize(
    "text",
    [
        "NAME : a\n50 1\nNAME : b\n51 1\n52 1\n",
        "PrecursorMZ: 60\n50 1\nPrecursorMZ: 70\n51 1\n52 1\n",
        "PrecursorMZ: 60\n50 1\n\n\nPrecursorMZ: 70\nNum Peaks: 2\n51 1\n\n52 1\n",
    ],
)
def test_spectra_of_an_msp_file_are_kept_apart(tmp_path, text):
    path = tmp_path / "x.msp"
    path.write_text(text)
    assert [spectrum.mzs.tolist() for spectrum in read_spectra(path)] == [[50], [51, 52]]


@pytest.mark.parametrize("key", ["ADDUCT", "ION", "Precursor_type", "ADDUCT_TYPE"])
def test_names_of_the_adduct(tmp_path, key):
    path = tmp_path / "x.mgf"
    path.write_text(MGF.format(f"{key}=M+H\n50 1"))
    assert [spectrum.adduct for spectrum in read_spectra(path)] == ["[M+H]+"]


def test_what_json_can_write_and_no_terminal_should_see_is_left_out(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"mzs": [1], "intensities": [1], "name": "a\\u001b[2Jb\\u0000", "id": "\\ud800"}')
    [spectrum] = read_spectra(path)
    assert (spectrum.name, spectrum.identifier) == ("a [2Jb", None)


def test_an_unfinished_spectrum_does_not_hide_the_next(tmp_path):
    path = tmp_path / "file"
    path.write_text("BEGIN IONS\n50 1\n" + MGF.format("51 1"))
    errors: list[SpectrumError] = []
    assert [spectrum.mzs[0] for spectrum in read_spectra(path, errors.append)] == [51]
    assert errors[0].origin.number == 3


def test_parameters_before_the_first_spectrum_hold_for_all(tmp_path):
    path = tmp_path / "file"
    path.write_text("CHARGE=2-\nINSTRUMENT=QTOF\n" + MGF.format("50 1") + MGF.format("CHARGE=1+\n51 1"))
    assert [(spectrum.charge, spectrum.instrument_type) for spectrum in read_spectra(path)] == [
        (-2, "QTOF"),
        (1, "QTOF"),
    ]


@pytest.mark.parametrize("kind", ["mgf", "msp", "json", "tsv", "massbank"])
def test_a_hundred_thousand_peaks(tmp_path, kind):
    mzs = np.round(np.linspace(50, 1500, 100_000), 6)
    peaks = "\n".join(f"  {mz} 1.5" for mz in mzs.tolist())
    lists = ",".join(map(str, mzs.tolist())), ",".join(["1.5"] * len(mzs))
    text = {
        "mgf": MGF.format(peaks),
        "msp": MSP.format(f"Num Peaks: {len(mzs)}\n{peaks}"),
        "json": json.dumps({"mzs": mzs.tolist(), "intensities": [1.5] * len(mzs)}),
        "tsv": "mzs\tintensities\n" + "\t".join(lists),
        "massbank": f"ACCESSION: X\nPK$PEAK: m/z int. rel.int.\n{peaks}\n//\n",
    }[kind]
    (tmp_path / "file").write_text(text)
    [spectrum] = read_spectra(tmp_path / "file")
    np.testing.assert_array_equal(spectrum.mzs, mzs)


def test_decimal_commas_and_units_in_fields(tmp_path):
    path = tmp_path / "file"
    path.write_text("Name: Gr\xfcn\nPrecursorMZ: 200,5\nCollision_energy: 22,5 eV\n50,5 1\n", encoding="latin-1")
    [spectrum] = read_spectra(path)
    assert (spectrum.name, spectrum.precursor_mz, spectrum.collision_energy) == ("Grün", 200.5, 22.5)


def test_a_missing_precursor_is_computed(tmp_path):
    path = tmp_path / "file"
    path.write_text("Name: x\nPrecursorMZ: 0\nAdduct: M+H\nFormula: C8H10N4O2\n50 1\n")
    [spectrum] = read_spectra(path)
    assert spectrum.precursor_mz == pytest.approx(195.08765, abs=1e-5)
    assert spectrum.adduct == "[M+H]+"


def test_unknown_values_are_none(tmp_path):
    path = tmp_path / "file"
    path.write_text("Name: N/A\nAdduct: [M+X?]+\nSMILES: \nFormula: n/a\nCharge: 2+ and 3+\n50 1\n")
    [spectrum] = read_spectra(path)
    assert (spectrum.name, spectrum.smiles, spectrum.formula, spectrum.charge) == (None, None, None, None)
    assert spectrum.adduct == "[M+X?]+"


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path):
    path = tmp_path / "bomb.mgf.gz"
    path.write_bytes(gzip.compress(b"#" + b" " * 3_000_000 + b"\n" + MGF.format("50 1").encode()))
    assert path.stat().st_size < 10_000
    with pytest.raises(SpectrumError, match=r"bomb.mgf.gz: more than 1,000,000 bytes"):
        list(read_spectra(path, size_limit=1_000_000))
    assert len(list(read_spectra(path))) == 1


def test_an_endless_line_is_refused(tmp_path, monkeypatch):
    from graphwright.spectra.files import record

    monkeypatch.setattr(record, "LINE_LIMIT", 1000)
    path = tmp_path / "x.mgf"
    path.write_text("# fine\n" + "x" * 1001)
    with pytest.raises(SpectrumError, match="line 2: a line of more than 1,000"):
        list(read_spectra(path))


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN IONS\n" + "".join(f"K{at}=v\n" for at in range(30)) + "50 1\nEND IONS\n",
        "Name: x\n" + "".join(f"K{at}: v\n" for at in range(30)) + "50 1\n",
        "Name: x\n" + 'Comments: "a=b"\n' * 10 + "50 1\n",
        "ACCESSION: X\n" + "CH$NAME: yyyy\n" * 12 + "PK$PEAK: m/z\n  50 1\n//\n",
        "".join(f"K{at}=v\n" for at in range(30)) + MGF.format("50 1"),
    ],
)
def test_text_without_end_is_refused(tmp_path, monkeypatch, text):
    from graphwright.spectra.files import record
    from graphwright.spectra.files import text as line_formats

    path = tmp_path / "file"
    path.write_text(text)
    assert len(list(read_spectra(path))) == 1
    for module in (line_formats, record):
        monkeypatch.setattr(module, "TEXT_LIMIT", 100)
    with pytest.raises(SpectrumError, match=r"line .*: more than 100 characters"):
        list(read_spectra(path))


def test_a_damaged_gzip_file_gives_what_it_has_and_is_refused(tmp_path):
    spectra = "".join(MGF.format(f"{50 + index / 7:.6f} 1") for index in range(3000))
    packed = gzip.compress(spectra.encode())
    (tmp_path / "x.mgf").write_bytes(packed[: len(packed) // 2])
    found = []
    with pytest.raises(SpectrumError, match="damaged gzip"):
        found.extend(iter(read_spectra(tmp_path / "x.mgf")))


@pytest.mark.parametrize("name", ["none.mgf", "none.parquet", "none", "."])
def test_a_file_that_is_not_there_is_named(tmp_path, name):
    with pytest.raises(SpectrumError) as caught:
        list(read_spectra(tmp_path / name))
    assert str(tmp_path / name) in str(caught.value)


def test_reading_is_lazy(tmp_path):
    path = tmp_path / "file"
    path.write_text(MGF.format("50 1") + MGF.format("50 x"))
    spectra = read_spectra(path)
    assert next(spectra).mzs.tolist() == [50]
    with pytest.raises(SpectrumError):
        next(spectra)


def test_tidy_peaks():
    mzs, intensities = tidy_peaks([3, 1, 2, 1, 4], [1, 5, 0, 7, -2])
    assert mzs.tolist() == [1, 3]
    assert intensities.tolist() == [7, 1]
    for spoilt in ([np.inf], [np.nan], [0.0]):
        with pytest.raises(ValueError, match="m/z"):
            tidy_peaks(spoilt, [1.0])
