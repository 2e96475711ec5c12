"""Annotation kept in Parquet, tokens, cleaning."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphwright.spectra import (
    ELEMENTS,
    Origin,
    Spectrum,
    SpectrumError,
    annotate,
    annotate_parquet,
    annotated_tokens,
    clean,
    load_annotated,
    most_intense,
    raw_tokens,
    read_spectra,
    subformulas,
)

CAFFEINE = {"mzs": [83.0604, 110.0713, 150.0, 195.0877], "intensities": [0.1, 0.2, 0.05, 1.0]}
ROWS = [
    {**CAFFEINE, "formula": "C8H10N4O2", "adduct": "[M+H]+", "note": "a"},
    {"mzs": [60.0], "intensities": [1.0], "formula": None, "adduct": "[M+H]+", "note": "b"},
    {
        "mzs": [203.05261, 22.98922],
        "intensities": [1.0, 0.5],
        "formula": "C6H12O6",
        "adduct": "[M+Na]+",
        "note": "c",
    },
    {"mzs": [], "intensities": [], "formula": "CH4", "adduct": "[M+H]+", "note": "d"},
    {"mzs": [138.0662], "intensities": [2.0], "formula": "C8H10N4O2", "adduct": "[M+H]+", "note": "e"},
]
BAD = [
    {"mzs": [50.0], "intensities": [1.0], "formula": "Zz", "adduct": "[M+H]+", "note": "f"},
    {"mzs": [50.0], "intensities": [1.0], "formula": "CH4", "adduct": "huh", "note": "g"},
    {"mzs": [50.0, -1.0], "intensities": [1.0, 1.0], "formula": "CH4", "adduct": "[M+H]+", "note": "h"},
]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS).replace_schema_metadata({"origin": "here"}), path)
    return path


@pytest.mark.parametrize("rows_at_once", [1, 2, 1000])
def test_a_file_is_annotated_as_its_spectra_are(source, tmp_path, monkeypatch, rows_at_once):
    monkeypatch.setattr(subformulas, "ROWS_AT_ONCE", rows_at_once)
    target = tmp_path / "annotated.parquet"
    summary = annotate_parquet(source, target)
    assert (summary.rows, summary.annotated, summary.unknown, summary.failed) == (5, 4, 1, 0)
    assert (summary.peaks, summary.explained) == (7, 6)
    loaded = load_annotated(target)
    assert loaded.annotated.tolist() == [True, False, True, True, True]
    assert loaded.offsets.tolist() == [0, 4, 5, 7, 7, 8]
    assert loaded.counts[4].tolist() == [0] * len(ELEMENTS)
    first, last = ({**ROWS[row], "origin": Origin("x")} for row in (0, 4))
    for row, fields in ((0, first), (4, last)):
        fields.pop("note")
        found = annotate(Spectrum(**fields))
        part = slice(loaded.offsets[row], loaded.offsets[row + 1])
        np.testing.assert_array_equal(loaded.counts[part], found.counts_of(ELEMENTS))
        np.testing.assert_allclose(loaded.ppm[part], found.ppm, atol=1e-4)
    assert loaded.counts[5].tolist() == [6, 12, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert loaded.tokens(0).shape == (4, 16)
    assert loaded.raw_tokens(2).tolist() == raw_tokens(np.float32([203.05261, 22.98922]), [1.0, 0.5]).tolist()


def test_other_columns_and_metadata_stay_and_annotating_again_changes_nothing(source, tmp_path):
    target = tmp_path / "annotated.parquet"
    annotate_parquet(source, target, tolerance_ppm=5.0)
    table = pq.read_table(target)
    assert table.column("note").to_pylist() == ["a", "b", "c", "d", "e"]
    assert table.schema.metadata[b"origin"] == b"here"
    assert json.loads(table.schema.metadata[b"graphwright.annotation"])["tolerance_ppm"] == 5.0
    annotate_parquet(target, target, tolerance_ppm=5.0)
    assert pq.read_table(target).drop_columns("peak_ppm").equals(table.drop_columns("peak_ppm"))
    assert len(list(read_spectra(target, on_error=lambda _: None))) == 4


def test_bad_rows_are_named_and_left_empty(tmp_path):
    source, target = tmp_path / "source.parquet", tmp_path / "annotated.parquet"
    pq.write_table(pa.Table.from_pylist([ROWS[0], *BAD, ROWS[2]]), source)
    with pytest.raises(SpectrumError, match=r"source.parquet, row 2: formula 'Zz'"):
        annotate_parquet(source, target)
    assert [path.name for path in tmp_path.iterdir()] == ["source.parquet"]
    errors: list[SpectrumError] = []
    summary = annotate_parquet(source, target, on_error=errors.append)
    assert [error.origin.number for error in errors] == [2, 3, 4]
    assert (summary.rows, summary.annotated, summary.failed) == (5, 2, 3)
    assert load_annotated(target).annotated.tolist() == [True, False, False, False, True]


def test_files_that_cannot_be_annotated_or_loaded_are_named(source, tmp_path):
    with pytest.raises(SpectrumError, match="run annotate_parquet"):
        load_annotated(source)
    (tmp_path / "text.parquet").write_text("hello")
    for path in (tmp_path / "text.parquet", tmp_path / "none.parquet"):
        with pytest.raises(SpectrumError, match=path.name):
            annotate_parquet(path, tmp_path / "out")
    pq.write_table(
        pa.table({"mzs": [[1.0]], "intensities": [[1.0]], "formula": ["C"]}), tmp_path / "short.parquet"
    )
    with pytest.raises(SpectrumError, match="a column adduct was expected"):
        annotate_parquet(tmp_path / "short.parquet", tmp_path / "out")
    pq.write_table(pa.table({"mzs": ["x"], "intensities": [[1.0]]}), tmp_path / "wrong.parquet")
    with pytest.raises(SpectrumError, match="a column mzs of lists of numbers"):
        annotate_parquet(tmp_path / "wrong.parquet", tmp_path / "out")


def test_tokens():
    counts = np.zeros((2, 14), dtype=np.uint16)
    counts[1] = np.arange(14)
    tokens = annotated_tokens([100.0, 250.0], [5.0, 10.0], counts)
    assert tokens.dtype == np.float32
    assert tokens.shape == (2, 16)
    np.testing.assert_allclose(tokens[:, :2], [[0.1, 0.5], [0.25, 1.0]], rtol=1e-6)
    assert tokens[0, 2:].tolist() == [0.0] * 14
    np.testing.assert_allclose(tokens[1, 2:6], [0, 1 / 20, 2 / 5, 3 / 5], rtol=1e-6)
    with pytest.raises(ValueError, match=r"\(n, 14\)"):
        annotated_tokens([100.0], [1.0], np.zeros((1, 3)))
    assert raw_tokens([], []).shape == (0, 2)


def test_cleaning_as_the_massbank_data_was_cleaned():
    spectrum = Spectrum(
        [50.0, 60.0, 70.0, 101.0, 101.5], [4.0, 8.0, 4.0, 1.0, 99.0], Origin("x"), precursor_mz=100.0
    )
    cleaned = clean(spectrum, max_peaks=2)
    assert cleaned.mzs.tolist() == [50, 60]
    assert cleaned.intensities.tolist() == [0.5, 1.0]
    assert clean(spectrum).mzs.tolist() == [50, 60, 70, 101]
    assert most_intense([1.0, 3.0, 2.0], 2).tolist() == [1, 2]
    with pytest.raises(ValueError, match="above the precursor"):
        clean(Spectrum([50.0], [1.0], Origin("x"), precursor_mz=20.0))
