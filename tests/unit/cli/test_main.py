"""Exit codes and messages: what scripts rely on."""

import subprocess
import sys

import pytest

from graphwright.cli import main as cli


@pytest.fixture
def failing(monkeypatch):
    """Makes `graphwright report` end in an error."""

    def replace(error):
        def run(_):
            raise error

        monkeypatch.setattr("graphwright.cli.report.run", run)

    return replace


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ImportError("the peer is POT: pip install it"), cli.USAGE, "graphwright: the peer is POT"),
        (ValueError("n must be positive"), cli.USAGE, "graphwright: n must be positive"),
        (KeyboardInterrupt(), cli.INTERRUPTED, "interrupted"),
        (MemoryError(), cli.USAGE, "not enough memory: an allocation failed"),
        (
            RuntimeError(
                "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 64 bytes."
            ),
            cli.USAGE,
            "graphwright: not enough memory: can't allocate memory: you tried to allocate 64 bytes.",
        ),
        (RuntimeError("boom"), cli.INTERNAL, "internal error: RuntimeError: boom"),
    ],
)
def test_errors_are_one_line_with_the_right_code(monkeypatch, capsys, failing, error, code, message):
    monkeypatch.delenv("GRAPHWRIGHT_DEBUG", raising=False)
    failing(error)
    assert cli.main(["report", "runs/tiny"]) == code
    assert message in capsys.readouterr().err


def test_an_interrupt_inside_an_import_is_an_interrupt(capsys, failing):
    """Python 3.11 turns one that strikes while a class is made into another error."""
    error = RuntimeError("Error calling __set_name__")
    error.__cause__ = KeyboardInterrupt()
    failing(error)
    assert cli.main(["report", "runs/tiny"]) == cli.INTERRUPTED
    assert capsys.readouterr().err == "interrupted\n"


def test_few_imports_come_before_interrupts_are_caught():
    """What an interrupt meets before that ends in a traceback."""
    code = "import sys, graphwright.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "rich", "pydantic", "graphwright.settings"} & set(done.stdout.split())


def test_debug_shows_where_an_internal_error_came_from(monkeypatch, failing):
    monkeypatch.setenv("GRAPHWRIGHT_DEBUG", "1")
    failing(RuntimeError("boom"))
    with pytest.raises(RuntimeError, match="boom"):
        cli.main(["report", "runs/tiny"])


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["report"], ["reproduce", "table1", "--scale", "nonsense"]]
)
def test_wrong_usage_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == cli.USAGE
    assert "usage: graphwright" in capsys.readouterr().err


def test_help_names_every_command_and_exit_code(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    assert stop.value.code == cli.DONE
    printed = " ".join(capsys.readouterr().out.split())
    for command in ("train", "evaluate", "predict", "data", "report", "export", "reproduce"):
        assert command in printed
    assert "3 interrupted" in printed
