"""A model in hand: loaded by name, asked, drawn, saved."""

import copy
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rdkit import Chem

from graphwright.graphs import Graph, Prediction
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.checkpoint import CheckpointError
from graphwright.inference.export import export_model
from graphwright.inference.model import PredictedGraph, confidence, load_model, shipped_names


def some_inputs(model, count=3):
    return model.task.data("test", limit=count).batch(range(count))[0]


def test_exported_model_predicts_as_its_run_does(tiny_run, tmp_path):
    export_model(str(tiny_run), tmp_path / "small", {"note": "for a test"})
    model, exported = load_model(str(tiny_run)), load_model(str(tmp_path / "small"))
    inputs = some_inputs(model)
    for first, second in zip(model.predict(inputs), exported.predict(inputs), strict=True):
        assert first.graph == second.graph
        assert first.confidence == pytest.approx(second.confidence, rel=0.02)
    assert exported.facts["note"] == "for a test"
    by_file = load_model(str(tmp_path / "small" / "model.json"))
    assert by_file.predict(inputs)[0].graph == exported.predict(inputs)[0].graph
    (weights,) = (tmp_path / "small").glob("*.safetensors")
    (best,) = (tiny_run / "checkpoints").glob("best-*")
    # Optimiser and matcher are left out, and the rest takes a quarter of the room.
    assert weights.stat().st_size < best.stat().st_size / 4
    assert all(weight.dtype == torch.float32 for weight in exported.predictor.parameters())


def test_damaged_models_are_refused_by_name(tiny_run, tmp_path):
    export_model(str(tiny_run), tmp_path / "small", {})
    (weights,) = (tmp_path / "small").glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=rf"{weights.name} is truncated or altered"):
        load_model(str(tmp_path / "small"))
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        load_model(str(tmp_path))


def test_settings_that_do_not_fit_the_weights_are_refused(tiny_run, tmp_path):
    path = tmp_path / "small" / "model"
    export_model(str(tiny_run), path.parent, {})
    saved = checkpoints.load(path)
    complaints = {
        32: "does not fit its own settings",
        "wide": r"does not hold the settings of a run: model\.width: Input should be [^\n]*, got 'wide'$",
    }
    for width, complaint in complaints.items():
        facts = copy.deepcopy(dict(saved.facts))
        facts["settings"]["model"]["width"] = width
        checkpoints.save(path, replace(saved, facts=facts))
        with pytest.raises(CheckpointError, match=complaint):
            load_model(str(path.parent))


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_model_loads_and_predicts(name):
    model = load_model(name)
    assert all(each.graph.size for each in model.predict(some_inputs(model)))


def test_confidence_is_the_probability_of_all_decisions():
    prediction = Prediction(
        presence=torch.tensor([[2.0, 1.0, -3.0]]),
        edges=torch.tensor([[[0.0, 0.5, 9.0], [0.5, 0.0, 9.0], [9.0, 9.0, 0.0]]]),
        node_labels=torch.tensor([[[1.0, 0.0], [0.0, 4.0], [0.0, 0.0]]]),
    )
    sigmoid = torch.sigmoid(torch.tensor([2.0, 1.0, 3.0, 0.5, 1.0, 4.0]))
    torch.testing.assert_close(confidence(prediction), sigmoid.prod()[None])


def test_predicting_needs_nothing_that_trains():
    code = (
        "import sys, torch, graphwright\n"
        "graphwright.load('coloring10').predict(torch.zeros(1, 3, 40, 40))\n"
        "assert not {'lightning', 'graphwright.training'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="module")
def coloring():
    return load_model("coloring10")


@pytest.fixture(scope="module")
def molecules(tiny_molecule_run):
    return load_model(str(tiny_molecule_run))


def pixels(model, index=0) -> np.ndarray:
    """(side, side, 3) uint8."""
    image = model.task.data("test")[index].image
    return (255 * image.transpose(1, 2, 0)).round().astype(np.uint8)


def test_one_picture_in_any_form_gives_one_graph(coloring, tmp_path):
    whole = pixels(coloring)
    Image.fromarray(whole).save(tmp_path / "a.png")
    floats = (whole / 255).astype(np.float32)
    forms = [
        tmp_path / "a.png",
        str(tmp_path / "a.png"),
        Image.fromarray(whole),
        Image.fromarray(whole).convert("RGBA"),
        whole,
        whole.transpose(2, 0, 1),
        whole.astype(np.int64),
        floats,
        floats.transpose(2, 0, 1),
        floats.astype(np.float64),
        torch.from_numpy(whole),
        torch.from_numpy(floats).permute(2, 0, 1),
        whole.repeat(2, 0).repeat(2, 1),
        floats.repeat(2, 0).repeat(2, 1),
        (tmp_path / "a.png").read_bytes(),
    ]
    first = coloring.predict(forms[0])
    assert isinstance(first, PredictedGraph)
    for each in forms:
        found = coloring.predict(each)
        assert found.graph == first.graph
        assert found.confidence == pytest.approx(first.confidence, rel=1e-3)
    several = coloring.predict([forms[0], forms[2], forms[4]])
    assert [each.graph for each in several] == [first.graph] * 3
    assert len(coloring.predict(np.stack([whole, whole]))) == 2
    assert coloring.predict([]) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.full((40, 40, 3), 128.0), "a picture of floats has 0 to 1, got 128 to 128: divide"),
        (np.full((3, 40, 40), np.nan), "a picture of floats has 0 to 1"),
        (np.full((40, 40, 3), 300), "0 to 255, got 300 to 300"),
        (np.zeros((40, 40), np.uint8), "expected a colour picture"),
        (np.zeros((10, 10, 3), np.float32), "10 x 10 pixels is too small"),
        (np.zeros((40, 40, 3), bool), "expected whole numbers, 0 to 255, or floats"),
        (b"no picture", "the bytes: not a picture"),
        (Path(__file__).parent, "a folder, not a picture"),
        (np.zeros((40, 30, 3), np.uint8), "not square"),
        (Image.new("L", (40, 40)), "mode L has no colours"),
        (3.5, "expected a picture"),
        ("nowhere.png", "nowhere.png: no such file"),
        (["nowhere.png"], "nowhere.png: no such file"),
    ],
)
def test_what_is_no_picture_is_refused(coloring, given, message):
    with pytest.raises(ValueError, match=message):
        coloring.predict(given)


def test_molecules_in_any_form(molecules, tmp_path):
    path = tmp_path / "one.smi"
    path.write_text("CCO\n")
    bits = np.zeros(2048, np.uint8)
    bits[
        list(
            Chem.rdFingerprintGenerator.GetMorganGenerator(2, fpSize=2048)
            .GetFingerprint(Chem.MolFromSmiles("CCO"))
            .GetOnBits()
        )
    ] = 1
    for given in ("CCO", Chem.MolFromSmiles("CCO"), bits, bits.tolist(), "".join(map(str, bits)), path, str(path)):
        assert molecules.predict(given).text == "CCO"
    path.write_text("CCO\nCCN\n")
    assert [each.text for each in molecules.predict(path)] == ["CCO", "CCN"]
    assert [each.text for each in molecules.predict(["CCO", Chem.MolFromSmiles("CCN")])] == ["CCO", "CCN"]
    with pytest.raises(ValueError, match="holds 2 inputs: give such a file by itself"):
        molecules.predict([path, "CC"])
    path.write_text("CCO\nnonsense\n")
    with pytest.raises(ValueError, match=r"one.smi:2: unparsable"):
        molecules.predict(path)


def test_spectra_in_any_form():
    model = load_model("ms2scaffold")
    mzs, heights = [110.0713, 138.0662, 195.0877], [40.0, 100.0, 60.0]
    expected = str(model.predict((mzs, heights)))
    assert str(model.predict(np.array([mzs, heights]).T)) == expected
    assert [str(each) for each in model.predict([np.array([mzs, heights]).T] * 2)] == [expected] * 2
    pairs = list(zip(mzs, heights, strict=True))
    assert str(model.predict(pairs)) == expected
    assert [str(each) for each in model.predict([pairs, pairs])] == [expected] * 2
    file = Path(__file__).parents[3] / "examples" / "caffeine.mgf"
    assert str(model.predict(file)).startswith("O=c1[nH]c(=O)c2[nH]cnc2[nH]1  (confidence ")
    with pytest.raises(ValueError, match=r"expected a Spectrum, a pair .*, got int"):
        model.predict(3)
    with pytest.raises(ValueError, match=r"expected a Spectrum, a pair .*, got str"):
        model.predict(file.read_text())


def test_decoders_are_named_as_on_the_command_line(molecules):
    with pytest.raises(TypeError, match=r"decode must be a decoder's name, one of plain, views, valid, .*, got 3"):
        molecules.predict("CCO", decode=3)
    assert molecules.predict("CCO", decode="plain").graph == molecules.predict("CCO", decode="plain").graph
    for wrong in ("vaild", "", "PLAIN"):
        with pytest.raises(
            ValueError, match=r"there is no decoder .*, only plain, views, valid, known, fingerprint"
        ):
            molecules.predict("CCO", decode=wrong)
        with pytest.raises(ValueError, match="there is no decoder"):
            molecules.evaluate(samples=1, decode=wrong)
    for wrong in (0, "3", 1.5):
        with pytest.raises(ValueError, match="top must be at least 1, a whole number"):
            molecules.predict("CCO", top=wrong)
    with pytest.raises(ValueError, match="there is no split 'dev', only train, validation, test"):
        molecules.evaluate(split="dev")
    with pytest.raises(ValueError, match="samples must be at least 1, got 0"):
        molecules.evaluate(samples=0)
    ethanol = molecules.predict("CCO", decode="valid", formula="C2H6O", seconds=60)
    assert sorted(ethanol.graph.node_names) == ["C", "C", "O"]


def test_a_formula_for_which_nothing_was_found_is_a_sentence(molecules):
    with pytest.raises(
        ValueError, match=r"input 1: no molecule of the formula was found in 1e-09 s; more seconds"
    ):
        molecules.predict("CCO", decode="valid", formula="C2H6O", seconds=1e-9)


def test_a_model_prints_as_two_lines(coloring, molecules):
    assert re.fullmatch(
        r"coloring10: From a noisy picture .*\n[0-9,]+ weights, decoded views; [0-9.]+ % of .* exactly right",
        str(coloring),
    )
    assert repr(coloring) == str(coloring)
    assert re.fullmatch(r"tiny: .*\n[0-9,]+ weights, decoded fingerprint; trained for .* minutes", str(molecules))


def test_a_predicted_graph_prints_and_draws_itself(coloring, molecules):
    found = molecules.predict("CCO", top=3)
    assert str(found).startswith("CCO  (confidence ")
    assert repr(found) == f"<PredictedGraph {found}>"
    assert "<svg" in found._repr_svg_()
    page = found._repr_html_()
    assert page.count("<tr>") == (1 + len(found.candidates) if len(found.candidates) > 1 else 0)
    seen = coloring.predict(pixels(coloring))
    names = ", ".join(f"{at} {name}" for at, name in enumerate(seen.graph.node_names))
    assert str(seen).startswith(f"nodes {names}; edges 0-")
    assert "<svg" in seen._repr_svg_()
    assert seen._repr_html_().startswith("<div><img alt=")
    table = coloring.predict(pixels(coloring), top=3)._repr_html_()
    assert table.count("<tr>") == 4
    assert "same fingerprint" not in table


def test_what_is_no_molecule_says_so(molecules):
    odd = Graph.build(["F", "F", "F"], [(0, 1), (1, 2)], ["triple", "triple"], molecules.vocabulary)
    found = PredictedGraph(odd, 0.5, task=molecules.task)
    assert str(found).startswith("nodes 0 F, 1 F, 2 F; edges 0-1 triple, 1-2 triple, not a valid molecule")
    assert found.text is None


def test_a_graph_prints_its_labels():
    graph = Graph.build(["a", "b"], [(0, 1)])
    assert f"{graph}" == "nodes 0 a, 1 b; edges 0-1"
    assert str(Graph.build(0)) == "nodes none; edges none"
    assert repr(graph) == "Graph(2 nodes, 1 edges)"


def test_a_model_is_saved_and_answers_as_before(molecules, tmp_path):
    molecules.save(tmp_path / "small")
    again = load_model(str(tmp_path / "small"))
    assert again.decode == molecules.decode
    assert again.predict("CCO", decode="plain").graph == molecules.predict("CCO", decode="plain").graph
    molecules.save(tmp_path / "known", decode="known")
    assert load_model(str(tmp_path / "known")).decode == "known"


def test_a_saved_copy_keeps_its_figures_while_they_are_its_own(coloring, tmp_path):
    coloring.save(tmp_path / "same")
    assert load_model(str(tmp_path / "same")).facts["test"] == coloring.facts["test"]
    inputs = coloring.task.data("test").batch(range(5))[0]
    same = load_model(str(tmp_path / "same")).predict(inputs)
    assert [each.graph for each in same] == [each.graph for each in coloring.predict(inputs)]


def test_shipped_names_win_over_folders_that_stand_in_the_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "coloring10").mkdir()
    assert load_model("coloring10").task.name == "coloring10"
    with pytest.raises(ValueError, match="holds no checkpoint"):
        load_model("./coloring10")


def test_a_model_evaluates_itself(coloring, molecules, tmp_path):
    figures = coloring.evaluate(samples=20).figures()
    assert figures["samples"] == 20
    result = coloring.evaluate(samples=20)
    assert str(result).splitlines()[0] == "coloring10, decoded views, with 95 % intervals"
    assert re.search(r"^exactly right \(isomorphic\), % +[0-9.]+  [0-9.]+ to [0-9.]+$", str(result), re.M)
    assert "<td>edit distance</td>" in result._repr_html_()
    assert coloring.evaluate(samples=20, seed=5).figures() != figures
    with pytest.raises(ValueError, match="give one of the two"):
        coloring.evaluate("x.csv", seed=3)
    (tmp_path / "own.smi").write_text("CCO\nCCN\n")
    assert molecules.evaluate(tmp_path / "own.smi", decode="plain").figures()["samples"] == 2
