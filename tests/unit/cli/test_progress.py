"""How far a command is: said where it takes its time, and nowhere else."""

import io

import pytest
from rich.console import Console

from graphwright.cli import process


@pytest.mark.parametrize(
    ("patience", "terminal", "shown"), [(0.0, True, True), (60.0, True, False), (0.0, False, False)]
)
def test_a_bar_is_shown_to_a_person_who_has_waited(monkeypatch, patience, terminal, shown):
    screen = io.StringIO()
    monkeypatch.setattr(process, "PATIENCE", patience)
    monkeypatch.setattr(
        process, "Console", lambda **_: Console(file=screen, force_terminal=terminal, width=80, _environ={})
    )
    with process.patient_bar("predicting", 4) as advance:
        advance(3)
    assert ("predicting" in screen.getvalue()) == shown
    assert ("3/4" in screen.getvalue()) == shown
