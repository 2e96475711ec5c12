"""What another package adds is used through the command line, without a word of it in this one."""

from pathlib import Path

import pytest

from plugins import graphwright_with, write_plugin

TINY = {
    "task.capacity": 4,
    "task.min_size": 2,
    "task.samples": 400,
    "model.encoder_width": 16,
    "model.width": 16,
    "model.layers": 1,
    "model.heads": 2,
    "model.head_width": 16,
    "matching.kind": "labels",
    "train.steps": 3,
    "train.batch_size": 4,
    "train.workers": 0,
    "train.threads": 1,
    "train.devices": 1,
    "train.accelerator": "cpu",
    "train.validate_every": 3,
    "train.validation_samples": 4,
}

ENCODER = """
import torch
from torch import nn
from graphwright.models import Encoder
from graphwright.settings import ENCODERS


@ENCODERS.register("pixels")
class Pixels(Encoder):
    reads = ("picture",)

    def __init__(self, width):
        super().__init__()
        self.colour = nn.Linear(3, width)

    @classmethod
    def build(cls, form, model):
        return cls(model.encoder_width)

    def forward(self, images):
        return self.colour(images.flatten(2).mT)
"""


def trained(plugins: Path, **settings: object) -> Path:
    folder = plugins / "run"
    words = [
        f"--{key}={value}"
        for key, value in (TINY | {name.replace("__", "."): each for name, each in settings.items()}).items()
    ]
    result = graphwright_with(plugins, "train", "coloring10", f"--out={folder}", *words)
    assert result.returncode == 0, result.stderr
    return folder


def refused(plugins: Path, *words: str) -> str:
    result = graphwright_with(plugins, "train", "coloring10", f"--out={plugins / 'run'}", *words)
    assert result.returncode == 2, result.stderr
    return result.stderr


def test_an_encoder_of_another_package(tmp_path):
    plugins = write_plugin(tmp_path, "pixels", ENCODER)
    folder = trained(plugins, model__encoder="pixels")
    assert 'encoder: "pixels"' in (folder / "config.yaml").read_text()
    evaluated = graphwright_with(plugins, "evaluate", str(folder), "--samples=4")
    assert evaluated.returncode == 0, evaluated.stderr
    assert "pixels" in graphwright_with(plugins, "train", "--help").stdout
    assert "cannot read the inputs of task.kind fingerprint" in refused(
        plugins, "--task.kind=fingerprint", "--model.encoder=pixels"
    )


@pytest.mark.parametrize("encoder", ["pixels", "segfromer"])
def test_an_unknown_encoder_is_an_error_before_anything_else(encoder, tmp_path):
    message = refused(tmp_path, f"--model.encoder={encoder}")
    known = "fingerprint, vector, tokens, set, columns, cnn, segformer, spectrum"
    assert f"--model.encoder must be one of {known}, got '{encoder}'" in message
    assert not (tmp_path / "run").exists()
