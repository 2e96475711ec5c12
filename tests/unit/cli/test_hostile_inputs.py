"""Inputs that are empty, huge, or meant to do harm: one sentence, the exit code, and the rest is still done."""

import csv
import gzip
import warnings
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from graphwright.cli import main as cli
from graphwright.graphs.molecules import LONGEST_SMILES, MoleculeError, parse_smiles
from graphwright.inference.model import load_model
from graphwright.spectra import SpectrumError, read_spectra
from graphwright.tasks import BadInput, NamedInput, task_of
from graphwright.tasks.coloring.picture import read_picture
from graphwright.tasks.molecules.prepare.sources import Source, SourceError
from graphwright.tasks.molecules.source import read_smiles
from graphwright.tasks.molecules.task import read_fingerprints

FULL = Path("/dev/full")


def test_an_empty_array_is_named(tmp_path):
    (tmp_path / "nothing.npy").touch()
    np.save(tmp_path / "none.npy", np.zeros((0, 2048)))
    claim = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 2048), }"
    (tmp_path / "claim.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00" + claim.encode().ljust(117) + b"\n")
    for name, said in (
        ("nothing.npy", "cannot be read as a NumPy array"),
        ("none.npy", "holds no fingerprints"),
        ("claim.npy", "cannot be read as a NumPy array"),
    ):
        (bad,) = read_fingerprints(tmp_path / name)
        assert isinstance(bad, BadInput)
        assert bad.message.startswith(f"{tmp_path / name}")
        assert said in bad.message


def test_the_rest_of_the_batch_is_predicted(tiny_molecule_run, tmp_path, capsys):
    (tmp_path / "nothing.npy").touch()
    command = ["predict", str(tiny_molecule_run), str(tmp_path / "nothing.npy"), "CCO", "--decode", "plain"]
    assert cli.main(command) == cli.SOME_FAILED
    shown = capsys.readouterr()
    assert "nothing.npy cannot be read as a NumPy array" in shown.err
    assert "CCO" in shown.out


def test_a_long_smiles_is_refused_before_it_is_parsed():
    with pytest.raises(MoleculeError, match=r"'CCCCCCCCCCCCCCCCCCCC'\.\.\.: 100,000 characters, 10,000 at most"):
        parse_smiles("C" * 100_000)
    assert parse_smiles("C" * 200).GetNumAtoms() == 200
    assert LONGEST_SMILES == 10_000


@pytest.fixture(params=[b"\n", b"C"], ids=["newlines", "one line"])
def bomb(tmp_path, request):
    """Makes a gzip file of 64 MB of one byte."""

    def make(name: str) -> Path:
        (tmp_path / name).write_bytes(gzip.compress(request.param * 2**20) * 64)
        return tmp_path / name

    return make


@pytest.mark.parametrize("name", ["a.smi.gz", "a.csv.gz", "CID-SMILES.gz"])
def test_a_bomb_of_molecules_is_refused(bomb, name):
    path = bomb(name)
    with pytest.raises(SourceError, match=f"{name}: its first .* no file of text does"):
        read_smiles(path)


@pytest.mark.parametrize("name", ["a.mgf.gz", "a.msp.gz", "a.json.gz", "a.mzML.gz", "a.tsv.gz"])
def test_a_bomb_of_spectra_is_refused(bomb, name):
    path = bomb(name)
    with pytest.raises(SpectrumError, match=f"{name}.*no file of text does"):
        list(read_spectra(path))


CSV = 'smiles,note\nCCO,fine\nCCC,"never closed\nCCCC,swallowed\nCCCCC,swallowed\n'


def test_a_quote_that_is_never_closed_is_named_by_its_line(tmp_path):
    path = tmp_path / "open.csv"
    path.write_text(CSV)
    said = r"open\.csv: the record that begins in line 3 cannot be read: a quote is opened and never closed"
    with pytest.raises(SourceError, match=said):
        read_smiles(path)
    with closing(Source.of(path).open()) as rows, pytest.raises(SourceError, match=said):
        list(rows)
    # Where the swallowed is longer than csv takes a cell to be, no line is lost either.
    path.write_text(CSV + "C,swallowed\n" * 20_000)
    assert len(path.read_text()) > csv.field_size_limit()
    with pytest.raises(SourceError, match="the record that begins in line 3 cannot be read"):
        read_smiles(path)


def test_a_quote_that_is_closed_lines_later_is_read(tmp_path):
    path = tmp_path / "closed.csv"
    path.write_text('smiles,note\nCCO,"two\nlines"\nCCC,5" wide\nCCCC,"last, ""quoted"" cell"')
    assert read_smiles(path).smiles.to_pylist() == ["CCO", "CCC", "CCCC"]
    with closing(Source.of(path).open()) as rows:
        assert [row.text for row in rows] == ["CCO", "CCC", "CCCC"]


def test_a_huge_picture_has_our_sentence_and_no_warning(tmp_path):
    Image.new("1", (13_000, 13_000)).save(tmp_path / "huge.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"huge\.png: 13000 x 13000 pixels, expected"):
            read_picture(tmp_path / "huge.png", 40)


@pytest.mark.skipif(not FULL.exists(), reason="no full device here")
@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_json_onto_a_full_disk_is_named(tiny_run, tmp_path, capsys, monkeypatch, command):
    """And nothing is left half written; the write fails by the system's own error."""
    out, write = tmp_path / "out.json", Path.write_text

    def onto_full(self: Path, text: str, **options: str) -> int:
        return write(FULL if out.name in self.name else self, text, **options)

    picture = task_of(load_model(str(tiny_run)).run.task).data("test")[0].image
    Image.fromarray((255 * picture.transpose(1, 2, 0)).astype(np.uint8)).save(tmp_path / "a.png")
    given = [str(tmp_path / "a.png")] if command == "predict" else ["--samples", "3"]
    out.write_text("old")
    monkeypatch.setattr(Path, "write_text", onto_full)
    assert cli.main([command, str(tiny_run), *given, "--json", str(out)]) == cli.USAGE
    assert "out.json cannot be written: No space left on device" in capsys.readouterr().err
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "out.json"]


@pytest.mark.parametrize(
    "words", [["evaluate", "MODEL", "--data", "IN", "--json", "IN"], ["data", "inspect", "IN", "--rejected", "IN"]]
)
def test_no_command_writes_onto_its_input(tiny_molecule_run, tmp_path, capsys, words):
    path = tmp_path / "in.csv"
    path.write_text("smiles\nCCO\nCCC\n")
    names = {"MODEL": str(tiny_molecule_run), "IN": str(path)}
    assert cli.main([names.get(word, word) for word in words]) == cli.USAGE
    assert "in.csv is an input: write to another file" in capsys.readouterr().err
    assert path.read_text() == "smiles\nCCO\nCCC\n"


def test_names_are_inputs(tmp_path):
    """What the tests above take for granted: a good row is a named input."""
    (tmp_path / "good.smi").write_text("CCO ethanol\n")
    assert all(isinstance(each, NamedInput) for each in read_fingerprints(tmp_path / "good.smi"))
