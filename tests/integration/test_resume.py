"""A run that is killed and goes on is the run that was never killed, to the last bit."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from killed_run import AFTER, WITHIN

from graphwright.inference import checkpoint as checkpoints
from graphwright.settings import Run
from graphwright.training import train
from graphwright.training.log import read_log
from tiny import WITH_STATE, tiny_settings

STEPS, KILLED = 30, 17
SCRIPT = Path(__file__).with_name("killed_run.py")
TIMES = ("seconds", "samples_per_second")


def settings(workers: int) -> Run:
    return tiny_settings(
        task={"samples": 100},  # ten steps to an epoch: the run sees three
        model={"dropout": 0.2},
        matching=WITH_STATE,
        train={
            "steps": STEPS,
            "workers": workers,
            "augment": True,
            "log_every": 4,  # 17 is in the middle of a log line's window
            "validate_every": 9,
            "checkpoint_minutes": 1e-9,
            "averaging": 0.9,
        },
    )


def kill(run: Run, folder: Path, moment: str) -> None:
    """Train in a process of its own, which ends by SIGKILL."""
    command = [sys.executable, str(SCRIPT), str(folder), run.model_dump_json(), str(KILLED), moment]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def tensors(folder: Path, name: str) -> dict[str, torch.Tensor]:
    return dict(checkpoints.load(folder / "checkpoints" / name).tensors)


def facts(folder: Path, name: str) -> dict[str, Any]:
    found = dict(checkpoints.load(folder / "checkpoints" / name).facts)
    found["progress"] = found["progress"] | {"seconds": None}
    return found


def log(folder: Path) -> list[dict[str, Any]]:
    records = read_log(folder / "log.jsonl")
    return [{name: value for name, value in record.items() if name not in TIMES} for record in records]


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> Path:
    """The run that nothing happens to; the number of workers makes no difference to it."""
    folder = tmp_path_factory.mktemp("straight")
    train(settings(workers=0), folder)
    return folder


@pytest.mark.parametrize(("workers", "moment"), [(0, AFTER), (2, WITHIN)])
def test_thirty_steps_equal_seventeen_a_kill_and_the_rest(straight, tmp_path, workers, moment):
    run = settings(workers)
    kill(run, tmp_path, moment)
    assert facts(tmp_path, "last")["progress"]["step"] == KILLED
    torch.manual_seed(12345)  # a resumed run owes nothing to the process it runs in
    resumed = train(run, tmp_path, resume=True)
    assert resumed.progress.step == STEPS
    for name in ("last", "best"):
        first, second = tensors(straight, name), tensors(tmp_path, name)
        assert first.keys() == second.keys()
        for key, value in first.items():
            assert torch.equal(value, second[key]), f"{name}: {key}"
        assert facts(straight, name)["progress"] == facts(tmp_path, name)["progress"]
    assert log(straight) == log(tmp_path)


def test_the_comparison_covers_what_a_run_is(straight):
    names = tensors(straight, "last").keys()
    assert {name.partition(".")[0] for name in names} == {"average", "model", "optimizer", "random"}
    assert any(name.endswith(".exp_avg_sq") for name in names)
    assert tensors(straight, "last")["model.matcher.probes"] == STEPS
    records = log(straight)
    assert [record["step"] for record in records if "loss" in record] == [4, 8, 12, 16, 20, 24, 28]
    assert [record["step"] for record in records if "isomorphic" in record] == [9, 18, 27, 30]
    assert all({"gap", "auxiliary"} <= record.keys() for record in records if "loss" in record)
