"""Wherever a run is interrupted, going on gives the run that was never interrupted, to the last bit."""

import os
import signal
import threading
from pathlib import Path

import pytest
import torch
from lightning.fabric import Fabric

from graphwright.inference import checkpoint as checkpoints
from graphwright.tasks.coloring import ColoringDataset
from graphwright.training import TrainingModel, loop, train
from graphwright.training.log import RunLog, read_log
from graphwright.training.state import Progress
from tiny import WITH_STATE, tiny_settings

RUN = tiny_settings(
    model={"dropout": 0.2},
    matching=WITH_STATE,
    train={"steps": 7, "log_every": 2, "validate_every": 3, "checkpoint_minutes": 1e-9, "validation_samples": 2},
)
TIMES = ("seconds", "samples_per_second")


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("straight")
    train(RUN, folder)
    return folder


def progress(folder: Path, name: str = "last") -> Progress:
    return Progress(**checkpoints.load(folder / "checkpoints" / name).facts["progress"] | {"seconds": 0.0})


def assert_same_run(first: Path, second: Path) -> None:
    """Weights, optimiser, random numbers, progress, best checkpoint and log, all but the times."""
    for name in ("last", "best"):
        one, other = (checkpoints.load(folder / "checkpoints" / name).tensors for folder in (first, second))
        assert one.keys() == other.keys()
        for key in one:
            assert torch.equal(one[key], other[key]), f"{name}: {key}"
        assert progress(first, name) == progress(second, name)
    logs = [
        [{name: value for name, value in record.items() if name not in TIMES} for record in read_log(path)]
        for path in (first / "log.jsonl", second / "log.jsonl")
    ]
    assert logs[0] == logs[1]


EARLIER = 3
"""Files that are replaced before the first step, beside the two logs: the settings, and a checkpoint of two."""
# Where an interrupt may strike: an owner, its function, and whether to strike before or after the function's work.
PLACES = {
    "while a sample is made": (ColoringDataset, "__getitem__", "before", 8 * 3 + 2),
    "before the forward pass": (TrainingModel, "forward", "before", 4),
    "after the forward pass": (TrainingModel, "forward", "after", 4),
    "after the backward pass": (Fabric, "backward", "after", 4),
    "before the update": (torch.optim.AdamW, "step", "before", 4),
    "after the update": (torch.optim.AdamW, "step", "after", 4),
    "while ranks agree": (loop.Session, "_agree", "before", 4),
    "before the log line": (RunLog, "write", "before", 2),
    "after the log line": (RunLog, "write", "after", 2),
    "before validation": (loop, "evaluate_predictor", "before", 1),
    "after validation": (loop, "evaluate_predictor", "after", 1),
    "after validation is logged": (RunLog, "write", "after", 2),
    "while a checkpoint is written": (os, "replace", "before", EARLIER + 2 * 4 + 2),
    "as a checkpoint is committed": (os, "replace", "after", EARLIER + 2 * 4 + 4),
}


def strike(monkeypatch, place: str, action) -> None:
    """Do something at the n-th visit of a place."""
    owner, name, when, visit = PLACES[place]
    original, visits = getattr(owner, name), iter(range(1, 10**6))

    def struck(*arguments, **options):
        now = next(visits) == visit
        if now and when == "before":
            action()
        result = original(*arguments, **options)
        if now and when == "after":
            action()
        return result

    monkeypatch.setattr(owner, name, struck)


def interrupt() -> None:
    raise KeyboardInterrupt


def twice() -> None:
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)


def once() -> None:
    signal.raise_signal(signal.SIGINT)


def asked_to_end() -> None:
    signal.raise_signal(signal.SIGTERM)


QUICK = {
    ("after the forward pass", interrupt),
    ("after the update", once),
    ("after the update", twice),
    ("before the log line", interrupt),
    ("before validation", interrupt),
    ("while a checkpoint is written", interrupt),
}
CASES = [
    pytest.param(place, action, marks=() if (place, action) in QUICK else pytest.mark.slow)
    for place in PLACES
    for action in (interrupt, once, twice)
]


@pytest.mark.parametrize(("place", "action"), CASES)
def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(straight, tmp_path, monkeypatch, place, action):
    with monkeypatch.context() as patched:
        strike(patched, place, action)
        with pytest.raises(KeyboardInterrupt):
            train(RUN, tmp_path)
    assert 0 < progress(tmp_path).step < 7
    torch.manual_seed(99)  # another process
    train(RUN, tmp_path, resume=True)
    assert_same_run(straight, tmp_path)


@pytest.mark.parametrize(
    ("place", "action"),
    [("after the forward pass", asked_to_end), ("before the update", once), ("after the update", once)],
)
def test_a_signal_inside_a_step_waits_for_its_end(tmp_path, monkeypatch, place, action):
    run = tiny_settings(train={"steps": 7, "checkpoint_minutes": 60.0})
    strike(monkeypatch, place, action)
    with pytest.raises(KeyboardInterrupt):
        train(run, tmp_path)
    assert progress(tmp_path).step == 4
    assert [record["step"] for record in read_log(tmp_path / "log.jsonl")] == [1, 2, 3, 4]
    assert not (tmp_path / "metrics.json").exists()


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("while a sample is made", MemoryError),
        ("after the forward pass", RuntimeError),
        ("after the backward pass", KeyboardInterrupt),
    ],
)
def test_an_error_before_the_update_takes_the_step_back(tmp_path, monkeypatch, place, error):
    def fail():
        raise error

    run = tiny_settings(matching=WITH_STATE, train={"steps": 7, "checkpoint_minutes": 60.0})
    strike(monkeypatch, place, fail)
    with pytest.raises(error):
        train(run, tmp_path)
    saved = checkpoints.load(tmp_path / "checkpoints" / "last")
    assert saved.facts["progress"]["step"] == 3
    assert saved.tensors["model.matcher.probes"] == 3


@pytest.mark.parametrize("place", ["before the update", "after the update", "before the log line"])
def test_an_error_during_the_update_leaves_the_earlier_checkpoint(tmp_path, monkeypatch, place):
    strike(monkeypatch, place, interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(RUN, tmp_path)
    assert progress(tmp_path).step == 3


def test_a_run_outside_the_main_thread_leaves_signals_alone(tmp_path):
    found: list[object] = []
    thread = threading.Thread(
        target=lambda: found.append(train(tiny_settings(train={"steps": 1}), tmp_path).progress.step)
    )
    thread.start()
    thread.join()
    assert found == [1]
