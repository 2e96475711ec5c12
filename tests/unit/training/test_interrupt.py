"""Interrupts that wait, and a display that does not mind them."""

import io
import signal
import threading

import pytest
from rich.console import Console

from graphwright.training.log import Display
from graphwright.training.processes import SIGNALS, Interrupts, leave_interrupts_to_parent


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
    record = {"step": 3, "isomorphic": 12.34, "edit": 1.5, "size_accuracy": 100.0}
    Display(Console(file=text, width=200)).validated(record)
    assert text.getvalue() == "step 3: 12.3 % isomorphic, edit 1.50, size 100.0 %\n"


def test_a_silent_display_says_nothing(capsys):
    display = Display.silent()
    with display.running(0.0):
        display.show(RECORD, 0.5)
    assert capsys.readouterr() == ("", "")
