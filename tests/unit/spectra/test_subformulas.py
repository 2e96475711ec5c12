"""Sub-formulas of peaks, and their annotation kept in a Parquet file."""

import itertools
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphwright.spectra import (
    ELEMENTS,
    Composition,
    Origin,
    Spectrum,
    SpectrumError,
    annotate,
    annotate_parquet,
    annotated_tokens,
    clean,
    explain,
    load_annotated,
    most_intense,
    parse_formula,
    raw_tokens,
    read_spectra,
    subformula_table,
    subformulas,
    table_of,
)
from graphwright.spectra import subformulas as module
from graphwright.spectra.formula import ELECTRON_MASS


def brute_force(
    mz: float, ion: Composition, charge: int, tolerance_ppm: float
) -> tuple[Composition, int, float] | None:
    """The best sub-formula by going through all of them, one by one."""
    elements = [element for element, _ in ion.counts]
    best = None
    for size in range(1, abs(charge) + 1):
        for numbers in itertools.product(*(range(count + 1) for _, count in ion.counts)):
            part = Composition.of(dict(zip(elements, numbers, strict=True)))
            if not any(numbers) or part.double_bond_equivalents < -0.5:
                continue
            computed = (part.mass - math.copysign(size, charge) * ELECTRON_MASS) / size
            ppm = (mz - computed) / computed * 1e6
            if abs(ppm) > tolerance_ppm:
                continue
            others = sum(count for element, count in part.counts if element not in "CH")
            key = (round(abs(ppm) / 1e-3), size, others, -part.count("H"), part.mass - part.count("H"))
            if best is None or key < best[0]:
                best = (key, part, int(math.copysign(size, charge)), ppm)
    return best and best[1:]


FORMULAS = [
    "C6H7NO",
    "C4H9O3PS",
    "C3H4ClF3",
    "CH4",
    "H2O",
    "C2H5NaO2",
    "C5H6N2O2",
    "BrCH3",
    "C4H12Si",
    "NH4",
    "Na",
]


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("charge", [1, -1, 2])
def test_agrees_with_brute_force(text, charge):
    ion = parse_formula(text)
    random = np.random.default_rng(7)
    # Peaks near true sub-formulas, and peaks anywhere; a wide tolerance, so that there is a choice.
    table = subformula_table(ion, charge)
    near = (
        table.masses[random.integers(len(table.masses), size=12)]
        + random.integers(0, table.hydrogens + 1, 12) * 1.00783
    )
    mzs = np.concatenate([near / random.integers(1, abs(charge) + 1, 12), random.uniform(1, ion.mass + 2, 12)])
    mzs = (mzs[mzs > 0.1]) * (1 + random.normal(size=(mzs > 0.1).sum()) * 1e-4)
    found = explain(mzs, table, 2000.0)
    for mz, formula, size, ppm in zip(mzs, found.formulas(), found.charge, found.ppm, strict=True):
        expected = brute_force(mz, ion, charge, 2000.0)
        if expected is None:
            assert formula is None
            assert size == 0
            assert np.isnan(ppm)
        else:
            assert (formula, size) == expected[:2]
            assert ppm == pytest.approx(expected[2], abs=1e-6)


@settings(deadline=None, max_examples=60)
@given(
    counts=st.fixed_dictionaries(
        {"C": st.integers(1, 4), "H": st.integers(0, 8), "N": st.integers(0, 2), "O": st.integers(0, 3)}
    ),
    part=st.integers(0, 2**30),
    shift=st.floats(-40, 40),
)
def test_agrees_with_brute_force_near_a_fragment(counts, part, shift):
    ion = Composition.of(counts)
    table = subformula_table(ion)
    row = part % len(table.masses)
    mz = (table.masses[row] + (part % (table.hydrogens + 1)) * 1.007825 - ELECTRON_MASS) * (1 + shift * 1e-6)
    if mz <= 0:
        return
    expected = brute_force(mz, ion, 1, 30.0)
    found = explain(np.array([mz]), table, 30.0)
    assert found.formulas()[0] == (expected[0] if expected else None)


def test_the_peaks_of_caffeine():
    mzs = np.array([83.0604, 110.0713, 138.0662, 150.0, 195.0877])
    spectrum = Spectrum(mzs, np.ones(5), Origin("here"), formula="C8H10N4O2", adduct="[M+H]+")
    found = annotate(spectrum)
    assert [formula and str(formula) for formula in found.formulas()] == [
        "C4H7N2",
        "C5H8N3",
        "C6H8N3O",
        None,
        "C8H11N4O2",
    ]
    assert found.explained.tolist() == [True, True, True, False, True]
    assert np.nanmax(np.abs(found.ppm)) < 3
    assert found.counts_of(("O", "Na", "C")).tolist() == [[0, 0, 4], [0, 0, 5], [1, 0, 6], [0, 0, 0], [2, 0, 8]]


def test_sodium_stays_or_goes():
    found = explain(np.array([22.98922, 203.05261, 85.02841]), table_of("C6H12O6", "[M+Na]+"), 5.0)
    assert [str(formula) for formula in found.formulas()] == ["Na", "C6H12NaO6", "C4H5O2"]


def test_too_many_hydrogens_are_no_fragment():
    # CH6 has the right mass, and the ion the atoms, but no valence for them.
    assert not explain(
        np.array([18.046950 - ELECTRON_MASS]), subformula_table(parse_formula("C3H9")), 5.0
    ).explained[0]
    assert explain(np.array([18.033826]), subformula_table(parse_formula("C3H9N")), 5.0).explained[0]  # NH4+


def test_a_doubly_charged_peak_may_be_either_and_the_lower_charge_wins_a_tie():
    table = subformula_table(parse_formula("C8H8"), 2)
    found = explain(
        np.array([(4 * 12 + 4 * 1.007825031898) - ELECTRON_MASS, 12 * 3.5 + 3 * 1.007825031898 - ELECTRON_MASS]),
        table,
        5.0,
    )
    assert [str(formula) for formula in found.formulas()] == ["C4H4", "C7H6"]
    assert found.charge.tolist() == [1, 2]


def test_negative_ions_carry_an_electron_more():
    found = explain(
        np.array([34.968853 + ELECTRON_MASS, 34.968853 - ELECTRON_MASS]),
        subformula_table(parse_formula("CHCl"), -1),
        2.0,
    )
    assert found.charge.tolist() == [-1, 0]


def test_no_peaks_have_no_explanations():
    found = explain(np.empty(0), table_of("CH4", "[M+H]+"), 5.0)
    assert found.counts.shape == (0, 2)
    assert found.formulas() == []


def test_work_in_parts_is_the_same_work(monkeypatch):
    table, mzs = table_of("C20H25N3O4S", "[M+H]+"), np.random.default_rng(1).uniform(30, 400, 300)
    whole = explain(mzs, table, 200.0)
    monkeypatch.setattr(module, "LOOKUPS_AT_ONCE", 200)
    parts = explain(mzs, table, 200.0)
    np.testing.assert_array_equal(whole.counts, parts.counts)
    np.testing.assert_array_equal(whole.ppm, parts.ppm)


@pytest.mark.parametrize("mzs", [[-1.0], [np.nan], [0.0], [[1.0]]])
def test_impossible_peaks_are_refused(mzs):
    with pytest.raises(ValueError, match="positive numbers"):
        explain(np.array(mzs), table_of("CH4", "[M+H]+"), 5.0)


def test_what_cannot_be_annotated_is_refused_by_name():
    bare = Spectrum(np.array([50.0]), np.ones(1), Origin("x.mgf", "line", 3), formula="CH4")
    with pytest.raises(ValueError, match=r"x.mgf, line 3: annotation needs the adduct"):
        annotate(bare)
    with pytest.raises(ValueError, match="sub-formulas"):
        subformula_table(parse_formula("C500H900N300O300S50"))
    with pytest.raises(ValueError, match="tolerance"):
        explain(np.array([1.0]), table_of("CH4", "[M+H]+"), 0.0)
    with pytest.raises(ValueError, match="charge"):
        subformula_table(parse_formula("CH4"), 0)


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
