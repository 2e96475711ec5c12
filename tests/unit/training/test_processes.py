"""The processes of a run: shares of a batch, threads, interrupts."""

import io
import os
import signal
import threading

import pytest
import torch
from pydantic import ValidationError
from rich.console import Console

from graphwright.inference import checkpoint as checkpoints
from graphwright.settings import CORES, Accelerator, Override, SettingsError, load_run
from graphwright.training import loop, processes, train
from graphwright.training.log import Display
from graphwright.training.processes import (
    SIGNALS,
    Interrupts,
    cores,
    device_of,
    in_this_process,
    leave_interrupts_to_parent,
    on_cores,
)
from tiny import tiny_settings


@pytest.fixture(autouse=True)
def _not_under_torchrun(monkeypatch):
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)


def settings(**options):
    return tiny_settings(train={"devices": CORES, "accelerator": "auto", "threads": 0, "batch_size": 32} | options)


@pytest.mark.parametrize(
    ("available", "batch", "count", "threads"),
    [
        (1, 64, "1", 1),
        (2, 64, "2", 1),
        (2, 33, "1", 2),  # a batch that two cannot share has both threads of one process
        (3, 64, "2", 1),
        (9, 64, "4", 2),  # sixteen samples at least for each
        (16, 256, "16", 1),
        (2, 31, "1", 2),
    ],
)
def test_as_many_processes_as_divide_the_batch_share_the_cores(available, batch, count, threads):
    found = on_cores(settings(batch_size=batch), available).train
    assert (found.devices, found.threads, found.batch_size) == (count, threads, batch)
    assert found.accelerator is Accelerator.CPU


@pytest.mark.parametrize(("fast", "precision"), [(True, "bf16-mixed"), (False, "32-true")])
def test_the_faster_precision_is_chosen_where_it_is_left_to_the_machine(fast, precision, monkeypatch):
    monkeypatch.setattr(processes, "half_is_fast", lambda _: fast)
    assert in_this_process(settings(precision="auto")).train.precision == precision
    for asked in ("32-true", "bf16-mixed", "16-mixed"):
        assert in_this_process(settings(precision=asked)).train.precision == asked


def test_a_run_says_which_precision_it_had(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "half_is_fast", lambda _: True)
    train(tiny_settings(train={"precision": "auto", "steps": 2}), tmp_path / "run")
    assert load_run(str(tmp_path / "run" / "config.yaml")).train.precision == "bf16-mixed"


def test_a_gpu_is_taken_where_there_is_one_and_nobody_says_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert (on_cores(settings(), 8).train.devices, device_of(settings()).type) == ("auto", "cuda")
    found = in_this_process(settings()).train
    assert (found.accelerator, found.devices) == (Accelerator.CUDA, "1")
    asked = settings(accelerator="cpu")
    assert (on_cores(asked, 2).train.devices, device_of(asked).type) == ("2", "cpu")
    assert in_this_process(asked).train.accelerator is Accelerator.CPU


def test_apples_device_is_never_taken_by_itself(monkeypatch):
    """It has no double precision, in which losses are added up."""
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert device_of(settings()).type == "cpu"
    assert loop._fabric(settings(devices="1")).device.type == "cpu"
    with pytest.raises(ValidationError, match="mps"):
        settings(accelerator="mps")


def test_threads_that_were_asked_for_stay():
    assert on_cores(settings(threads=3), 2).train.threads == 3


def test_nothing_else_is_changed_and_the_given_run_not_at_all():
    run = settings()
    before = run.model_dump()
    found = on_cores(run, 2).model_dump()
    assert run.model_dump() == before
    resolved = {name: found["train"].pop(name) for name in ("accelerator", "devices", "threads")}
    assert resolved == {"accelerator": "cpu", "devices": "2", "threads": 1}
    for name in resolved:
        del before["train"][name]
    assert found == before


@pytest.mark.parametrize("devices", ["1", "2", "auto"])
def test_devices_in_numbers_are_left_alone(devices):
    run = settings(devices=devices)
    assert on_cores(run, 4) is run


def test_torchruns_processes_are_counted_and_not_the_cores(monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    found = on_cores(settings(), 8).train
    assert (found.devices, found.threads) == ("2", 4)


def test_cores_are_those_that_this_process_may_use():
    assert 1 <= cores() <= os.cpu_count()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_cores_are_not_those_that_are_kept_from_it():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_the_small_presets_take_every_core():
    for name in ("coloring10-cpu", "qm9-cpu", "ms2scaffold-cpu"):
        assert load_run(name).train.devices == CORES
        assert on_cores(load_run(name), 2).train.devices == "2"
    assert load_run("coloring10-paper").train.devices != CORES


def test_in_python_one_process_trains_as_on_one_device(tmp_path):
    for devices in (CORES, "1"):
        run = tiny_settings(model={"dropout": 0.2}, train={"steps": 2, "devices": devices})
        assert train(run, tmp_path / devices).progress.step == 2
        assert load_run(str(tmp_path / devices)).train.devices == "1"  # so that a resumed run is the same
    cored, one = (checkpoints.load(tmp_path / name / "checkpoints" / "last").tensors for name in (CORES, "1"))
    assert len(cored["random"]) == 1  # a generator for each process
    assert cored.keys() == one.keys()
    assert all(torch.equal(cored[name], one[name]) for name in cored)
    assert not torch.distributed.is_initialized()


def test_cores_of_another_accelerator_are_refused():
    with pytest.raises(SettingsError, match=r"devices cores needs accelerator cpu, got cuda"):
        load_run("coloring10-cpu", [Override("train.accelerator", "cuda")])
    both = [Override("train.accelerator", "cuda"), Override("train.devices", "1")]
    assert load_run("coloring10-cpu", both).train.devices == "1"


@pytest.fixture(autouse=True)
def _handlers_stay_as_they_are():
    # A shell that starts the tests in the background has told them to ignore Ctrl-C.
    outside = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    assert [signal.getsignal(number) for number in SIGNALS] == before
    signal.signal(signal.SIGINT, outside)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_is_noted_and_nothing_else_happens(number):
    with Interrupts() as interrupts:
        assert not interrupts.pending
        signal.raise_signal(number)
        assert interrupts.pending


def test_the_second_signal_interrupts_at_once():
    with Interrupts():
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_afterwards_a_signal_interrupts_as_before():
    with Interrupts():
        pass
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_process_that_ends_by_itself_has_its_last_word():
    before = signal.getsignal(signal.SIGTERM)
    try:
        with Interrupts() as interrupts:
            interrupts.ignore_termination()
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
            assert not interrupts.pending
        signal.raise_signal(signal.SIGTERM)  # would end the tests
    finally:
        signal.signal(signal.SIGTERM, before)


def test_in_another_thread_signals_are_left_alone():
    found = []

    def work():
        with Interrupts() as interrupts:
            found.append((interrupts.pending, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, signal.getsignal(signal.SIGINT))]


def test_workers_leave_ctrl_c_to_their_parent_and_end_when_told():
    before = [signal.getsignal(number) for number in SIGNALS]
    try:
        leave_interrupts_to_parent(0)
        assert [signal.getsignal(number) for number in SIGNALS] == [signal.SIG_IGN, signal.SIG_DFL]
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)


RECORD = {"step": 7, "samples_per_second": 123.4, "loss": 0.5, "gap": 0.25, "presence": 0.0}


def test_without_a_terminal_a_record_is_a_line():
    text = io.StringIO()
    display = Display(Console(file=text, width=200))
    with display.running(0.0):
        display.show(RECORD, 0.5)
    assert text.getvalue() == " 50.0 %  step 7  123 samples/s  loss 0.5000  gap 0.2500\n"


def test_in_a_terminal_there_is_a_bar_that_starts_where_the_run_does():
    text = io.StringIO()
    display = Display(Console(file=text, width=200, force_terminal=True, legacy_windows=False))
    with display.running(0.3):
        display.show(RECORD, 0.5)
    shown = text.getvalue()
    assert "50%" in shown
    assert "step 7  123 samples/s  loss 0.5000" in shown


def test_a_bar_ends_with_the_error_that_ends_the_run():
    display = Display(Console(file=io.StringIO(), force_terminal=True, legacy_windows=False))
    with pytest.raises(KeyboardInterrupt), display.running(0.0):
        raise KeyboardInterrupt
    display.show(RECORD, 0.5)  # plain again


def test_a_window_in_which_every_step_was_skipped_can_be_shown():
    text = io.StringIO()
    Display(Console(file=text, width=200)).show({"step": 3, "samples_per_second": 1.0, "skipped": 2}, 0.1)
    assert "step 3" in text.getvalue()


def test_a_validation_is_a_line():
    text = io.StringIO()
    record = {"step": 3, "isomorphic": 12.34, "edit": 1.5, "size_accuracy": 100.0, "edge_recall": 50.0}
    for chosen in ("isomorphic", "edge_recall"):
        Display(Console(file=text, width=200)).validated(record, chosen)
    assert text.getvalue().splitlines() == [
        "step 3: 12.3 % isomorphic, edit 1.50, 100.0 % size accuracy",
        "step 3: 12.3 % isomorphic, edit 1.50, 100.0 % size accuracy, 50.0 % edge recall",
    ]


def test_a_silent_display_says_nothing(capsys):
    display = Display.silent()
    with display.running(0.0):
        display.show(RECORD, 0.5)
    assert capsys.readouterr() == ("", "")
