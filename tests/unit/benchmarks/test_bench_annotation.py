"""The benchmark of annotation: what it measures, nothing about how fast it is."""

import pyarrow as pa
import pytest

from benchmarks import BENCHMARKS, measure_annotation
from benchmarks.annotation import plain_errors
from graphwright.spectra import annotate, read_spectra
from tiny_spectra import rows, write_spectra


def test_rows_by_file_and_one_by_one_explain_what_the_peer_explains(tmp_path):
    path = write_spectra(tmp_path / "x.parquet", rows()[:12])
    before = pa.cpu_count()
    whole, single = measure_annotation(path, one_by_one=5, peer_samples=3)
    assert pa.cpu_count() == before
    assert (whole.batch, single.batch) == (12, 4)
    assert 0 < single.ours_objective == single.peer_objective < 1
    for row in (whole, single):
        facts = row.to_json()
        assert facts["spectra_per_second"] == pytest.approx(1000 / facts["ours_ms"])
        assert facts["spectra_per_core_second"] > 0
    assert "annotation" in BENCHMARKS


def test_the_peer_finds_the_same_errors(tmp_path):
    for spectrum in read_spectra(write_spectra(tmp_path / "x.parquet", rows()[:9])):
        ours = annotate(spectrum).ppm.tolist()
        theirs = plain_errors(spectrum.mzs.tolist(), spectrum.formula, spectrum.adduct, 10.0)
        assert [abs(error) for error in theirs if error is not None] == pytest.approx(
            [abs(error) for error in ours if error == error], abs=2e-3
        )
