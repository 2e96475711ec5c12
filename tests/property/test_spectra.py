"""Files of spectra at random: what was written is read, and whatever is read, only declared errors come out."""

import gzip
import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphwright.spectra import (
    Composition,
    Spectrum,
    SpectrumError,
    bin_peaks,
    nearest_spectra,
    parse_adduct,
    parse_collision_energy,
    parse_formula,
    read_spectra,
    tidy_peaks,
)
from graphwright.spectra.formula import MASS

GOLDEN = Path(__file__).parents[1] / "golden" / "spectra"
GOLDEN_BYTES = [path.read_bytes() for path in sorted(GOLDEN.iterdir()) if path.suffix != ".csv"]
GOLDEN_BYTES += [
    b"identifier\tmzs\tintensities\tcollision_energy\nX1\t50.5,60.25\t1.0,0.5\t30.0\nX2\t50\t1\t\n",
    b'[{"mzs": [50.5, 60.25], "intensities": [1, 0.5], "formula": "CH4"}, {"peaks": [[1.5, 2]]}]',
    b'{"spectrum": "50.5:1 60:2", "metaData": [{"name": "ms level", "value": "MS2"}]}\n{"peaks_json": "[[1, 2]]"}',
]
ENDINGS = ["", ".mgf", ".msp", ".txt", ".tsv", ".json", ".parquet", ".mgf.gz"]
many = settings(deadline=None, max_examples=300)
some = settings(deadline=None, max_examples=100)

numbers = st.floats(0.001, 1e7).map(lambda value: round(value, 6))
peak_lists = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=20)


def read_all(data: bytes, ending: str = "") -> list[Spectrum]:
    """Spectra of a file; any exception but `SpectrumError` is the test's failure."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{ending}"
        path.write_bytes(data)
        errors: list[SpectrumError] = []
        spectra = []
        try:
            for spectrum in read_spectra(path, errors.append, size_limit=2**24):
                spectra.append(spectrum)
        except SpectrumError as error:
            errors.append(error)
        assert all(str(path) in str(error) for error in errors)
        return spectra


@st.composite
def spoilt_files(draw) -> bytes:
    """A good file with pieces cut out, doubled, or replaced by anything."""
    data = draw(st.sampled_from(GOLDEN_BYTES))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        piece = draw(st.one_of(st.binary(max_size=20), st.just(data[start:end] * 2), st.sampled_from(TRICKS)))
        data = data[:start] + piece + data[end:]
    return data


TRICKS = [
    b"\n",
    b"\r\n",
    b"=",
    b":",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b"\\",
    b"NaN",
    b"1e999",
    b"-1",
    b"//\n",
    b"\xff",
    b"0x1",
]
TRICKS += [
    b"BEGIN IONS\n",
    b"END IONS\n",
    b"Name: \n",
    b"Num Peaks: 99\n",
    b"\t",
    b",",
    b"\x00",
    b"\xd9\xa1",
    b"()",
    b"C9(H",
]


@many
@given(data=spoilt_files(), ending=st.sampled_from(ENDINGS))
@example(data=b"\xff\xfe\x00", ending=".mgf")
@example(data=b"\xff\xfe{\x00\x00\xd8", ending=".json")
@example(data=b"\x1f\x8b", ending="")
@example(data=gzip.compress(b"x" * 100)[:-3], ending=".msp")
@example(data=gzip.compress(gzip.compress(b"BEGIN IONS")), ending=".mgf")
def test_spoilt_files_raise_only_what_is_declared(data, ending):
    for spectrum in read_all(data, ending):
        assert len(spectrum) > 0
        assert (np.diff(spectrum.mzs) > 0).all()


@many
@given(data=st.binary(max_size=300), ending=st.sampled_from(ENDINGS))
def test_garbage_raises_only_what_is_declared(data, ending):
    read_all(data, ending)


@some
@given(data=st.data())
def test_spoilt_parquet_raises_only_what_is_declared(data):
    table = pa.table({"mzs": [[50.5, 60.25], [1.0]], "intensities": [[1.0, 0.5], [1.0]], "formula": ["CH4", None]})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content = bytearray(sink.getvalue().to_pybytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    read_all(bytes(content), ".parquet")


@some
@given(spectra=st.lists(peak_lists, min_size=1, max_size=4), kind=st.sampled_from(["mgf", "msp", "json", "tsv"]))
def test_what_was_written_is_read(spectra, kind):
    if kind == "mgf":
        text = "".join(
            "BEGIN IONS\n" + "".join(f"{mz:.6f} {height:.6f}\n" for mz, height in peaks) + "END IONS\n"
            for peaks in spectra
        )
    elif kind == "msp":
        text = "".join(
            "Name: x\n" + "".join(f"{mz:.6f}\t{height:.6f}\n" for mz, height in peaks) + "\n" for peaks in spectra
        )
    elif kind == "json":
        text = json.dumps([{"peaks": peaks} for peaks in spectra])
    else:
        rows = [
            [",".join(f"{value:.6f}" for value in column) for column in zip(*peaks, strict=True)]
            for peaks in spectra
        ]
        text = "mzs\tintensities\n" + "\n".join("\t".join(row) for row in rows)
    found = read_all(text.encode())
    assert len(found) == len(spectra)
    for spectrum, peaks in zip(found, spectra, strict=True):
        mzs, intensities = tidy_peaks(*np.array(peaks).T)
        np.testing.assert_allclose(spectrum.mzs, mzs, rtol=0, atol=1e-9)
        np.testing.assert_allclose(spectrum.intensities, intensities, rtol=0, atol=1e-9)


@some
@given(peaks=peak_lists, seed=st.integers(0, 2**32 - 1))
def test_the_order_of_peaks_does_not_matter(peaks, seed):
    shuffled = np.random.default_rng(seed).permutation(np.array(peaks))
    for one, other in zip(tidy_peaks(*np.array(peaks).T), tidy_peaks(*shuffled.T), strict=True):
        np.testing.assert_array_equal(one, other)


@many
@given(text=st.one_of(st.text(max_size=30), st.text("CHNO()[]0123456789.+-M ", max_size=20)))
def test_formulas_and_adducts_raise_only_value_errors(text):
    for parse in (parse_formula, parse_adduct):
        try:
            parse(text)
        except ValueError:
            continue


@some
@given(st.dictionaries(st.sampled_from(sorted(MASS)), st.integers(1, 50), min_size=1, max_size=6))
def test_a_written_formula_is_read_again(counts):
    formula = Composition.of(counts)
    assert parse_formula(str(formula)) == formula


@many
@given(
    text=st.one_of(st.text(max_size=30), st.text("0123456789.,-% eVnNCEramp()mz/=or", max_size=30)),
    instrument=st.sampled_from([None, "QTOF", "LC-ESI-QFT", "x"]),
    precursor=st.one_of(st.none(), st.floats(0.1, 1e5)),
)
def test_collision_energies_are_positive_or_unknown(text, instrument, precursor):
    energy = parse_collision_energy(text, instrument, precursor)
    assert energy is None or 0 < energy.electronvolts < np.inf


@some
@given(
    st.lists(peak_lists, min_size=1, max_size=6), st.sampled_from([0.01, 0.1, 5.0]), st.sampled_from([0.5, 1.0])
)
def test_cosines_against_their_definition(spectra, width, power):
    def vector(peaks):
        result: dict[int, float] = {}
        for mz, height in peaks:
            place = int(np.floor(mz / width))
            result[place] = result.get(place, 0.0) + height**power
        return result

    def cosine(one, other):
        dot = sum(value * other.get(place, 0.0) for place, value in one.items())
        return dot / np.sqrt(sum(v * v for v in one.values()) * sum(v * v for v in other.values()))

    offsets = np.cumsum([0, *map(len, spectra)])
    mzs, heights = np.concatenate([np.array(peaks) for peaks in spectra]).T
    matrix = bin_peaks(offsets, mzs, heights, width, power)
    vectors = [vector(peaks) for peaks in spectra]
    found = nearest_spectra(matrix, matrix[1:]) if len(spectra) > 1 else nearest_spectra(matrix, matrix)
    references = vectors[1:] or vectors
    for row, (index, value) in enumerate(zip(found.index, found.cosine, strict=True)):
        cosines = [cosine(vectors[row], reference) for reference in references]
        np.testing.assert_allclose(value, max(cosines), atol=1e-9)
        np.testing.assert_allclose(cosines[index], max(cosines), atol=1e-9)
