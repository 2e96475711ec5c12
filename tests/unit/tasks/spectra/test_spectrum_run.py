"""A tiny run on spectra: trains, is evaluated, predicts from files and draws."""

import json

import numpy as np
import pytest

from graphwright.cli.main import main
from graphwright.inference.model import load_model
from graphwright.spectra import read_spectra
from graphwright.tasks.spectra import EncodedSpectrum, MS2Scaffold
from tiny_spectra import rows, write_mgf, write_spectra


def test_a_run_leaves_a_model_that_knows_its_labels(tiny_spectrum_run):
    model = load_model(str(tiny_spectrum_run))
    assert set(model.vocabulary.nodes) == {"C", "N", "O", "S"}
    assert model.run.task.elements == " ".join(model.vocabulary.nodes)
    assert (tiny_spectrum_run / "metrics.json").exists()


@pytest.mark.parametrize("formula", [True, False])
def test_predicting_from_an_mgf_file(tiny_spectrum_run, tmp_path, capsys, formula):
    given = rows()[-4:]
    path, out, drawn = (
        write_mgf(tmp_path / "mine.mgf", given, formula=formula),
        tmp_path / "o.json",
        tmp_path / "svg",
    )
    code = main(
        ["predict", str(tiny_spectrum_run), str(path), "--top", "2", "--json", str(out), "--draw", str(drawn)]
    )
    assert code == 0
    found = json.loads(out.read_text())
    assert [row["file"] for row in found] == [f"{path}:{row['accession']}" for row in given]
    assert all({"graph", "smiles", "confidence", "candidates"} <= set(row) for row in found)
    svgs = sorted(drawn.glob("*.svg"))
    assert len(svgs) >= len(given)
    assert "confidence" in capsys.readouterr().out
    expected = "peaks explained" if formula else "peaks, no formula"
    assert all(expected in svg.read_text() and "confidence" in svg.read_text() for svg in svgs)


def test_what_cannot_be_read_is_named_and_the_rest_predicted(tiny_spectrum_run, tmp_path, capsys):
    path, out = write_mgf(tmp_path / "some.mgf", rows()[:2], formula=True), tmp_path / "o.json"
    path.write_text(path.read_text() + "BEGIN IONS\nTITLE=bad\nPEPMASS=100\n50 x\nEND IONS\n")
    words = ["predict", str(tiny_spectrum_run), str(path), str(tmp_path / "nowhere.mgf"), "--json", str(out)]
    assert main(words) == 1
    told = capsys.readouterr()
    assert "some.mgf, line" in told.err
    assert "nowhere.mgf" in told.err
    assert "Traceback" not in told.err
    assert [row["file"] for row in json.loads(out.read_text())] == [
        f"{path}:{row['accession']}" for row in rows()[:2]
    ]


def test_a_formula_on_the_command_line_is_that_of_spectra_without_one(tiny_spectrum_run, tmp_path, capsys):
    given = rows()[:2]
    path, out = write_mgf(tmp_path / "mine.mgf", given, formula=False), tmp_path / "o.json"
    known = write_mgf(tmp_path / "known.mgf", rows()[-1:], formula=True)
    words = ["predict", str(tiny_spectrum_run), str(path), str(known), "--json", str(out)]
    assert main([*words, "--formula", given[0]["formula"]]) == 0
    assert f"peaks explained, {given[0]['formula']}" in capsys.readouterr().out
    found = [row["input"] for row in json.loads(out.read_text())]
    assert [row["formula"] for row in found] == [given[0]["formula"]] * 2 + [rows()[-1]["formula"]]
    for row, spectrum in zip(found, given, strict=False):
        np.testing.assert_allclose([peak["mz"] for peak in row["peaks"]], spectrum["mzs"], atol=2e-5)
        assert [peak["formula"] is None for peak in row["peaks"]] == [mz == 33.3333 for mz in spectrum["mzs"]]
    assert main(words) == 0
    assert all(peak["formula"] is None for peak in json.loads(out.read_text())[0]["input"]["peaks"])
    assert main([*words, "--formula", "nonsense"]) == 2
    assert "formula 'nonsense'" in capsys.readouterr().err


def test_brackets_are_printed_as_they_are(tiny_spectrum_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(MS2Scaffold, "text", lambda *_: "c1cc[nH]c1")
    path = write_mgf(tmp_path / "x.mgf", [rows()[0] | {"accession": "a [/b] [red]"}], formula=True)
    assert main(["predict", str(tiny_spectrum_run), str(path)]) == 0
    told = capsys.readouterr().out
    assert "c1cc[nH]c1" in told
    assert "a [/b] [red]" in told


def test_formula_or_not_a_prediction_is_made_and_they_differ(tiny_spectrum_run, tmp_path):
    model = load_model(str(tiny_spectrum_run))
    known, unknown = (
        next(read_spectra(write_mgf(tmp_path / f"{formula}.mgf", rows()[:1], formula=formula)))
        for formula in (True, False)
    )
    one, other = model.task.inputs(known), model.task.inputs(unknown)
    assert one.peaks[..., 2:].any()
    assert not other.peaks[..., 2:].any()
    states = [model.predictor(each).states for each in (one, other)]
    assert (states[0] - states[1]).abs().max() > 0
    assert len(model.predict([known, unknown])) == 2


def test_peaks_as_two_lists_are_a_spectrum(tiny_spectrum_run):
    model = load_model(str(tiny_spectrum_run))
    assert model.predict((np.array([50.0, 77.04]), np.array([1.0, 3.0]))).graph.vocabulary == model.vocabulary
    assert len(model.predict([(np.array([50.0]), np.array([1.0]))] * 3)) == 3
    with pytest.raises(ValueError, match="expected a Spectrum, a pair"):
        model.predict(["c1ccccc1"])


def test_evaluating_on_a_file_and_on_the_test_split(tiny_spectrum_run, tmp_path, capsys):
    out = tmp_path / "figures.json"
    file = write_spectra(tmp_path / "more.parquet", rows()[-6:])
    for words in ([], ["--data", str(file)], ["--samples", "3", "--draw", str(tmp_path / "drawn")]):
        assert main(["evaluate", str(tiny_spectrum_run), *words, "--json", str(out)]) == 0
        facts = json.loads(out.read_text())
        assert facts["samples"] == (3 if "--samples" in words else 6 if words else 9)
        assert {"isomorphic", "edit", "tanimoto", "top5", "top10", "validity"} <= set(facts)
    assert (tmp_path / "drawn" / "examples.png").exists()
    capsys.readouterr()


def test_looking_at_the_data(tiny_spectrum_run, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = main(
        ["data", "inspect", str(tiny_spectrum_run / "config.yaml"), "--split", "test", "--out", "sheet.png"]
    )
    assert code == 0
    text = capsys.readouterr().out
    for part in ("scaffold atoms", "peaks explained", "collision energy", "[M+H]+ 6, [M+Na]+ 3"):
        assert part in text
    assert (tmp_path / "sheet.png").stat().st_size > 1000


def test_peaks_are_named_by_what_explains_them(tiny_spectrum_run, tmp_path):
    model = load_model(str(tiny_spectrum_run))
    given = next(model.task.read(write_mgf(tmp_path / "one.mgf", rows()[:1], formula=True))).value
    assert isinstance(given, EncodedSpectrum)
    model.task.write_drawing(tmp_path / "drawn", given, model.predict(given).graph, "42 %")
    drawn = (tmp_path / "drawn.svg").read_text()
    most_intense = max(
        (height, str(formula))
        for height, formula in zip(given.intensities, given.subformulas(), strict=True)
        if formula is not None
    )[1]
    assert f">{most_intense}<" in drawn
    assert "42 %" in drawn


def test_a_scaffold_is_drawn_as_chemists_draw_it_and_named_after_its_spectrum(tiny_spectrum_run, tmp_path):
    """Double bonds in rings, hydrogens on nitrogen, no letter for carbon unless it is no molecule."""
    from matplotlib.figure import Figure

    from graphwright.graphs import Graph
    from graphwright.graphs.molecules import graph_from_molecule, molecule_vocabulary, parse_smiles
    from graphwright.tasks.molecules.targets import draw_structure

    labels = molecule_vocabulary("CN")

    def of(smiles: str) -> Graph:
        return graph_from_molecule(parse_smiles(smiles), labels)

    def drawn(graph: Graph, positions=None):
        axes = Figure().subplots()
        draw_structure(graph, axes, positions)
        return axes

    pyrrole = drawn(of("c1cc[nH]c1"))
    strokes = [each for each in pyrrole.patches if each.get_facecolor()[3] == 0]
    letters = [each for each in pyrrole.patches if each.get_facecolor()[3] == 1]
    assert len(letters) == 2  # N and H, as outlines
    assert len(strokes) >= 5 + 2
    assert not pyrrole.texts
    where = np.array([[0.0, 0.0], [1.5, 0.0], [1.5, 3.0]])
    ends = np.concatenate([each.get_path().vertices for each in drawn(of("CCC"), where).patches])
    assert np.abs(ends[:, None] - where).max(2).min(0) == pytest.approx(0, abs=0.1)
    star = Graph.build(["C"] * 6, [(0, at) for at in range(1, 6)], ["single"] * 5, labels)
    assert [text.get_text() for text in drawn(star).texts] == ["C"] * 6
    assert main(
        ["predict", str(tiny_spectrum_run), str(write_mgf(tmp_path / "mine.mgf", rows()[:1], formula=True)),
         "--draw", str(tmp_path / "svg")]
    ) == 0  # fmt: skip
    name = rows()[0]["accession"].replace("-", "_")
    assert [path.name for path in (tmp_path / "svg").iterdir()] == [f"{name}.svg"]


def mgf(*lines: str) -> str:
    return "\n".join(["BEGIN IONS", *lines, "138.0662 100", "110.0713 40", "END IONS", ""])


@pytest.mark.parametrize(
    ("lines", "notes"),
    [
        (["PEPMASS=195.0877", "CHARGE=1+", "FORMULA=C8H10N4O2"], ["2 of 2 peaks", "[M+H]+ taken from charge 1+"]),
        (["PEPMASS=195.0877", "CHARGE=1+"], ["[M+H]+ taken from charge 1+"]),
        (["PEPMASS=193.0731", "CHARGE=1-"], ["out of scope: a negative ion"]),
        (["PEPMASS=300.1", "ADDUCT=[M+H]+", "FORMULA=C8H10N4O2"], ["C8H10N4O2 as [M+H]+ has m/z 195.0877"]),
        (["PEPMASS=300.1", "CHARGE=1+", "FORMULA=C8H10N4O2"], ["adduct unknown", "out of scope: C8H10N4O2 as"]),
        (["PEPMASS=300.1", "FORMULA=C8H10N4O2Fe"], ["out of scope: Fe in the formula"]),
        (["PEPMASS=300.1", "SMILES=CCO"], ["out of scope: CCO has no ring"]),
    ],
)
def test_what_is_taken_for_granted_or_out_of_scope_is_said(tiny_spectrum_run, tmp_path, lines, notes):
    (tmp_path / "a.mgf").write_text(mgf(*lines))
    (given,) = load_model(str(tiny_spectrum_run)).task.read(tmp_path / "a.mgf")
    for note in notes:
        assert note in given.note
    if not any("charge 1+" in note for note in notes):
        assert "taken from" not in given.note


def test_a_molecule_of_the_training_set_is_named(tiny_spectrum_run, tmp_path):
    model = load_model(str(tiny_spectrum_run))
    data = model.task.data("train")
    known = data.membership([0]).molecules[0]
    (tmp_path / "a.mgf").write_text(mgf("PEPMASS=195.0877", f"INCHIKEY={known}"))
    (given,) = model.task.read(tmp_path / "a.mgf")
    assert "a molecule of the training set" in given.note


def test_a_file_of_one_spectrum_gives_one_answer(tiny_spectrum_run, tmp_path):
    model = load_model(str(tiny_spectrum_run))
    (tmp_path / "a.mgf").write_text(mgf("PEPMASS=195.0877"))
    (tmp_path / "b.mgf").write_text(2 * mgf("PEPMASS=195.0877"))
    one, several = model.predict(tmp_path / "a.mgf"), model.predict(str(tmp_path / "b.mgf"))
    assert [each.graph for each in several] == [one.graph] * 2
