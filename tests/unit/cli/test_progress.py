"""How far a command is: said where it takes its time, and nowhere else."""

import io
import re

import pytest
from rich.console import Console

from graphwright.cli import shared
from graphwright.losses import LOSS_TERMS
from graphwright.training.log import Display


@pytest.mark.parametrize(
    ("patience", "terminal", "shown"), [(0.0, True, True), (60.0, True, False), (0.0, False, False)]
)
def test_a_bar_is_shown_to_a_person_who_has_waited(monkeypatch, patience, terminal, shown):
    screen = io.StringIO()
    monkeypatch.setattr(shared, "PATIENCE", patience)
    monkeypatch.setattr(
        "rich.console.Console", lambda **_: Console(file=screen, force_terminal=terminal, width=80, _environ={})
    )
    with shared.patient_bar("predicting", 4) as advance:
        advance(3)
    assert ("predicting" in screen.getvalue()) == shown
    assert ("3/4" in screen.getvalue()) == shown


def test_a_narrow_terminal_keeps_bar_share_and_time_left():
    screen = io.StringIO()
    display = Display(Console(file=screen, force_terminal=True, width=80, _environ={}))
    record = {"step": 12345, "samples_per_second": 1234.5} | dict.fromkeys(["loss", *LOSS_TERMS, "gap"], 1.2345)
    with display.running(0.0):
        display.moved(0.25)
        display.show(record, 0.5)
        display.moved(0.5)
    last = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()).strip().splitlines()[-1]
    assert len(last) <= 80
    assert re.search(r"training ━+.* 50% [0-9-]:[0-9-]{2}:[0-9-]{2} step 12345", last)


def test_the_bar_moves_before_anything_is_logged():
    screen = io.StringIO()
    display = Display(Console(file=screen, force_terminal=True, width=80, _environ={}))
    with display.running(0.0):
        display.moved(0.25)
    assert " 25%" in screen.getvalue()
    Display.silent().moved(0.5)
