"""A run's settings from data alone: molecules or spectra, told apart by what is in the file."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphwright.settings import load_run

GYM = (
    "identifier\tmzs\tintensities\tsmiles\tinchikey\tformula\tprecursor_formula\tparent_mass\tprecursor_mz\tadduct"
    "\tinstrument_type\tcollision_energy\tfold\tsimulation_challenge"
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("MassSpecGym.tsv", GYM.encode() + b"\n"),
        ("quoted.tsv", b"\xef\xbb\xbf" + b"\t".join(b'"%s"' % c.encode() for c in GYM.split("\t")) + b"\r\n"),
        ("MassSpecGym.tsv.gz", gzip.compress(GYM.encode() + b"\n1\t2\n", mtime=0)),
        ("library.msp", b"Name: x\n"),
        ("library.MGF.gz", b""),
    ],
)
def test_spectra_are_for_scaffolds(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    run, preset = load_run(str(path)), load_run("ms2scaffold-cpu")
    assert (run.task.kind, run.task.data, run.task.elements) == ("spectrum", str(path), "")
    assert (run.model, run.matching, run.train) == (preset.model, preset.matching, preset.train)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("molecules.tsv", b"smiles\tname\nC\tmethane\n"),
        ("molecules.tsv.gz", gzip.compress(b"smiles\nmzs\tintensities\n", mtime=0)),
        ("damaged.tsv", gzip.compress(GYM.encode() * 99, mtime=0)[:30]),
        ("empty.tsv", b""),
        ("damaged.parquet", b"PAR1"),
        ("molecules.smi", b"C\n"),
    ],
)
def test_other_tables_are_molecules(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    assert load_run(str(path)).task.kind == "fingerprint"


@pytest.mark.parametrize(("columns", "kind"), [("smiles", "fingerprint"), ("mzs intensities smiles", "spectrum")])
def test_parquet_files_are_told_apart_by_their_columns(tmp_path, columns, kind):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({name: ["x"] for name in columns.split()}), path)
    assert load_run(str(path)).task.kind == kind
