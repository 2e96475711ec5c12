"""Runs that begin with another model's weights."""

import re

import pytest
import torch

from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.model import AVERAGE, PREDICTOR, load_model
from graphwright.settings import SettingsError
from graphwright.training import loop, train
from resuming import assert_resumes_exactly
from tiny import tiny_settings

FROZEN = {"steps": 1, "learning_rate": 1e-30, "weight_decay": 0.0, "averaging": 0.5, "seed": 7}
"""A step that moves nothing shows what a run began with."""


@pytest.fixture
def given(tmp_path):
    folder = tmp_path / "given"
    train(tiny_settings(train={"steps": 2}), folder)
    return folder


def weights(folder, prefix):
    tensors = checkpoints.load(folder / "checkpoints" / "last").tensors
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def test_weights_and_their_mean_begin_as_the_other_models(given, tmp_path):
    train(tiny_settings(train=FROZEN | {"start_from": str(given)}), tmp_path / "run")
    expected = load_model(str(given)).predictor.state_dict()
    for prefix in (PREDICTOR, AVERAGE):
        found = weights(tmp_path / "run", prefix)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, msg=name)


def test_what_has_another_shape_stays_as_it_was_drawn(given, tmp_path):
    larger = {"capacity": 6}
    train(tiny_settings(task=larger, train=FROZEN | {"start_from": str(given)}), tmp_path / "run")
    train(tiny_settings(task=larger, train=FROZEN), tmp_path / "fresh")
    begun, fresh = (weights(tmp_path / name, PREDICTOR) for name in ("run", "fresh"))
    expected = load_model(str(given)).predictor.state_dict()
    fits = {name for name, value in expected.items() if value.shape == fresh[name].shape}
    assert "decoder.queries" not in fits
    assert len(fits) > len(expected) // 2
    for name, value in begun.items():
        torch.testing.assert_close(value, expected[name] if name in fits else fresh[name], msg=name)


def test_a_model_that_fits_nowhere_is_refused(given, tmp_path):
    run = tiny_settings(
        model={"width": 20, "head_width": 20, "encoder_width": 20, "heads": 2},
        train=FROZEN | {"start_from": str(given)},
    )
    with pytest.raises(ValueError, match="start_from"):
        train(run, tmp_path / "run")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train": {"start_from": "nowhere"}}, "train.start_from: no model 'nowhere'"),
        ({"train": {"start_from": "nowhere.json"}}, "train.start_from: nowhere.json does not exist"),
        ({"train": {"accelerator": "cuda"}}, "train.accelerator cuda, train.devices 1: "),
        ({"model": {"encoder_weights": "nowhere"}}, "model.encoder_weights: nowhere is not a folder"),
    ],
)
def test_models_and_devices_that_are_not_there_are_refused_before_data_are_read(
    settings, message, tmp_path, monkeypatch
):
    def read(_):
        raise AssertionError("data were read")

    monkeypatch.setattr(loop, "resolve", read)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(SettingsError, match=f"^{re.escape(message)}"):
        train(tiny_settings(**settings), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_such_a_run_resumes_exactly_and_without_the_other_model(given, tmp_path, monkeypatch):
    run = tiny_settings(train={"steps": 6, "start_from": str(given)})
    assert_resumes_exactly(run, tmp_path, monkeypatch)
