"""Steps that go wrong are named by their samples, logged and replayed; folders, devices and disks that fail."""

import contextlib
import errno
import io
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from rich.console import Console

from graphwright.cli import main as cli
from graphwright.files import WriteError, lock_folder
from graphwright.inference import checkpoint as checkpoints
from graphwright.models import SpectrumInputs
from graphwright.settings import SettingsError
from graphwright.tasks.coloring import ColoringDataset
from graphwright.training import DivergenceError, RunBusyError, faulty, loop, train
from graphwright.training.faulty import batch_indices, first_bad_input, leaps, replay, usual_after
from graphwright.training.log import SPIKES, Display, read_log
from tiny import tiny_settings


def last_step(folder: Path) -> int:
    return int(checkpoints.load(folder / "checkpoints" / "last").facts["progress"]["step"])


def test_a_large_learning_rate_says_that_it_diverged_and_where(tmp_path):
    with pytest.raises(DivergenceError, match=r"diverged at step \d+: .*try a smaller train\.learning_rate"):
        train(tiny_settings(train={"steps": 50, "learning_rate": 1e30, "warmup": 0.0}), tmp_path)
    assert last_step(tmp_path) == 0  # not the weights that it came to


def test_a_bad_input_is_named_by_its_sample_and_the_run_can_go_on(tmp_path, monkeypatch):
    run = tiny_settings(train={"steps": 6})
    data = ColoringDataset(run.task.config, "train")
    bad, _ = batch_indices(run.train, data, step=4)[5]
    whole = ColoringDataset.__getitem__

    def spoilt(self, index):
        sample = whole(self, index)
        if index[0] == bad:
            sample.image[1, 2, 3] = math.nan
        return sample

    with monkeypatch.context() as patch:
        patch.setattr(ColoringDataset, "__getitem__", spoilt)
        with pytest.raises(ValueError, match=f"the input of training sample {bad} is not finite, at step 4"):
            train(run, tmp_path)
    assert last_step(tmp_path) == 3
    assert train(run, tmp_path, resume=True).progress.step == 6


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_the_first_bad_input_of_a_batch_is_told(value):
    images = torch.zeros(4, 3, 5, 5)
    assert first_bad_input(images) is None
    assert first_bad_input((torch.zeros(4, 2, dtype=torch.int64), images)) is None
    images[2, 1, 0, 4] = value
    assert first_bad_input(images) == 2
    assert first_bad_input((torch.zeros(4, 2, dtype=torch.int64), images)) == 2
    codes = torch.zeros(4, dtype=torch.int64)
    energies = torch.full((4,), torch.nan)  # of spectra that do not say theirs
    spectra = SpectrumInputs(
        torch.zeros(4, 3, 16), torch.ones(4, 3, dtype=torch.bool), images[:, 1], codes, energies
    )
    assert first_bad_input(spectra) == 2
    assert first_bad_input(spectra._replace(precursor=torch.zeros(4, 16))) is None
    assert first_bad_input(torch.full((2, 3), 3e38)) is None  # their sum is not finite, they are


def test_a_leap_is_one_from_what_is_usual():
    assert not leaps(100.0, 1.0, faulty.SETTLED - 1)
    assert leaps(4.1, 1.0, faulty.SETTLED)
    assert not leaps(3.9, 1.0, faulty.SETTLED)
    assert leaps(math.nan, None, 0)
    assert usual_after(None, 3.0) == 3.0
    assert usual_after(1.0, 2.0) == pytest.approx(1.02)


@pytest.fixture
def leaping(tmp_path, monkeypatch):
    """A run whose loss leaps at step 3, and its spike's record."""
    run = tiny_settings(train={"steps": 5})
    monkeypatch.setattr(faulty, "SETTLED", 2)
    agree = loop.Session._agree

    def leapt(self, result):
        seconds, stop, values = agree(self, result)
        return seconds, stop, values | ({"loss": 1e6} if self.progress.step == 2 else {})

    said = Console(record=True, file=io.StringIO(), width=200)
    with monkeypatch.context() as patch:
        patch.setattr(loop.Session, "_agree", leapt)
        train(run, tmp_path, display=Display(said))
    return run, tmp_path, said.export_text()


def test_a_leap_of_the_loss_is_logged_with_its_samples_and_replayed(leaping, capsys):
    run, folder, said = leaping
    data = ColoringDataset(run.task.config, "train")
    indices = [index for index, _ in batch_indices(run.train, data, 3)]
    (record,) = read_log(folder / SPIKES)
    assert (record["step"], record["loss"], record["indices"]) == (3, 1e6, indices)
    assert "step 3: a loss of 1e+06" in said
    assert "debug batch" in said
    batch = replay(folder, 3)
    assert [each.index for each in batch.samples] == indices
    assert [each.nodes for each in batch.samples] == [data[index].graph.size for index in indices]
    assert all(math.isfinite(each.loss) and each.gradient_norm > 0 for each in batch.samples)
    assert (batch.step, batch.weights_of) == (3, 5)
    assert cli.main(["debug", "batch", str(folder), "3"]) == cli.DONE
    printed = capsys.readouterr().out
    assert all(str(index) in printed for index in indices)
    assert "0 of 8 samples have a fault" in printed


def test_the_samples_of_a_replay_are_those_that_the_step_saw(tmp_path, monkeypatch):
    seen: list[torch.Tensor] = []
    gradient = loop.Session._gradient

    def remembered(self, inputs, target):
        seen.append(inputs.clone())
        return gradient(self, inputs, target)

    monkeypatch.setattr(loop.Session, "_gradient", remembered)
    run = tiny_settings(task={"samples": 30}, train={"steps": 7, "augment": True})  # three steps an epoch
    train(run, tmp_path)
    data = ColoringDataset(run.task.config, "train")
    again, _ = data.collate([data[one] for one in batch_indices(run.train, data, 7)])
    assert torch.equal(again, seen[6])


def test_spikes_after_the_checkpoint_are_logged_again_by_a_resumed_run(leaping):
    run, folder, _ = leaping
    (folder / SPIKES).write_text((folder / SPIKES).read_text() + json.dumps({"step": 9, "indices": []}) + "\n")
    train(run, folder, resume=True)
    assert [record["step"] for record in read_log(folder / SPIKES)] == [3]


@pytest.mark.parametrize(("step", "said"), [("0", "counted from 1"), ("-3", "counted from 1")])
def test_steps_that_cannot_be_are_refused(tiny_run, capsys, step, said):
    assert cli.main(["debug", "batch", str(tiny_run), "--", step]) == cli.USAGE
    assert said in capsys.readouterr().err


def test_two_runs_in_one_folder_are_refused_and_nothing_is_written(tmp_path):
    run = tiny_settings(train={"steps": 2})
    with lock_folder(tmp_path / "checkpoints", RuntimeError):
        with pytest.raises(RunBusyError, match=f"process {os.getpid()} is training in"):
            train(run, tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints"]
    assert train(run, tmp_path).progress.step == 2


def test_the_first_checkpoint_is_of_no_step_at_all(tmp_path, monkeypatch):
    run = tiny_settings(model={"dropout": 0.2}, train={"steps": 3})
    train(run, tmp_path / "straight")

    def killed(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    if (child := os.fork()) == 0:  # torch has one thread here
        monkeypatch.setattr(loop.Session, "_steps", killed)
        train(run, tmp_path / "killed")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert last_step(tmp_path / "killed") == 0
    torch.manual_seed(99)
    train(run, tmp_path / "killed", resume=True)
    ends = [checkpoints.load(tmp_path / name / "checkpoints" / "last").tensors for name in ("straight", "killed")]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_a_device_that_is_not_there_is_a_sentence_about_settings(tmp_path):
    with pytest.raises(SettingsError, match=r"train\.accelerator cuda, train\.devices 1: .*not available"):
        train(tiny_settings(train={"accelerator": "cuda"}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_the_earlier_checkpoint(tmp_path, monkeypatch):
    train(tiny_settings(train={"steps": 2}), tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(WriteError, match="cannot be written: No space left on device"):
            train(tiny_settings(train={"steps": 4}), tmp_path, resume=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()} == before
    assert train(tiny_settings(train={"steps": 4}), tmp_path, resume=True).progress.step == 4


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 3 MB, where the machine lets a test mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_full_indeed_leaves_whole_files(small_disk):
    run = tiny_settings(train={"steps": 2})
    train(run, small_disk / "run")
    filler = small_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(b"0" * 4096)
            file.flush()
    with pytest.raises(WriteError, match=r"cannot be written: .*No space left on device"):
        train(tiny_settings(train={"steps": 4}), small_disk / "run", resume=True)
    assert last_step(small_disk / "run") == 2
    filler.unlink()
    assert train(tiny_settings(train={"steps": 4}), small_disk / "run", resume=True).progress.step == 4
    assert not list(small_disk.rglob("*.draft"))


def test_a_read_only_folder_is_named_and_keeps_its_checkpoint(small_disk):
    train(tiny_settings(train={"steps": 2}), small_disk / "run")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(WriteError, match=r"checkpoints/\.lock cannot be written: Read-only file system"):
        train(tiny_settings(train={"steps": 4}), small_disk / "run", resume=True)
    assert last_step(small_disk / "run") == 2


def test_a_folder_that_vanishes_ends_the_run_with_its_name(tmp_path, monkeypatch):
    run, gradient = tiny_settings(train={"steps": 6}), loop.Session._gradient

    def vanish(self, *tensors):
        if self.progress.step == 2:
            shutil.rmtree(tmp_path / "run")
        return gradient(self, *tensors)

    monkeypatch.setattr(loop.Session, "_gradient", vanish)
    with pytest.raises(WriteError, match=r"run/log\.jsonl cannot be written: No such file or directory"):
        train(run, tmp_path / "run")


def test_a_clock_that_jumps_back_changes_nothing(tmp_path, monkeypatch):
    train(tiny_settings(train={"steps": 4}), tmp_path / "straight")
    hours = iter(range(10**6, 0, -1))
    monkeypatch.setattr(time, "time", lambda: 3600.0 * next(hours))
    trained = train(tiny_settings(train={"steps": 4}), tmp_path / "jumping")
    assert 0 < trained.progress.seconds < 60
    ends = [checkpoints.load(tmp_path / name / "checkpoints" / "last").tensors for name in ("straight", "jumping")]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere they end after seconds")
def test_data_workers_end_with_a_killed_run(tmp_path):
    """Else they would hold its lock."""
    code = (
        "import os, signal, sys; from pathlib import Path; from graphwright.settings import Run\n"
        "from graphwright.training import loop, train\n"
        "loop.Session._validate = lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
        "train(Run.model_validate_json(sys.argv[1]), Path(sys.argv[2]))\n"
    )
    run = tiny_settings(train={"steps": 3, "workers": 2})
    command = [sys.executable, "-c", code, run.model_dump_json(), str(tmp_path)]
    # The workers have its output, too: it ends when all have.
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    begun = time.perf_counter()
    with lock_folder(tmp_path / "checkpoints", RuntimeError):
        assert time.perf_counter() - begun < 1
