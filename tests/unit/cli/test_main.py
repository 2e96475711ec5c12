"""Exit codes, messages, JSON: what scripts rely on."""

import json

import pytest

from graphwright.bench import BENCHMARKS, Row
from graphwright.cli import main as cli

ROW = Row("mirror descent", 10, 128, 1, 0.5, "ot.batch", 2.0, 0.1, 0.2)


def test_bench_prints_a_table_and_writes_the_contract(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(BENCHMARKS, "plans", lambda: iter([ROW]))
    out = tmp_path / "deep" / "plans.json"
    assert cli.main(["bench", "plans", "--json", str(out)]) == cli.DONE
    printed = capsys.readouterr().out
    assert "mirror descent" in printed
    assert "4.0x" in printed
    assert json.loads(out.read_text()) == [
        {
            "name": "mirror descent",
            "n": 10,
            "batch": 128,
            "threads": 1,
            "ours_ms": 0.5,
            "peer": "ot.batch",
            "peer_ms": 2.0,
            "ratio": 4.0,
            "ours_objective": 0.1,
            "peer_objective": 0.2,
        }
    ]


def failing(error):
    def rows():
        raise error
        yield

    return rows


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ImportError("the peer is POT: pip install it"), cli.USAGE, "graphwright: the peer is POT"),
        (ValueError("n must be positive"), cli.USAGE, "graphwright: n must be positive"),
        (KeyboardInterrupt(), cli.INTERRUPTED, "interrupted"),
        (RuntimeError("boom"), cli.INTERNAL, "internal error: RuntimeError: boom"),
    ],
)
def test_errors_are_one_line_with_the_right_code(monkeypatch, capsys, error, code, message):
    monkeypatch.delenv("GRAPHWRIGHT_DEBUG", raising=False)
    monkeypatch.setitem(BENCHMARKS, "plans", failing(error))
    assert cli.main(["bench", "plans"]) == code
    assert message in capsys.readouterr().err


def test_debug_shows_where_an_internal_error_came_from(monkeypatch):
    monkeypatch.setenv("GRAPHWRIGHT_DEBUG", "1")
    monkeypatch.setitem(BENCHMARKS, "plans", failing(RuntimeError("boom")))
    with pytest.raises(RuntimeError, match="boom"):
        cli.main(["bench", "plans"])


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["bench"], ["bench", "nonsense"]])
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
    assert "bench" in printed
    assert "3 interrupted" in printed
