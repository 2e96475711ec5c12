"""The baselines as a person meets them: train, evaluate, predict, export, resume."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from killed_run import WITHIN

from graphwright.cli import main as cli
from graphwright.graphs import from_json
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.model import load_model
from graphwright.settings import Run, load_run
from graphwright.tasks.coloring import VOCABULARY
from graphwright.training import train
from graphwright.training.log import read_log
from tiny import tiny_settings

SCRIPT = Path(__file__).with_name("killed_run.py")
STEPS, KILLED = 12, 7


def settings() -> Run:
    return tiny_settings(
        # Graphs with more pairs than are drawn: the draw decides the loss.
        task={"samples": 60, "capacity": 7, "min_size": 6},
        model={"kind": "relationformer", "dropout": 0.2},
        matching={"kind": "labels"},
        loss={"negatives": 1},
        train={"steps": STEPS, "log_every": 2, "validate_every": 5, "checkpoint_minutes": 1e-9},
    )


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "relations"
    train(settings(), folder)
    return folder


def test_a_killed_relationformer_goes_on_to_the_last_bit(straight, tmp_path):
    command = [sys.executable, str(SCRIPT), str(tmp_path), settings().model_dump_json(), str(KILLED), WITHIN]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    torch.manual_seed(12345)
    assert train(settings(), tmp_path, resume=True).progress.step == STEPS
    first, second = (checkpoints.load(folder / "checkpoints" / "last") for folder in (straight, tmp_path))
    assert first.tensors.keys() == second.tensors.keys()
    for name, value in first.tensors.items():
        assert torch.equal(value, second.tensors[name]), name
    losses = [
        [record["loss"] for record in read_log(folder / "log.jsonl") if "loss" in record]
        for folder in (straight, tmp_path)
    ]
    assert losses[0] == losses[1]
    assert len(set(losses[0])) == len(losses[0]) == STEPS // 2


def test_the_draw_of_negatives_decides_the_run(straight, tmp_path, monkeypatch):
    """Else the test above could not see a draw that is not repeated."""
    from graphwright.losses import relation_loss

    monkeypatch.setattr(relation_loss, "drawn_negatives", lambda edges, *_: torch.zeros_like(edges))
    train(settings(), tmp_path)
    first, second = (checkpoints.load(folder / "checkpoints" / "last") for folder in (straight, tmp_path))
    name = "model.predictor.head.pair_output.3.weight"
    assert not torch.equal(first.tensors[name], second.tensors[name])


def test_every_command_takes_a_relationformer(straight, tmp_path):
    figures, graphs = tmp_path / "figures.json", tmp_path / "graphs.json"
    assert cli.main(["evaluate", str(straight), "--samples", "6", "--json", str(figures)]) == cli.DONE
    assert json.loads(figures.read_text())["samples"] == 6
    out = tmp_path / "handed"
    assert cli.main(["export", str(straight), str(out), "--samples", "6"]) == cli.DONE
    picture = tmp_path / "picture.png"
    _save_picture(straight, picture)
    for model in (straight, out):
        assert cli.main(["predict", str(model), str(picture), "--top", "2", "--json", str(graphs)]) == cli.DONE
        (row,) = json.loads(graphs.read_text())
        assert from_json(row["graph"], VOCABULARY).size <= 7
    weights = checkpoints.load(out / "model").tensors
    assert "model.predictor.decoder.relation" in weights
    assert load_model(str(out)).run.model.kind == "relationformer"


def test_train_takes_the_preset_by_its_name(tmp_path):
    small = ["--task.capacity", "4", "--task.min_size", "2", "--task.samples", "40", "--train.batch_size", "8"]
    small += ["--train.steps", "2", "--train.validation_samples", "2", "--train.workers", "0"]
    folder = tmp_path / "run"
    assert cli.main(["train", "relationformer-coloring10", "--out", str(folder), *small]) == cli.DONE
    assert load_run(str(folder)).model.kind == "relationformer"


def test_the_nearest_picture_stands_beside_the_model(tiny_run, tmp_path, capsys):
    out = tmp_path / "figures.json"
    arguments = ["evaluate", str(tiny_run), "--samples", "6", "--baseline", "--json", str(out)]
    assert cli.main(arguments) == cli.DONE
    facts = json.loads(out.read_text())["baseline"]
    assert facts["samples"] == 6
    assert facts["method"] == {"name": "nearest", "likeness": "pixels", "references": 320, "seed": 0}
    assert "nearest of 320 training samples by pixels" in capsys.readouterr().out


def _save_picture(run: Path, path: Path) -> None:
    import numpy as np
    from PIL import Image

    image = load_model(str(run)).task.data("test")[0].image
    Image.fromarray((255 * image.transpose(1, 2, 0)).round().astype(np.uint8)).save(path)
