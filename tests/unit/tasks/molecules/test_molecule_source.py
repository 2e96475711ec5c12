"""SMILES from files."""

import gzip
import hashlib

import pyarrow as pa
import pytest
from pyarrow import parquet
from rdkit import Chem

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
    assert set(SHA256) == set(shipped_data())


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


def test_rows_that_are_too_long_or_too_short_are_rows(tmp_path):
    lines = ["id,smiles,split", "1,CC,train", "2,CO,train,more", "3", "", "4,CN,test", "5,C"]
    table = read_smiles(write(tmp_path / "a.csv", lines))
    assert table.smiles.to_pylist() == ["CC", "CO", None, "CN", "C"]
    assert table.numbers.tolist() == [1, 2, 3, 5, 6]
    assert table.split.to_pylist() == ["train", "train", None, "test", None]


def test_lines_are_counted_as_an_editor_does(tmp_path):
    table = read_smiles(write(tmp_path / "a.smi", ["CC", "", "CO name", "  ", "CN"]))
    assert (table.smiles.to_pylist(), table.numbers.tolist()) == (["CC", "CO", "CN"], [1, 3, 5])


@pytest.mark.parametrize("name", ["a.csv", "a.smi"])
def test_bytes_that_are_not_text_spoil_their_row_alone(tmp_path, name):
    (tmp_path / name).write_bytes((b"smiles\n" if name == "a.csv" else b"") + b"CC\nC\xffC\nCO\n")
    table = read_smiles(tmp_path / name)
    assert table.smiles.to_pylist() == ["CC", "C\ufffdC", "CO"]
    assert elements_of(table.smiles.to_pylist()) == ("C", "O")


def test_pubchems_own_format_and_archives_are_read(tmp_path):
    assert read_smiles(write(tmp_path / "a.txt", ["1\tCC", "2\tCO"])).smiles.to_pylist() == ["CC", "CO"]
    (tmp_path / "CID-SMILES.gz").write_bytes(gzip.compress(b"1\tCC\n2\tCO\n"))
    assert read_smiles(tmp_path / "CID-SMILES.gz").smiles.to_pylist() == ["CC", "CO"]


def test_splits_are_the_files_own(tmp_path):
    splits = ["train", "val", "valid", "Validation", "TEST", "train"]
    table = read_smiles(write_molecules(tmp_path / "a.csv", SMILES[:6], splits))
    assert [table.rows(split).tolist() for split in ("train", "validation", "test")] == [[0, 5], [1, 2, 3], [4]]


def test_without_a_column_every_row_has_one_split(tmp_path):
    many = [f"{'C' * (1 + at % 40)}{'O' * (at // 40)}" for at in range(1200)]
    table = read_smiles(write_molecules(tmp_path / "a.csv", many))
    rows = [table.rows(split).tolist() for split in ("train", "validation", "test")]
    assert sorted(row for each in rows for row in each) == list(range(1200))
    assert [round(len(each) / 120) for each in rows] == [8, 1, 1]


def test_without_a_column_no_molecule_is_in_two_splits_however_it_is_written(tmp_path):
    molecules = [f"C[C@H](N){'C' * at}c1ccccc1" for at in range(1, 30)]
    written = [[text, text.replace("@", "@@"), text.replace("@H", "H").replace("[CH]", "C"),
                text.replace("c1ccccc1", "C1=CC=CC=C1"),
                Chem.MolToSmiles(Chem.MolFromSmiles(text), doRandom=True)] for text in molecules]  # fmt: skip
    table = read_smiles(write_molecules(tmp_path / "a.csv", [each for own in written for each in own]))
    splits = {row: split for split in ("train", "validation", "test") for row in table.rows(split).tolist()}
    assert all(len({splits[5 * at + way] for way in range(5)}) == 1 for at in range(len(molecules)))
    assert len(set(splits.values())) == 3


@pytest.mark.parametrize(
    ("name", "lines", "complaint"),
    [
        ("a.csv", ["name,x", "a,b"], "has no column smiles, only name, x"),
        ("a.csv", ["smiles,split", "CC,train", "CC,holdout"], "column split holds 'holdout', expected train, val"),
        ("a.csv", ["smiles"], "has no rows"),
        ("a.smi", ["", " "], "has no rows"),
        ("a.xyz", ["CC"], "cannot tell the format; expected CID-SMILES, .smi"),
        ("a.csv", [""], "has no column smiles, only none"),
        ("a.csv", ["my_smiles,your_smiles", "C,C"], "has no column smiles, only my_smiles, your_smiles"),
        ("a.parquet", ["CC"], "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path, name, lines, complaint):
    path = write(tmp_path / name, lines)
    with pytest.raises(ValueError, match=r"^.*" + name) as error:
        read_smiles(path).rows("train")
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
