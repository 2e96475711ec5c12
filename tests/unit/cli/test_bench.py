"""`graphwright bench` as a command: one table, JSON beside it, the plot, and what happens when something fails."""

import json
from dataclasses import replace

import pytest

from graphwright.bench import BENCHMARKS, LONG, Remark, Row
from graphwright.bench.scaling import BATCH, SIZE
from graphwright.cli import main as cli

FAST = Row("fast", 10, 4, 1, 1.0, "slow", 3.0)
POINTS = [Row("plan", n, b, 1, 1.0, "eager", 3.0) for n, b in ((10, BATCH), (SIZE, BATCH), (SIZE, 1))]


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
    assert cli.main(["bench", "all", "--json", str(out)]) == cli.DONE
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
    assert cli.main(["bench", "all"]) == cli.DONE
    assert "for hours" not in capsys.readouterr().out
    assert cli.main(["bench", LONG[0]]) == cli.DONE
    assert "for hours" in capsys.readouterr().out


@pytest.mark.usefixtures("benchmarks")
def test_the_plot_is_written(tmp_path):
    out = tmp_path / "deep" / "scaling.png"
    assert cli.main(["bench", "scaling", "--plot", str(out)]) == cli.DONE
    assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("benchmarks")
def test_a_plot_of_something_else_is_refused(tmp_path, capsys):
    assert cli.main(["bench", "plans", "--plot", str(tmp_path / "x.png")]) == cli.USAGE
    assert "graphwright bench scaling --plot PNG" in capsys.readouterr().err


@pytest.mark.usefixtures("benchmarks")
def test_a_missing_peer_ends_its_own_benchmark_but_not_the_others(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(BENCHMARKS, "plans", failing(ImportError("pip install POT")))
    out = tmp_path / "all.json"
    assert cli.main(["bench", "all", "--json", str(out)]) == cli.SOME_FAILED
    assert "plans could not be measured: pip install POT" in capsys.readouterr().out
    assert [row["name"] for row in json.loads(out.read_text())] == ["fast", "plan", "plan", "plan"]
    assert cli.main(["bench", "plans"]) == cli.USAGE


@pytest.mark.usefixtures("benchmarks")
def test_an_interrupted_run_keeps_what_it_has_measured(monkeypatch, tmp_path):
    monkeypatch.setitem(BENCHMARKS, "data", failing(KeyboardInterrupt()))
    out = tmp_path / "all.json"
    assert cli.main(["bench", "all", "--json", str(out)]) == cli.INTERRUPTED
    assert [row["name"] for row in json.loads(out.read_text())] == ["fast"]
