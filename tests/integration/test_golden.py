"""Checkpoints and models that earlier versions wrote are loaded by this one, and answer as they did.

`python tests/integration/test_golden.py` adds those of the version at hand; what is there is never written again.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import graphwright
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.checkpoint import Checkpoint, CheckpointError
from graphwright.inference.export import export_model
from graphwright.inference.model import SavedModel, load_model
from graphwright.settings import Run
from graphwright.training import train

GOLDEN = Path(__file__).parents[1] / "golden" / "checkpoints"
VERSIONS = sorted(path.name for path in GOLDEN.iterdir()) if GOLDEN.is_dir() else []


def answers(model: SavedModel) -> list[Any]:
    """Presences that a model predicts of three unseen pictures, to four digits."""
    inputs, _ = model.task.data("test").batch(range(3))
    with torch.no_grad():
        presence = model.predictor(inputs).graphs.presence
    return [[round(float(each), 4) for each in row] for row in presence]


def test_this_version_has_left_its_own():
    assert graphwright.__version__ in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["run", "model"])
def test_what_a_version_wrote_answers_as_it_did(version, name):
    model = load_model(str(GOLDEN / version / name))
    expected = json.loads((GOLDEN / version / "answers.json").read_text())[name]
    assert torch.allclose(torch.tensor(answers(model)), torch.tensor(expected), atol=2e-3)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_that_a_version_began_goes_on(version, tmp_path):
    shutil.copytree(GOLDEN / version / "run", tmp_path / "run")
    saved = checkpoints.load(tmp_path / "run" / "checkpoints" / "last")
    run = Run.model_validate(saved.facts["settings"])
    longer = run.model_copy(update={"train": run.train.model_copy(update={"steps": 5})})
    assert train(longer, tmp_path / "run", resume=True).progress.step == 5


HOSTILE: list[tuple[str, Any]] = [
    ("progress", None),
    ("progress", {"step": "many"}),
    ("progress", {"step": -3}),
    ("progress", {"seconds": float("nan")}),
    ("progress", [1, 2]),
    ("window", {"sums": {"loss": "x"}, "health": {}, "steps": 1, "skipped": 0}),
    ("window", "nonsense"),
    ("sessions", 7),
]


@pytest.mark.parametrize(("field", "value"), HOSTILE)
def test_facts_that_no_run_has_are_refused_by_name(tmp_path, field, value):
    """With checksums that are right: whoever makes such a checkpoint means it."""
    shutil.copytree(GOLDEN / VERSIONS[-1] / "run", tmp_path / "run")
    path = tmp_path / "run" / "checkpoints" / "last"
    saved = checkpoints.load(path)
    checkpoints.save(path, Checkpoint(saved.tensors, dict(saved.facts) | {field: value}))
    with pytest.raises(CheckpointError, match=r"checkpoints/last\.json cannot be resumed from"):
        train(Run.model_validate(saved.facts["settings"]), tmp_path / "run", resume=True)


@pytest.mark.parametrize("change", ["shape", "dtype", "missing", "random", "optimizer"])
def test_tensors_that_no_run_has_are_refused_by_name(tmp_path, change):
    shutil.copytree(GOLDEN / VERSIONS[-1] / "run", tmp_path / "run")
    path = tmp_path / "run" / "checkpoints" / "last"
    saved = checkpoints.load(path)
    tensors = dict(saved.tensors)
    weight = next(name for name, tensor in tensors.items() if name.startswith("model.") and tensor.ndim == 2)
    moment = next(name for name in tensors if name.endswith(".exp_avg") and tensors[name].ndim)
    match change:
        case "shape":
            tensors[weight] = tensors[weight][:1]
        case "dtype":
            tensors["random"] = tensors["random"].float()
        case "missing":
            del tensors[weight]
        case "random":
            tensors["random"] = tensors["random"][:, :7]
        case "optimizer":
            tensors[moment] = torch.zeros(3, 3, 3)
    checkpoints.save(path, Checkpoint(tensors, saved.facts))
    with pytest.raises(CheckpointError, match=r"checkpoints/last\.json cannot be resumed from"):
        train(Run.model_validate(saved.facts["settings"]), tmp_path / "run", resume=True)


def add(folder: Path) -> None:
    """The golden files of this version."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tiny import tiny_settings

    if folder.exists():
        sys.exit(f"{folder} is there, and is kept as it is")
    torch.set_num_threads(1)
    run = tiny_settings(train={"steps": 3, "validate_every": 2, "validation_samples": 4, "averaging": 0.9})
    train(run, folder / "run")
    kept = ("config.yaml", "last")
    for path in [
        path for path in (folder / "run").rglob("*") if path.is_file() and not path.name.startswith(kept)
    ]:
        path.unlink()
    export_model(str(folder / "run"), folder / "model", {})
    told = {name: answers(load_model(str(folder / name))) for name in ("run", "model")}
    (folder / "answers.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    add(GOLDEN / graphwright.__version__)
