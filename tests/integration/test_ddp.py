"""Two processes on gloo: the gradients of one process with the joint batch, and runs that agree on everything."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from two_processes import CASES, PRECISIONS, STEPS, case, gradients, training

from graphwright.inference import checkpoint as checkpoints
from graphwright.training import train
from graphwright.training.log import read_log

SCRIPT = Path(__file__).with_name("two_processes.py")
TIMES = ("seconds", "samples_per_second")
SINGLE = PRECISIONS[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """What two processes left behind."""
    path = tmp_path_factory.mktemp("two")
    environment = {name: value for name, value in os.environ.items() if name not in ("LOCAL_RANK", "WORLD_SIZE")}
    environment |= {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-W", "error:torch:FutureWarning", str(SCRIPT), str(path)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=900)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the second process, too
            raise
    assert process.returncode == 0, output[-5000:]
    return path


def facts(folder: Path, rank: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"facts-{rank}.json").read_text())
    return found


def last(folder: Path) -> dict[str, torch.Tensor]:
    return dict(checkpoints.load(folder / "checkpoints" / "last").tensors)


def log(folder: Path) -> list[dict[str, Any]]:
    records = read_log(folder / "log.jsonl")
    return [{name: value for name, value in record.items() if name not in TIMES} for record in records]


@pytest.mark.parametrize("name", CASES)
def test_two_processes_have_the_gradients_of_one_with_the_joint_batch(folder, name):
    alone = gradients(case(name), lambda model: model, torch.Tensor.backward, rank=0, ranks=1)
    both = [load_file(folder / f"{name}-{rank}.safetensors") for rank in (0, 1)]
    assert alone.keys() == both[0].keys() == both[1].keys()
    for key, expected in alone.items():
        assert torch.equal(both[0][key], both[1][key]), key
        error = (both[0][key] - expected).norm()
        assert error <= 1e-10 * expected.norm() + 1e-11, (key, float(error), float(expected.norm()))


def test_the_gradients_compared_are_of_every_step_and_not_zero():
    found = gradients(case("with state"), lambda model: model, torch.Tensor.backward, rank=0, ranks=1)
    assert [float(found[f"{step}.matcher.probes"]) for step in range(STEPS)] == [1.0, 2.0, 3.0]
    assert sum(value.norm() > 1e-3 for value in found.values()) > 0.8 * len(found)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_process_knows_where_the_run_stands(folder, precision):
    assert facts(folder / precision, 0) == facts(folder / precision, 1)
    assert facts(folder / precision, 0)["world"] == 2
    assert facts(folder / precision, 0)["steps"] == [6, 6]
    assert facts(folder / precision, 0)["metrics"]


def test_one_process_writes_one_log(folder):
    records = log(folder / SINGLE / "straight")
    assert [(record["step"], "isomorphic" in record) for record in records] == [(4, False), (4, True), (6, True)]


def test_each_process_draws_random_numbers_of_its_own(folder):
    random = last(folder / SINGLE / "straight")["random"]
    assert len(random) == 2
    assert not torch.equal(random[0], random[1])


@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_interrupt_of_one_process_stops_both_after_the_same_step(folder, precision):
    assert facts(folder / precision, 0)["interrupted"]
    assert facts(folder / precision, 0)["at"] == 3


@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_interrupted_run_on_two_processes_goes_on_to_the_last_bit(folder, precision):
    first, second = last(folder / precision / "straight"), last(folder / precision / "interrupted")
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name
    assert log(folder / precision / "straight") == log(folder / precision / "interrupted")


def test_a_run_of_two_processes_can_go_on_in_one(folder, tmp_path):
    for name in ("checkpoints", "log.jsonl"):
        source = folder / SINGLE / "straight" / name
        subprocess.run(["cp", "-r", str(source), str(tmp_path)], check=True)
    assert train(training(1, steps=8), tmp_path, resume=True).progress.step == 8


def test_the_precisions_compared_are_two(folder):
    single, half = (last(folder / precision / "straight") for precision in PRECISIONS)
    assert any(not torch.equal(value, half[name]) for name, value in single.items())
