"""SMILES from files."""

import hashlib

import pyarrow as pa
import pytest
from pyarrow import parquet

from graphwright.tasks.molecules import elements_of, find_data, read_smiles, shipped_data
from tiny_molecules import SMILES, write_molecules

# As published with the data.
SHA256 = {
    "molecules": "d6f9054e50c107db0c4180d987894977197471167680228941ae8a301aa791bc",
    "qm9": "b93eea517f8c3684b8b837d64158b999b5291d5a8774e9044f1b19eeb0830a9e",
}
ROWS = {"molecules": (560_424, 537_926, 11_332, 11_166), "qm9": (133_795, 128_450, 2_645, 2_700)}


@pytest.mark.parametrize("name", SHA256)
def test_shipped_data_are_whole(name):
    path = find_data(name)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[name]
    table = read_smiles(path)
    assert table.digest() == SHA256[name]
    assert (len(table), *(len(table.rows(split)) for split in ("train", "validation", "test"))) == ROWS[name]
    assert SHA256[name] in (path.parent / "README.md").read_text()


def test_only_molecules_are_shipped_here():
    assert set(SHA256) <= set(shipped_data())


def write(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("name", ["a.smi", "a.txt", "a.csv", "a.tsv", "a.parquet"])
def test_every_format_gives_the_same_rows(tmp_path, name):
    path = tmp_path / name
    if name == "a.parquet":
        parquet.write_table(pa.table({"id": list(range(len(SMILES))), "SMILES": SMILES}), path)
    elif path.suffix in (".csv", ".tsv"):
        separator = "," if path.suffix == ".csv" else "\t"
        write(path, [separator.join(("id", "smiles")), *(f"{at}{separator}{s}" for at, s in enumerate(SMILES))])
    else:
        write(path, [f"{smiles} name {at}" for at, smiles in enumerate(SMILES)])
    assert read_smiles(path).smiles.to_pylist() == SMILES


def test_a_table_with_ragged_rows_is_read_without_them(tmp_path):
    table = read_smiles(write(tmp_path / "a.csv", ["smiles,split", "CC,train", "CO,train,more", "CN,test"]))
    assert table.smiles.to_pylist() == ["CC", "CN"]
    assert table.unreadable == 1


def test_splits_are_the_files_own(tmp_path):
    splits = ["train", "val", "valid", "Validation", "TEST", "train"]
    table = read_smiles(write_molecules(tmp_path / "a.csv", SMILES[:6], splits))
    assert [table.rows(split).tolist() for split in ("train", "validation", "test")] == [[0, 5], [1, 2, 3], [4]]


def test_without_a_column_the_text_decides_and_every_row_has_one_split(tmp_path):
    many = [f"{'C' * (1 + at % 40)}{'O' * (at // 40)}" for at in range(1200)]
    table = read_smiles(write_molecules(tmp_path / "a.csv", [*many, many[0]]))
    rows = [table.rows(split).tolist() for split in ("train", "validation", "test")]
    assert sorted(row for each in rows for row in each) == list(range(1201))
    assert [round(len(each) / 120) for each in rows] == [8, 1, 1]
    assert any({0, 1200} <= set(each) for each in rows)


@pytest.mark.parametrize(
    ("name", "lines", "complaint"),
    [
        ("a.csv", ["name,x", "a,b"], "has no column smiles, only name, x"),
        ("a.csv", ["smiles,split", "CC,train", "CC,holdout"], "column split holds 'holdout', expected train, val"),
        ("a.csv", ["smiles"], "has no rows"),
        ("a.smi", ["", " "], "has no rows"),
        ("a.xyz", ["CC"], "expected a file of .parquet, .csv"),
        ("a.parquet", ["CC"], "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path, name, lines, complaint):
    path = write(tmp_path / name, lines)
    with pytest.raises(ValueError, match=r"^.*" + name) as error:
        read_smiles(path)
    assert complaint in str(error.value)


def test_data_that_are_not_there_are_answered_with_those_that_are():
    with pytest.raises(ValueError, match=r"no data 'qm8': give a file with SMILES, or the name .*molecules, qm9"):
        find_data("qm8")


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        (["CCO", "c1ccncc1", None, ""], "C N O"),
        (["[nH]1cccc1", "[NH4+]", "[O-]C"], "C N O"),
        (["ClCBr", "[13CH4]", "[Si](C)C", "[se]1cccc1", "[2H]C"], "C Br Cl Se Si"),
        (["Sc1ccccc1", "[Sc]", "Cn1cccc1"], "C N S Sc"),
        (["[Xx]", "[Qq]C"], "C"),
    ],
)
def test_elements_are_read_off_the_text(smiles, expected):
    assert " ".join(elements_of(smiles)) == expected
