"""`python -m benchmarks` as a command: one table, JSON beside it, the plot, and what happens on a failure."""

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import BENCHMARKS, LONG, Remark, Row
from benchmarks.__main__ import main
from benchmarks.scaling import BATCH, SIZE
from graphwright.cli import main as cli

ROOT = Path(__file__).parents[3]
FAST = Row("fast", 10, 4, 1, 1.0, "slow", 3.0)
POINTS = [Row("plan", n, b, 1, 1.0, "eager", 3.0) for n, b in ((10, BATCH), (SIZE, BATCH), (SIZE, 1))]

ROW = Row("mirror descent", 10, 128, 1, 0.5, "ot.batch", 2.0, 0.1, 0.2)


def test_it_prints_a_table_and_writes_the_contract(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(BENCHMARKS, "plans", lambda: iter([ROW]))
    out = tmp_path / "deep" / "plans.json"
    assert main(["plans", "--json", str(out)]) == cli.DONE
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


@pytest.fixture
def benchmarks(monkeypatch):
    """Three benchmarks that take no time."""
    measured = {
        "plans": lambda: iter([FAST, Remark("no peer here: pip install [it]")]),
        "data": lambda: iter([FAST]),
        "scaling": lambda: iter(POINTS),
    }
    for name in list(BENCHMARKS):
        monkeypatch.delitem(BENCHMARKS, name)
    for name, measure in measured.items():
        monkeypatch.setitem(BENCHMARKS, name, measure)


def failing(error):
    def measure():
        yield FAST
        raise error

    return measure


@pytest.mark.usefixtures("benchmarks")
def test_all_is_one_table_with_remarks_below(tmp_path, capsys):
    out = tmp_path / "all.json"
    assert main(["all", "--json", str(out)]) == cli.DONE
    captured = capsys.readouterr()
    assert captured.out.count("ours ms") == 1
    for text in ("plans: fast", "data: fast", "scaling: plan", "no peer here: pip install [it]"):
        assert text in captured.out
    assert "bench data: fast, n = 10" in captured.err
    rows = [(row["benchmark"], row["name"]) for row in json.loads(out.read_text())]
    assert rows == [("plans", "fast"), ("data", "fast"), *[("scaling", "plan")] * 3]


@pytest.mark.usefixtures("benchmarks")
def test_what_takes_long_is_not_among_all_and_is_measured_when_it_is_named(monkeypatch, capsys):
    for name in LONG:
        monkeypatch.setitem(BENCHMARKS, name, lambda: iter([replace(FAST, name="for hours")]))
    assert main(["all"]) == cli.DONE
    assert "for hours" not in capsys.readouterr().out
    assert main([LONG[0]]) == cli.DONE
    assert "for hours" in capsys.readouterr().out


@pytest.mark.usefixtures("benchmarks")
def test_the_plot_is_written(tmp_path):
    out = tmp_path / "deep" / "scaling.png"
    assert main(["scaling", "--plot", str(out)]) == cli.DONE
    assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("benchmarks")
def test_a_plot_of_something_else_is_refused(tmp_path, capsys):
    assert main(["plans", "--plot", str(tmp_path / "x.png")]) == cli.USAGE
    assert "python -m benchmarks scaling --plot PNG" in capsys.readouterr().err


@pytest.mark.usefixtures("benchmarks")
def test_a_missing_peer_ends_its_own_benchmark_but_not_the_others(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(BENCHMARKS, "plans", failing(ImportError("pip install POT")))
    out = tmp_path / "all.json"
    assert main(["all", "--json", str(out)]) == cli.SOME_FAILED
    assert "plans could not be measured: pip install POT" in capsys.readouterr().out
    assert [row["name"] for row in json.loads(out.read_text())] == ["fast", "plan", "plan", "plan"]
    assert main(["plans"]) == cli.USAGE


@pytest.mark.usefixtures("benchmarks")
def test_an_interrupted_run_keeps_what_it_has_measured(monkeypatch, tmp_path):
    monkeypatch.setitem(BENCHMARKS, "data", failing(KeyboardInterrupt()))
    out = tmp_path / "all.json"
    assert main(["all", "--json", str(out)]) == cli.INTERRUPTED
    assert [row["name"] for row in json.loads(out.read_text())] == ["fast"]


@pytest.mark.parametrize("arguments", [[], ["nonsense"]])
def test_wrong_usage_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == cli.USAGE
    assert "usage: python -m benchmarks" in capsys.readouterr().err


def test_a_wheel_and_the_command_line_leave_them_to_a_checkout(capsys):
    with pytest.raises(SystemExit):
        cli.main(["bench", "plans"])
    assert "invalid choice: 'bench'" in capsys.readouterr().err
    assert find_spec("graphwright.bench") is None


def test_the_record_has_the_rows_that_are_written_today():
    """`docs/results/bench/all.json` is of the same benchmarks, with the fields that every row has."""
    rows = json.loads((ROOT / "docs/results/bench/all.json").read_text())
    assert {row["benchmark"] for row in rows} == BENCHMARKS.keys() - set(LONG)
    assert all(ROW.to_json().keys() <= row.keys() for row in rows)
