"""The row of the contract, and the clock; nothing is asserted about how fast anything is."""

from io import StringIO

import pytest
import torch
from rich.console import Console

from benchmarks import Row, table
from benchmarks.measurement import LEAST_SECONDS, interleaved_milliseconds, median_milliseconds, timed
from graphwright.training.processes import threads

CONTRACT = {
    "name",
    "n",
    "batch",
    "threads",
    "ours_ms",
    "peer",
    "peer_ms",
    "ratio",
    "ours_objective",
    "peer_objective",
}


def test_ratio_is_peer_over_ours():
    assert Row("x", 1, 1, 1, 2.0, "y", 6.0).to_json()["ratio"] == 3.0


def test_json_is_the_contract_and_what_was_measured_besides():
    assert set(Row("x", 1, 1, 1, 2.0, "y", 6.0).to_json()) == CONTRACT
    facts = Row("x", 1, 1, 1, 2.0, "y", 6.0, extras={"seconds": 2.5}).to_json()
    assert set(facts) == CONTRACT | {"seconds"}
    assert facts["seconds"] == 2.5


def test_one_table_names_the_benchmark_of_every_row_when_there_are_several():
    plain = Row("step", 3, 4, 1, 1.0, "theirs", 3.0, 0.5, 0.25)
    rich = Row("loop", 3, 4, 2, 1.0, "inside", 0.97, extras={"loop_overhead": 0.03})
    console = Console(width=200, record=True, file=StringIO())
    console.print(table({"plans": [plain], "training": [rich]}))
    printed = console.export_text()
    for text in ("plans: step", "training: loop", "3.0x", "0.97x", "0.50000", "loop overhead 0.03"):
        assert text in printed
    console.print(table({"plans": [plain]}))
    printed = console.export_text()
    assert "plans: step" not in printed
    assert "besides" not in printed


@pytest.mark.parametrize("width", [100, 1000])
def test_a_table_cuts_no_figure_however_narrow_the_terminal(width):
    extras = {"samples_per_second": 123.0, "plan_share": 0.0625, "ours_peak_mib": 45.5, "peer_peak_mib": 67.5}
    row = Row(
        "a name of several words", 60, 1536, 2, 0.0123, "a.peer.with_a_long_name", 12.3456, 0.5, 0.25, extras
    )
    console = Console(width=width, record=True, file=StringIO())
    console.print(table({"training": [row]}))
    printed = console.export_text()
    assert "…" not in printed
    for figure in ("60", "1536", "0.0123", "12.3456"):
        assert f" {figure} " in printed
    assert not [line for line in printed.splitlines()[1:] if width == 1000 and len(line) > 300]


class Clock:
    """Calls that take as long as they are told, by a clock that only they move."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        self.calls = []
        monkeypatch.setattr("benchmarks.measurement.perf_counter", lambda: self.now)

    def call(self, name, durations):
        left = iter(durations)

        def run():
            self.calls.append(name)
            self.now += next(left)

        return run


def test_timing_is_the_median_after_a_warm_up(monkeypatch):
    clock = Clock(monkeypatch)
    assert median_milliseconds(clock.call("a", [9.0, 3.0, 1.0, 2.0]), 3) == pytest.approx(2000)
    assert len(clock.calls) == 4


def test_calls_take_turns(monkeypatch):
    clock = Clock(monkeypatch)
    times = interleaved_milliseconds([clock.call("a", [9.0, 1.0, 1.0]), clock.call("b", [9.0, 4.0, 4.0])], 2)
    assert times == pytest.approx([1000, 4000])
    assert clock.calls == ["a", "b"] * 3


def test_short_calls_are_timed_many_at_a_time(monkeypatch):
    clock = Clock(monkeypatch)
    quick = LEAST_SECONDS / 4
    assert median_milliseconds(clock.call("a", [9.0, *[quick] * 100]), 2) == pytest.approx(1000 * quick)
    assert len(clock.calls) == 2 + 2 * 4


def test_timed_gives_the_result_too(monkeypatch):
    clock = Clock(monkeypatch)
    call = clock.call("a", [3.0])
    assert timed(lambda: (call(), "done")[1]) == ("done", 3.0)


def test_thread_count_is_restored_even_after_an_error():
    before, inside = torch.get_num_threads(), []

    def fail():
        with threads(before + 1):
            inside.append(torch.get_num_threads())
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert inside == [before + 1]
    assert torch.get_num_threads() == before
