"""Training as a person starts it, measured: what is started, what is counted, and when it is over."""

from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import pytest

from benchmarks import (
    BENCHMARKS,
    LONG,
    Remark,
    measure_time_to_published,
    measure_whole_machine,
    whole_machine,
)
from benchmarks.whole_machine import MATCHINGS, PUBLISHED, TRAINED, Goal, _until_passed
from graphwright.settings import presets
from graphwright.training.log import read_log
from graphwright.training.processes import cores


def words(**options: int) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name.replace('__', '.')}", str(value))]


TINY = words(
    task__samples=400,
    train__batch_size=8,
    model__width=16,
    model__layers=1,
    model__heads=2,
    model__head_width=16,
    model__encoder_width=16,
    matching__target_width=8,
    matching__target_layers=1,
)
OFTEN = words(train__log_every=1, train__validate_every=3, train__validation_samples=4)
ANY, NONE = (-1.0, 1e9), (100.0, 0.0)
"""Percent and edits that the first validation passes, and that no validation ever does."""


@pytest.fixture(autouse=True)
def _from_a_shell(monkeypatch):
    """As in a shell of its own: neither one thread nor processes of somebody else's."""
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


def goal(figures: tuple[float, float], minutes: float) -> Goal:
    return Goal("coloring4", *figures, minutes)


def commands_with(path: Path) -> list[str]:
    """Processes that were given the path; elsewhere than on Linux nobody is asked."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # over in the meantime
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [command for command in found if str(path) in command]


def test_what_takes_long_is_a_benchmark_of_its_own_and_of_presets_that_there_are():
    assert set(LONG) < set(BENCHMARKS)
    assert {*TRAINED, PUBLISHED.preset} <= {preset.name for preset in presets()}


@pytest.mark.slow
def test_a_run_is_over_at_the_first_validation_that_passes(tmp_path):
    """Of a run of ten minutes; none of its processes goes on."""
    seconds, samples = _until_passed(goal(ANY, 10.0), tmp_path / "run", [*OFTEN, *TINY])
    assert samples == 3 * 8
    assert 0 < seconds < 60
    first = next(record for record in read_log(tmp_path / "run" / "log.jsonl") if "isomorphic" in record)
    assert first["step"] == 3
    assert first["seconds"] < seconds  # the processes' start counts, too
    until = monotonic() + 10
    while commands_with(tmp_path) and monotonic() < until:
        sleep(0.1)
    assert commands_with(tmp_path) == []


@pytest.mark.slow
def test_a_run_that_ends_before_has_not_passed(tmp_path):
    assert _until_passed(goal(NONE, 0.03), tmp_path / "run", [*OFTEN, *TINY]) is None
    assert (tmp_path / "run" / "metrics.json").exists()  # it had all of its time


@pytest.mark.slow
def test_a_run_that_fails_says_why(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeError, match=r"(?s)coloring4 could not be trained: .*file/run"):
        _until_passed(goal(ANY, 1.0), tmp_path / "file" / "run", TINY)


def test_both_ways_to_match_are_timed_and_one_that_does_not_pass_is_remarked(monkeypatch):
    asked = []

    def passed(goal, folder, options):
        asked.append(options)
        assert goal == PUBLISHED
        assert not folder.exists()
        return found["learned" if "learned" in options else "conditional gradient"]

    monkeypatch.setattr(whole_machine, "_until_passed", passed)
    found = {"learned": (240.0, 96_000), "conditional gradient": (120.0, 64_000)}
    learned, peer = measure_time_to_published(further=TINY)
    assert asked == [[*options, *TINY] for options in MATCHINGS.values()]
    assert (learned.name, peer.name) == (
        "to 45.46 % and edit 2.30, learned",
        "to 45.46 % and edit 2.30, conditional gradient",
    )
    assert (learned.ours_ms, learned.peer_ms, learned.ratio) == pytest.approx((240_000.0, 120_000.0, 0.5))
    assert (peer.ours_ms, peer.ratio) == pytest.approx((120_000.0, 1.0))
    assert learned.extras == {"minutes": 4.0, "samples": 96_000.0}
    assert peer.extras == {"minutes": 2.0, "samples": 64_000.0}
    assert (learned.n, learned.batch, learned.threads) == (10, 8, cores())

    found = found | {"learned": None}
    remark, peer = measure_time_to_published()
    assert remark == Remark("learned did not pass 45.46 % and edit 2.3 in 5 minutes")
    assert peer.extras["minutes"] == 2.0

    found = {"learned": (240.0, 96_000), "conditional gradient": None}
    remark, alone = measure_time_to_published()  # no row: there is nothing to be measured beside
    assert "conditional gradient did not pass" in remark.text
    assert alone == Remark("learned passed after 4.0 minutes and 96,000 samples")

    found = dict.fromkeys(MATCHINGS)
    assert [type(each) for each in measure_time_to_published()] == [Remark, Remark]


@pytest.mark.slow
def test_a_process_for_every_core_is_measured_beside_one_with_a_thread_for_every_core(monkeypatch):
    monkeypatch.setattr(whole_machine, "LOG_EVERY", 2)
    commands, run = [], whole_machine.subprocess.run

    def noted(command, **options):
        commands.append(command)
        return run(command, **options)

    monkeypatch.setattr(whole_machine.subprocess, "run", noted)
    (row,) = measure_whole_machine(["coloring4"], TINY)
    assert [command[command.index("--train.devices") + 1] for command in commands] == ["cores", "1"]
    assert (row.name, row.n, row.threads) == ("whole machine, coloring4", 4, cores())
    assert row.peer == f"one process, {cores()} threads"
    assert row.ours_ms > 0
    assert row.peer_ms > 0
    assert row.extras["samples_per_second"] == pytest.approx(1000 / row.ours_ms)
    assert row.extras["peer_samples_per_second"] == pytest.approx(1000 / row.peer_ms)


def test_a_short_run_that_fails_says_why():
    with pytest.raises(RuntimeError, match=r"coloring4 could not be trained: .*heads"):
        list(measure_whole_machine(["coloring4"], ["--model.heads", "7"]))
