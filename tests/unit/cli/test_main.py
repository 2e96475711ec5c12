"""Exit codes and messages: what scripts rely on."""

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
        (RuntimeError("boom"), cli.INTERNAL, "internal error: RuntimeError: boom"),
    ],
)
def test_errors_are_one_line_with_the_right_code(monkeypatch, capsys, failing, error, code, message):
    monkeypatch.delenv("GRAPHWRIGHT_DEBUG", raising=False)
    failing(error)
    assert cli.main(["report", "runs/tiny"]) == code
    assert message in capsys.readouterr().err


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
