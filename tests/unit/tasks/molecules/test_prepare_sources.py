"""Rows out of files of every kind, whole or broken."""

import gzip
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("rdkit")
from graphwright.tasks.molecules.prepare import Source, SourceError
from graphwright.tasks.molecules.prepare.sources import LONGEST_LINE

ROWS = [("11", "CCO"), ("12", "c1ccccc1"), ("13", "CC(=O)O")]


def rows(path: Path, **columns) -> list[tuple[str, str | None]]:
    reader = Source.of(path, **columns).open()
    try:
        return [tuple(row) for row in reader]
    finally:
        reader.close()


def write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("zipped", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("CID-SMILES", "11\tCCO\n12\tc1ccccc1\n13\tCC(=O)O\n"),
        ("cid-smiles", "11\tCCO\r\n12\tc1ccccc1\r\n13\tCC(=O)O"),
        ("a.smi", "CCO 11\nc1ccccc1\t12\nCC(=O)O   13\n"),
        ("a.smiles", "CCO 11\nc1ccccc1 12\nCC(=O)O 13\n"),
        ("a.txt", "11\tCCO\n12\tc1ccccc1\n13\tCC(=O)O\n"),
        ("a.csv", "cid,SMILES,note\n11,CCO,x\n12,c1ccccc1,\n13,CC(=O)O,y\n"),
        ("a.csv", '\ufeffsmiles,id,note\nCCO,11,"two\nlines, one note"\nc1ccccc1,12,\nCC(=O)O,13,y\n'),
        ("a.tsv", "name\tcanonical_smiles\n11\tCCO\n12\tc1ccccc1\n13\tCC(=O)O\n"),
    ],
)
def test_every_text_format_gives_the_same_rows(tmp_path, name, content, zipped):
    assert rows(write(tmp_path / (name + zipped), content)) == ROWS


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_gives_the_same_rows(tmp_path, kind):
    table = {"source_id": [11, 12, 13], "smiles": pa.array([text for _, text in ROWS], pa.string()).cast(kind)}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    assert rows(tmp_path / "a.parquet") == ROWS


def test_rows_without_a_name_are_called_by_their_number(tmp_path):
    assert rows(write(tmp_path / "a.smi", "CCO\n\nCC\n")) == [("L1", "CCO"), ("L2", ""), ("L3", "CC")]
    pq.write_table(pa.table({"smiles": ["CCO", None]}), tmp_path / "a.parquet")
    assert rows(tmp_path / "a.parquet") == [("L1", "CCO"), ("L2", "")]


def test_columns_can_be_named(tmp_path):
    path = write(tmp_path / "a.csv", "smiles,other,key\nC,CCO,k1\n")
    assert rows(path, smiles_column="other", id_column="key") == [("k1", "CCO")]


def test_short_rows_and_bytes_that_are_not_text_are_rows_all_the_same(tmp_path):
    path = write(tmp_path / "a.csv", b"id,smiles\n1,CC\n2\n\n3,C\xffC\n4,CCC\n")
    assert rows(path) == [("1", "CC"), ("2", None), ("L3", None), ("3", "C\ufffdC"), ("4", "CCC")]
    assert rows(write(tmp_path / "CID-SMILES", "1\tCC\n2\nCC\n")) == [("1", "CC"), ("2", None), ("CC", None)]


def test_an_endless_line_is_one_row_and_is_not_kept(tmp_path):
    found = rows(write(tmp_path / "a.smi", "CC a\n" + "C" * (3 * LONGEST_LINE) + "\nCCC b\n"))
    assert [found[0], found[2]] == [("a", "CC"), ("b", "CCC")]
    assert len(found[1][1] or "") == LONGEST_LINE


@pytest.mark.parametrize("rows_inside", [1, 100_000])
def test_a_quote_that_never_ends_is_named_by_its_line(tmp_path, rows_inside):
    """Otherwise it would swallow all rows after it, which nobody would notice."""
    path = write(tmp_path / "a.csv", 'smiles,note\nCO,z\nCC,"' + "x\n" * rows_inside + "CCC,y\n")
    with pytest.raises(SourceError, match="record that begins in line 3 cannot be read"):
        rows(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlsx", "x", "cannot tell the format; expected CID-SMILES, .smi"),
        ("a.parquet.gz", "x", "cannot tell the format"),
        ("a.parquet", "x", "cannot be read as Parquet"),
        ("a.csv", "", "a.csv is empty"),
        (
            "a.csv",
            "id,name\n1,2\n",
            "no column is called smiles; name one with --smiles-column, there are 'id', 'name'",
        ),
        ("a.csv", "my_smiles,your_smiles\n", "several columns could hold the SMILES"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(SourceError, match=message) as error:
        rows(path)
    assert str(path) in str(error.value)


def test_wrong_columns_are_named(tmp_path):
    path = write(tmp_path / "a.csv", "id,smiles\n1,CC\n")
    with pytest.raises(SourceError, match="has no column 'struct', there are 'id', 'smiles'"):
        rows(path, smiles_column="struct")
    pq.write_table(pa.table({"smiles": [1, 2]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="column 'smiles' must hold text, not int64"):
        rows(tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"missing\.smi is not a file"):
        Source.of(tmp_path / "missing.smi")


def test_a_damaged_archive_says_how_far_it_was_read(tmp_path):
    noise = random.Random(0).randbytes(2**20).hex()
    text = "".join(noise[at : at + 64] + "\n" for at in range(0, len(noise), 64))
    path = tmp_path / "a.smi.gz"
    path.write_bytes(gzip.compress(text.encode())[:-50_000])
    with pytest.raises(SourceError, match=r"a\.smi\.gz is damaged somewhere after line [\d,]{5,}"):
        rows(path)


def test_progress_goes_from_nothing_to_all(tmp_path):
    for path in (write(tmp_path / "a.smi.gz", "CCO\n" * 50_000), tmp_path / "a.parquet"):
        if path.suffix == ".parquet":
            pq.write_table(pa.table({"smiles": ["CC"] * 9000}), path)
        reader = Source.of(path).open()
        seen = [reader.fraction, *(reader.fraction for _ in reader)]
        reader.close()
        assert seen[0] == 0
        assert seen[-1] == 1
        assert seen == sorted(seen)
