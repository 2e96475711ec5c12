"""Models by name: run folders, model files, shipped ones."""

import copy
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from graphwright.graphs import Prediction
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.checkpoint import CheckpointError
from graphwright.inference.export import export_model
from graphwright.inference.model import confidence, load_model, shipped_names


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
    complaints = {32: "does not fit its own settings", "wide": "does not hold the settings of a run"}
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
