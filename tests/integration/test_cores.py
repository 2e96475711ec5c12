"""`graphwright train --train.devices cores` from a shell, and under torchrun: interrupted, killed and resumed."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep

import pytest
import torch

from graphwright.cli import main as cli
from graphwright.inference import checkpoint as checkpoints
from graphwright.settings import load_run
from graphwright.training.log import read_log
from graphwright.training.processes import cores

TINY = {
    "train.devices": "cores",
    "task.samples": "400",
    "train.batch_size": "32",
    "train.validation_samples": "4",
    "train.log_every": "1",
    "model.width": "16",
    "model.layers": "1",
    "model.heads": "2",
    "model.head_width": "16",
    "model.encoder_width": "16",
}
PROCESS_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_PROCID", "OMP_NUM_THREADS")


TRAIN = ("-m", "graphwright.cli.main", "train")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


def start(*words: str, program: Sequence[str] = TRAIN) -> subprocess.Popen[str]:
    """The command in a session of its own, on two cores."""
    environment = {name: value for name, value in os.environ.items() if name not in PROCESS_VARIABLES}
    two = sorted(os.sched_getaffinity(0))[:2]
    return subprocess.Popen(
        [sys.executable, *program, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: os.sched_setaffinity(0, two),
    )


def running(group: int) -> list[str]:
    """Processes of a group that are not over; those that nobody has waited for are."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, owner = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # over in the meantime
            continue
        if int(owner) == group and state not in "ZX":
            found.append(path.parent.name)
    return found


def end(process: subprocess.Popen[str], seconds: float = 120.0) -> tuple[str, str]:
    """What it printed; nothing that it started outlives it for long."""
    try:
        printed = process.communicate(timeout=seconds)
        until = monotonic() + 10
        while running(process.pid) and monotonic() < until:
            sleep(0.1)
        assert running(process.pid) == []
        return printed
    finally:
        if running(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for_steps(process: subprocess.Popen[str], folder: Path, steps: int, seconds: float = 400.0) -> None:
    """However busy the machine is: a process that is struck before its first step tests something else."""
    until = monotonic() + seconds
    while len(read_log(folder / "log.jsonl")) < steps and process.poll() is None and monotonic() < until:
        sleep(0.1)
    if len(read_log(folder / "log.jsonl")) < steps:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"no {steps} steps in {seconds:.0f} s")


def last(folder: Path) -> checkpoints.Checkpoint:
    return checkpoints.load(folder / "checkpoints" / "last")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or cores() < 2, reason="needs two cores")
def test_every_core_has_a_process_and_ctrl_c_and_resuming_are_those_of_one(tmp_path):
    folder = tmp_path / "run"
    options = [f"--{name}={value}" for name, value in TINY.items()]
    process = start("coloring4", "--out", str(folder), "--train.steps", "1000000", *options)
    wait_for_steps(process, folder, 3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process
    _, errors = end(process)
    assert process.returncode == cli.INTERRUPTED, errors
    assert errors.count(f"graphwright train {folder} --resume") == 1
    assert errors.count("interrupted") == 1

    train = load_run(str(folder)).train
    assert (train.devices, train.threads, train.accelerator.value, train.batch_size) == ("2", 1, "cpu", 32)
    saved = last(folder)
    step = saved.facts["progress"]["step"]
    assert step >= 3
    assert len(saved.tensors["random"]) == 2  # a generator for each process

    process = start(str(folder), "--resume", "--train.steps", str(step + 2))
    printed, errors = end(process)
    assert process.returncode == cli.DONE, errors
    assert printed.count(f"going on from step {step:,}") == 1
    assert last(folder).facts["progress"]["step"] == step + 2
    assert len(last(folder).tensors["random"]) == 2
    steps = [record["step"] for record in read_log(folder / "log.jsonl") if "loss" in record]
    assert steps == list(range(1, step + 3))


def children(process: int) -> list[int]:
    """Processes that a process has started."""
    stats = [(path, path.read_text()) for path in Path("/proc").glob("[0-9]*/stat")]
    return [int(path.parent.name) for path, text in stats if int(text.rpartition(")")[2].split()[1]) == process]


OFTEN = TINY | {"train.checkpoint_minutes": "1e-9", "train.steps": "100"}
"""Saved after every step, so that a kill loses little, and long enough that it comes before the end."""


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two processes that nobody disturbed."""
    folder = tmp_path_factory.mktemp("straight") / "run"
    process = start("coloring4", "--out", str(folder), *(f"--{name}={value}" for name, value in OFTEN.items()))
    _, errors = end(process)
    assert process.returncode == cli.DONE, errors
    return folder


def assert_same_end(first: Path, second: Path) -> None:
    one, other = last(first), last(second)
    assert one.facts["progress"]["step"] == other.facts["progress"]["step"] == int(OFTEN["train.steps"])
    assert one.tensors.keys() == other.tensors.keys()
    assert [name for name in one.tensors if not torch.equal(one.tensors[name], other.tensors[name])] == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or cores() < 2, reason="needs two cores")
def test_a_process_that_is_killed_ends_the_run_within_a_minute_and_it_goes_on_to_the_last_bit(tmp_path, straight):
    folder = tmp_path / "run"
    process = start("coloring4", "--out", str(folder), *(f"--{name}={value}" for name, value in OFTEN.items()))
    wait_for_steps(process, folder, 3)
    (second,) = children(process.pid)
    begun = monotonic()
    os.kill(second, signal.SIGKILL)
    _, errors = end(process)
    assert monotonic() - begun < 60
    assert process.returncode == cli.INTERRUPTED, errors
    assert "graphwright: another process of this run has ended. step" in errors
    assert f"graphwright train {folder} --resume" in errors
    assert "Traceback" not in errors
    process = start(str(folder), "--resume")
    _, errors = end(process)
    assert process.returncode == cli.DONE, errors
    assert_same_end(straight, folder)


def rank_of(process: int) -> str | None:
    """The rank that torchrun gave a process."""
    variables = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    return next((each.removeprefix(b"RANK=").decode() for each in variables if each.startswith(b"RANK=")), None)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or cores() < 2, reason="needs two cores")
@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_rank_killed_under_torchrun_leaves_a_run_that_goes_on_and_says_so(tmp_path, straight, rank):
    folder = tmp_path / "run"
    train, options = (*TORCHRUN, *TRAIN), (f"--{name}={value}" for name, value in OFTEN.items())
    process = start("coloring4", "--out", str(folder), *options, program=train)
    wait_for_steps(process, folder, 3)
    (killed,) = [child for child in children(process.pid) if rank_of(child) == rank]
    begun = monotonic()
    os.kill(killed, signal.SIGKILL)
    _, errors = end(process)
    seconds = monotonic() - begun
    assert seconds < 60
    assert process.returncode != cli.DONE
    assert errors.count("graphwright: another process of this run has ended. step") == 1, errors
    assert f"graphwright train {folder} --resume" in errors
    step = last(folder).facts["progress"]["step"]
    assert step < int(OFTEN["train.steps"])
    process = start(str(folder), "--resume", program=train)
    _, errors = end(process)
    assert process.returncode == cli.DONE, errors
    assert_same_end(straight, folder)
    print(f"rank {rank}: ended after {seconds:.1f} s, went on from step {step} to the last bit")


UNEVEN = """
import os, sys
os.chdir(os.environ["RANK"])
from graphwright.cli.main import main
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or cores() < 2, reason="needs two cores")
def test_ranks_whose_copies_of_the_data_differ_are_refused_under_torchrun(tmp_path):
    """As on two machines, of which one has an older file."""
    for rank, count in enumerate((60, 50)):
        (tmp_path / str(rank)).mkdir()
        rows = [f"{'C' * (1 + at % 5)}{'NOF'[at % 3]},{'train' if at > 3 else 'val'}" for at in range(count)]
        (tmp_path / str(rank) / "rows.csv").write_text("\n".join(["smiles,split", *rows]) + "\n")
    (tmp_path / "uneven.py").write_text(UNEVEN)
    few = {
        "train.devices": "2",
        "train.accelerator": "cpu",
        "train.batch_size": "4",
        "train.validation_samples": "2",
    }
    options = [f"--{name}={value}" for name, value in few.items()]
    begun = monotonic()
    words = ["train", "rows.csv", "--out", str(tmp_path / "run"), "--train.steps", "4", *options]
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        process = start(*words, program=(*TORCHRUN, "uneven.py"))
    finally:
        os.chdir(before)
    printed, errors = end(process)
    assert process.returncode != cli.DONE, printed
    assert "the processes of this run have different data: 56, 46 samples" in errors
    assert not (tmp_path / "run").exists()
    print(f"refused after {monotonic() - begun:.1f} s")
