"""`graphwright reproduce` as a person types it: words, exit codes, what is printed."""

import signal
from pathlib import Path

import pytest

from figures.propositions import Propositions
from graphwright import experiments
from graphwright.cli import main as cli
from graphwright.experiments import Job, Scale, expand, read_grid, reproduction, store_of, work
from graphwright.experiments.estimate import Cost
from graphwright.experiments.job import lock_job


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["reproduce"], "name what to reproduce: table1"),
        (["reproduce", "table1"], "give --scale: smoke, cpu, paper"),
        (["reproduce", "table3", "--scale", "smoke"], "no experiment 'table3'"),
        (["reproduce", "table1", "--scale", "smoke", "--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["reproduce", "table1", "--scale", "smoke", "--seeds", "-1"], "--seeds must be at least 1, got -1"),
        (
            ["reproduce", "table2", "--scale", "smoke", "--column", "Coloring"],
            "no column 'Coloring': they are Color",
        ),
        (["reproduce", "--status", "--records", "/nowhere"], "/nowhere is no folder of records"),
    ],
)
def test_what_cannot_be_done_is_refused(words, complaint, capsys):
    assert cli.main(words) == cli.USAGE
    assert complaint in capsys.readouterr().err


def test_an_unknown_scale_is_usage():
    with pytest.raises(SystemExit) as stop:
        cli.main(["reproduce", "table1", "--scale", "huge"])
    assert stop.value.code == cli.USAGE


def jobs_of(name: str, scale: Scale = Scale.SMOKE) -> list[Job]:
    return [job for each in expand(read_grid(name), scale) for job in each.jobs]


def test_status_tells_done_running_failed_and_missing_apart(tmp_path, capsys):
    store = store_of(tmp_path)
    done, failed, running, *_ = jobs_of("comparison")
    jobs = len({job.key for job in jobs_of("comparison")})
    for job, name in ((done, "record.json"), (failed, "failure.json")):
        store.folder(job).mkdir(parents=True)
        (store.folder(job) / name).write_text('{"error": "RuntimeError: no good"}')
    with lock_job(store.folder(running)):
        words = ["reproduce", "comparison", "--status", "--scale", "smoke", "--out", str(tmp_path)]
        assert cli.main(words) == cli.DONE
    printed = capsys.readouterr().out
    row = next(line for line in printed.splitlines() if "comparison" in line)
    cells = [cell.strip() for cell in row.split("│")[1:-1]]
    asked = str(len(expand(read_grid("comparison"), Scale.SMOKE)))
    assert cells == ["comparison", "smoke", asked, str(jobs), "1", "1", "", "1", str(jobs - 3), "not written"]
    assert "failed: RuntimeError: no good" in printed
    assert str(store.folder(done)) in printed


def test_status_without_a_name_shows_everything(tmp_path, capsys):
    assert cli.main(["reproduce", "--status", "--out", str(tmp_path)]) == cli.DONE
    printed = capsys.readouterr().out
    for name in ("table1", "table2", "frontier", "scaling", "comparison", "tokens", "ablations", "examples"):
        assert printed.count(name) == 3


def test_status_counts_finished_runs_that_nothing_asked_for_claims(tmp_path, capsys):
    store = store_of(tmp_path)
    for key in (jobs_of("comparison")[0].key, jobs_of("frontier")[0].key, "0" * 16):
        (store.root / key).mkdir(parents=True)
        (store.root / key / "record.json").write_text("{}")
    words = ["reproduce", "--status", "--scale", "smoke", "--out", str(tmp_path)]
    for names, count in ((["comparison"], 2), (["comparison", "frontier"], 1), (["propositions"], 3)):
        assert cli.main([*words, *names]) == cli.DONE
        assert f"{count} finished runs in {store.root} belong to none of these" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["examples", "propositions"])
def test_status_of_what_is_only_a_page_says_whether_that_is_written(name, tmp_path, capsys):
    def cells():
        assert cli.main(["reproduce", name, "--status", "--scale", "cpu", "--out", str(tmp_path)]) == cli.DONE
        row = next(line for line in capsys.readouterr().out.splitlines() if f"│ {name}" in line)
        return [cell.strip() for cell in row.split("│")[1:-1]]

    assert cells() == [name, "cpu", *[""] * 7, "not written"]
    (tmp_path / f"{name}-cpu").mkdir()
    (tmp_path / f"{name}-cpu" / "README.md").touch()
    assert cells() == [name, "cpu", *[""] * 7, "written"]


def dry_run(name, scale, out, capsys, monkeypatch):
    monkeypatch.setattr(experiments, "measured_cost", lambda *_: Cost(0.01, 0.1, 80))
    words = ["reproduce", name, "--scale", scale, "--dry-run", "--jobs", "1", "--out", str(out)]
    assert cli.main(words) == cli.DONE
    return capsys.readouterr().out


def test_dry_run_counts_the_runs_that_examples_need(tmp_path, capsys, monkeypatch):
    assert "3 configurations, 3 jobs left" in dry_run("examples", "smoke", tmp_path, capsys, monkeypatch)
    # Every task has a shipped model, which is drawn at this scale.
    printed = dry_run("examples", "cpu", tmp_path, capsys, monkeypatch)
    assert "examples at scale cpu: a page without runs of its own" in printed
    assert "0 jobs left" in printed
    assert "a page without runs" in dry_run("propositions", "smoke", tmp_path, capsys, monkeypatch)


def test_dry_run_prints_the_grid_and_the_hours_and_trains_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(work, "perform", lambda *_: pytest.fail("nothing is to be done"))
    words = ["reproduce", "comparison", "--scale", "smoke", "--dry-run", "--jobs", "2", "--out", str(tmp_path)]
    assert cli.main(words) == cli.DONE
    printed = capsys.readouterr().out
    assert "conditional gradient" in printed
    configurations, jobs = expand(read_grid("comparison"), Scale.SMOKE), jobs_of("comparison")
    distinct = len({job.key for job in jobs})
    assert 3 < distinct <= len(jobs)
    assert f"{len(configurations)} configurations, {distinct} jobs left" in printed
    assert "hours with 2 at a time" in printed
    assert not (tmp_path / "runs").exists()


def test_only_the_runs_of_a_column_that_is_named_are_made(tmp_path, capsys, monkeypatch):
    begun = []
    monkeypatch.setattr(work, "perform", lambda job, *_: begun.append(job) or job_is_done(job, tmp_path))
    words = ["reproduce", "table2", "--scale", "smoke", "--out", str(tmp_path), "--jobs", "1"]
    assert cli.main([*words, "--column", "Coloring 20"]) == cli.DONE
    own = [each for each in expand(read_grid("table2"), Scale.SMOKE) if each.column == "Coloring 20"]
    assert [job.key for job in begun] == [each.jobs[0].key for each in own]
    assert "missing" not in capsys.readouterr().err
    page = (tmp_path / "table2-smoke" / "README.md").read_text()
    assert "## MS2Scaffold" in page


def job_is_done(job: Job, out: Path) -> None:
    folder = store_of(out).folder(job)
    folder.mkdir(parents=True)
    (folder / "record.json").write_text('{"test": {}}')


def test_failures_are_named_and_the_rest_is_written(tmp_path, capsys, monkeypatch):
    def fail(job, folder, threads):  # noqa: ARG001
        raise RuntimeError("no good")

    monkeypatch.setattr(work, "perform", fail)
    words = ["reproduce", "frontier", "--scale", "smoke", "--jobs", "1", "--out", str(tmp_path)]
    assert cli.main(words) == cli.SOME_FAILED
    captured = capsys.readouterr()
    first = "frontier 1/14  Coloring 20, Mirror, K_in 1, K_out 10, seed 0: failed: RuntimeError: no good"
    assert first in captured.out
    assert captured.err.count("frontier: Coloring 20, ") == captured.err.count("RuntimeError: no good") == 14
    assert (tmp_path / "frontier-smoke" / "README.md").exists()


def test_an_interrupt_ends_with_3_and_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def interrupt(job, folder, threads):  # noqa: ARG001
        raise KeyboardInterrupt

    monkeypatch.setattr(work, "perform", interrupt)
    words = ["reproduce", "frontier", "scaling", "--scale", "smoke", "--jobs", "1", "--out", str(tmp_path)]
    assert cli.main(words) == cli.INTERRUPTED
    assert "Give the same command again to go on" in capsys.readouterr().err
    assert not (tmp_path / "scaling-smoke").exists()


def test_an_interrupt_while_a_page_is_written_stops_after_it(tmp_path, capsys, monkeypatch):
    def write(out, scale):
        signal.raise_signal(signal.SIGINT)
        return Propositions(out / f"propositions-{scale}", [])

    monkeypatch.setattr(experiments, "write_propositions", write)
    words = ["reproduce", "propositions", "scaling", "--scale", "smoke", "--jobs", "1", "--out", str(tmp_path)]
    assert cli.main(words) == cli.INTERRUPTED
    assert "Give the same command again to go on" in capsys.readouterr().err
    assert not (tmp_path / "scaling-smoke").exists()


def test_without_a_checkout_the_propositions_are_refused_before_anything_is_done(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(reproduction, "PROPOSITIONS", tmp_path / "figures" / "propositions.py")
    words = ["--scale", "smoke", "--out", str(tmp_path)]
    assert cli.main(["reproduce", "scaling", "propositions", *words]) == cli.USAGE
    assert "drawn in a checkout of the repository" in capsys.readouterr().err
    assert not (tmp_path / "scaling-smoke").exists()


def test_without_a_checkout_all_goes_on_and_says_what_it_lacks(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(reproduction, "PROPOSITIONS", tmp_path / "figures" / "propositions.py")
    monkeypatch.setattr("graphwright.cli.reproduce.NAMES", ("propositions",))
    assert cli.main(["reproduce", "all", "--scale", "smoke", "--out", str(tmp_path)]) == cli.SOME_FAILED
    assert "propositions: the propositions are drawn in a checkout" in capsys.readouterr().err
