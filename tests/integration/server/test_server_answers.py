"""Every shipped model end to end through the API, and what is in its answers."""

import io
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from graphwright.graphs import Graph
from graphwright.inference import load_model
from graphwright.inference.model import shipped_names
from graphwright.server.comparison import compare

CAFFEINE = "Cn1cnc2c1c(=O)n(C)c(=O)n2C"
PEAKS = "138.0662 100\n110.0713 40\n195.0877 60\n"


def answered(response):
    assert response.status_code == 200, response.text
    return response.json()


def text(client, model, given, **more):
    return answered(client.post("/api/predict", json={"model": model, "text": given, **more}))


def file(client, model, data, **more):
    return answered(client.post("/api/predict/file", params={"model": model, **more}, content=data))


def test_all_shipped_models_are_listed_with_what_they_take(client):
    cards = {card["name"]: card for card in answered(client.get("/api/models"))}
    assert [name for name in cards if cards[name]["origin"] == "shipped"] == shipped_names()
    assert cards["coloring10"]["sliders"]["most_regions"] == 10
    assert "Caffeine" in [each["title"] for each in cards["ms2scaffold"]["examples"]]
    assert cards["ms2scaffold"]["adducts"][0] == "[M+H]+"
    assert all(card["summary"] and card["limits"] and card["files"] for card in cards.values())
    assert all(
        re.fullmatch(r"[\d.]+ % of [\d,]+ unseen .*\.", cards[name]["standing"]) for name in shipped_names()
    )
    assert re.fullmatch(r"Trained for [\d.]+ minutes\.", cards["points"]["standing"])


@pytest.mark.parametrize("model", shipped_names())
def test_every_model_predicts_an_unseen_example_and_compares_it_with_the_truth(client, model):
    answer = answered(client.post("/api/predict/example", json={"model": model, "number": 1, "top": 3}))
    assert 1 <= len(answer["candidates"]) <= 3
    plan = np.array(answer["plan"]["mass"])
    assert plan.shape == (len(answer["plan"]["slots"]), len(answer["plan"]["nodes"]))
    assert plan.max() <= 1.001
    for candidate in answer["candidates"]:
        assert 0 <= candidate["probability"] <= 1.001
        drawing, truth = candidate["drawing"], candidate["truth"]
        faults = [part for part in drawing["nodes"] + drawing["edges"] if part["verdict"] != "right"]
        assert bool(faults) == (candidate["edits"] != 0) or drawing["svg"] is not None
        assert all(0 <= part["certainty"] <= 1.001 for part in drawing["nodes"] + drawing["edges"])
        assert all(edge["source"] < len(drawing["nodes"]) for edge in drawing["edges"])
        if truth["svg"]:
            assert ET.fromstring(truth["svg"]).tag.endswith("svg")
            assert "style=" not in truth["svg"]
    assert {part["name"] for part in answer["timings"]} == {"reading", "prediction", "comparison", "drawing"}


@pytest.mark.parametrize("model", shipped_names())
def test_every_example_that_is_offered_is_answered(client, model):
    (card,) = [each for each in answered(client.get("/api/models")) if each["name"] == model]
    for example in card["examples"][:2]:
        assert text(client, model, example["text"])["candidates"][0]["edits"] == 0, example["title"]


def test_answers_are_those_of_the_library(client):
    model = load_model("coloring10")
    sample = model.task.data("test")[4]
    given = {"model": "coloring10", "number": 4, "regions": sample.graph.size}
    shown = answered(client.post("/api/predict/example", json=given))
    assert shown["input"]["image"].startswith("data:image/png;base64,")
    pixels = np.asarray(Image.open(io.BytesIO(picture(np.asarray(sample.image)))))
    ours = model.predict(np.asarray(pixels, np.float32).transpose(2, 0, 1) / 255, top=5).candidates
    theirs = file(client, "coloring10", picture(np.asarray(sample.image)), name="a.png")["candidates"]
    assert [each["probability"] for each in theirs] == pytest.approx([each.probability for each in ours], rel=1e-4)
    assert [len(each["drawing"]["edges"]) for each in theirs] == [len(each.graph.edges) for each in ours]
    assert all(each["edits"] is None for each in theirs)


def picture(channels) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray((channels.transpose(1, 2, 0) * 255).round().astype(np.uint8)).save(buffer, format="PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(("regions", "noise"), [(5, 0), (10, 0.3)])
def test_a_picture_is_drawn_as_the_sliders_say(client, regions, noise):
    given = {"model": "coloring10", "number": 2, "regions": regions, "noise": noise}
    answer = answered(client.post("/api/predict/example", json=given))
    assert len(answer["candidates"][0]["truth"]["nodes"]) == regions
    assert f"{regions} regions, noise {noise:.2f}" in answer["input"]["caption"]
    again = answered(client.post("/api/predict/example", json=given))
    assert again["input"] == answer["input"]


def test_caffeine_from_its_spectrum_with_explained_peaks(client):
    answer = text(client, "ms2scaffold", PEAKS, formula="C8H10N4O2", adduct="[M+H]+", precursor=195.0877)
    assert answer["candidates"][0]["drawing"]["text"] == "O=c1[nH]c(=O)c2[nH]cnc2[nH]1"
    assert [peak["formula"] for peak in answer["input"]["peaks"]] == ["C5H8N3", "C6H8N3O", "C8H11N4O2"]
    assert all(abs(peak["error"]) < 10 for peak in answer["input"]["peaks"])
    assert answer["plan"] is None
    assert len(answer["candidates"]) == 5


def test_peaks_without_a_formula_are_answered_with_a_warning(client):
    answer = text(client, "ms2scaffold", PEAKS)
    assert "Without the molecular formula" in answer["notes"][0]
    assert all(peak["formula"] is None for peak in answer["input"]["peaks"])


def test_a_molecule_outside_the_scope_is_answered_with_a_warning(client):
    answer = text(client, "qm9", CAFFEINE, top=2)
    assert "14 heavy atoms, at most 9" in answer["notes"][0]
    assert answer["candidates"][0]["truth"] is None


def test_the_page_says_of_an_input_what_the_command_line_says(client):
    seen = "This one is in the training set: the model has seen the answer."
    answer = text(client, "fingerprint2molecule", CAFFEINE, top=10)
    assert answer["notes"] == [seen]
    assert answer["fewer"] == "no other molecule that has the fingerprint was found"
    assert text(client, "fingerprint2molecule", CAFFEINE, top=1)["fewer"] is None
    negative = f"BEGIN IONS\nPEPMASS=193.07\nCHARGE=1-\nFORMULA=C8H10N4O2\n{PEAKS}\nEND IONS\n"
    scope = "Out of this model's scope: a negative ion. It answers all the same, and is wrong."
    assert scope in text(client, "ms2scaffold", negative)["notes"]
    assumed = negative.replace("193.07", "195.0877").replace("1-", "1+")
    assert "[M+H]+ taken from charge 1+." in text(client, "ms2scaffold", assumed)["notes"]


def test_of_several_inputs_one_is_chosen(client):
    lines = f"CCO ethanol\n\n{'0' * 2048}\nCC=O\n"
    answer = text(client, "qm9", lines, row=3)
    assert answer["rows"] == ["CCO", "0" * 40, "CC=O"]
    assert answer["candidates"][0]["drawing"]["text"] == "CC=O"
    assert file(client, "qm9", lines.encode(), name="some.smi", row=1)["input"]["name"] == "ethanol"
    spectra = "".join(f"BEGIN IONS\nTITLE=s{at}\nPEPMASS=195.1\n{PEAKS}END IONS\n" for at in range(3))
    chosen = file(client, "ms2scaffold", spectra.encode(), name="all.mgf", row=2)
    assert chosen["rows"] == ["s0", "s1", "s2"]
    assert chosen["input"]["name"] == "s1"


def test_a_fingerprint_file_is_read(client):
    vector = np.zeros((1, 2048), np.uint8)
    vector[0, [33, 80, 294, 807, 1057]] = 1
    buffer = io.BytesIO()
    np.save(buffer, vector)
    assert len(file(client, "qm9", buffer.getvalue(), name="bits.npy")["input"]["bits"]) == 5


def test_differences_are_found_on_both_sides():
    truth = Graph.build(["a", "b", "a"], [(0, 1), (1, 2)])
    predicted = Graph.build(["b", "a"], [(0, 1)], vocabulary=truth.vocabulary)
    (found,) = compare([predicted], truth)
    assert found.edits == 2
    assert found.nodes == ["right", "right"]
    assert found.edges == ["right"]
    assert len(found.missing_nodes) == 1
    assert len(found.missing_edges) == 1
    nodes, edges = found.lacking()
    assert sorted(nodes) == ["missing", "right", "right"]
    assert sorted(edges) == ["missing", "right"]


def test_the_api_describes_itself(client):
    described = answered(client.get("/api/openapi.json"))
    assert set(described["paths"]) == {
        "/api/models",
        "/api/predict",
        "/api/predict/example",
        "/api/predict/file",
    }
    refused = described["paths"]["/api/predict"]["post"]["responses"]["422"]
    assert refused["content"]["application/json"]["schema"]["$ref"].endswith("/Error")
    assert "HTTPValidationError" not in json.dumps(described)


def test_runs_are_offered_beside_the_shipped_models(client):
    runs = {each["name"]: each for each in answered(client.get("/api/models")) if each["origin"] == "run"}
    assert set(runs) == {"points", "tiny"}
    for name in runs:
        answer = answered(client.post("/api/predict/example", json={"model": name}))
        assert answer["candidates"][0]["edits"] is not None


def test_a_row_of_ones_own_table_is_read_from_text_and_from_a_file(client):
    row = {"points": [[0.1, 0.0], [0.7, 1.0], [0.2, 2.0]]}
    answer = text(client, "points", json.dumps(row, indent=2))
    assert answer["input"]["image"].startswith("data:image/png")
    again = file(client, "points", json.dumps(row).encode(), name="mine.jsonl")
    assert again["candidates"] == answer["candidates"]
    assert again["rows"] == ["mine.jsonl:1"]
    assert answer["plan"] is None
    paired = text(client, "points", json.dumps(row | {"nodes": ["end", "inner", "end"], "edges": [[0, 1]]}))
    assert paired["candidates"][0]["edits"] is not None
    assert paired["plan"] is not None
    refused = client.post("/api/predict", json={"model": "points", "text": '{"points": 3}'})
    assert "expected a list of vectors" in refused.json()["error"]
