"""`graphwright data prepare` as people run it: in processes, killed, interrupted, on Ray; always the same."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytest.importorskip("rdkit")
from graphwright.cli import main as cli
from graphwright.tasks.molecules import find_data
from graphwright.tasks.molecules.prepare import (
    InProcess,
    Prepared,
    PrepareSettings,
    Processes,
    RowBatch,
    Source,
    prepare,
)
from graphwright.tasks.molecules.prepare.batch import MeasuredBatch, WorkerCrashError, measured_batch

ROWS, SHARD_ROWS = 1500, 100
POISON = "CCCCCCC"
SETTINGS = PrepareSettings(shard_rows=SHARD_ROWS, list_rejected=True)


def poisoned_batch(batch: RowBatch, settings: PrepareSettings) -> MeasuredBatch:
    """Work that dies of one molecule, as a fault in a library would make it."""
    if any(row.text == POISON for row in batch.rows):
        os.kill(os.getpid(), signal.SIGKILL)
    return measured_batch(batch, settings)


def impossible_batch(batch: RowBatch, settings: PrepareSettings) -> MeasuredBatch:
    """Work in a worker that cannot work at all."""
    os.kill(os.getpid(), signal.SIGKILL)
    return measured_batch(batch, settings)


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """Molecules, some of them twice, and rows that are none."""
    path = tmp_path_factory.mktemp("source") / "rows.smi"
    smiles = pq.read_table(find_data("qm9"), columns=["smiles"]).slice(0, ROWS - 110)["smiles"].to_pylist()
    path.write_text("\n".join([*smiles[:700], *["rubbish"] * 10, *smiles[:100], *smiles[700:]]) + "\n")
    return path


@pytest.fixture(scope="module")
def straight(source, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("straight") / "out"
    prepare([Source.of(source)], out, SETTINGS, InProcess())
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def command(source: Path, out: Path, *more: str) -> list[str]:
    options = ["--out", str(out), "--shard-rows", str(SHARD_ROWS), "--list-rejected", *more]
    return ["data", "prepare", "molecules", str(source), *options]


@pytest.fixture
def running(source, tmp_path) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, caught in the middle of its work."""
    out = tmp_path / "out"
    words = [sys.executable, "-m", "graphwright.cli.main", *command(source, out, "--processes", "2")]
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=errors, text=True)
    try:
        deadline = time.monotonic() + 120
        while len(list(out.glob("shards/*.parquet"))) < 2:
            assert process.poll() is None, (tmp_path / "errors").read_text()
            assert time.monotonic() < deadline, (tmp_path / "errors").read_text()
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()


def descendants(process: int) -> list[int]:
    """Processes that a process started, and those that these did."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process:
            found += [int(path.parent.name), *descendants(int(path.parent.name))]
    return found


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_killed_run_leaves_nobody_behind_and_goes_on_to_the_same_bytes(source, straight, running, tmp_path):
    workers = descendants(running.pid)
    assert len(workers) >= 2
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    written = len(list((tmp_path / "out" / "shards").glob("*.parquet")))
    assert 2 <= written < ROWS // SHARD_ROWS
    deadline = time.monotonic() + 60
    while any(map(is_running, workers)):
        assert time.monotonic() < deadline, "workers outlive the process that started them"
        time.sleep(0.1)
    assert cli.main(command(source, tmp_path / "out", "--processes", "2")) == cli.DONE
    assert contents(tmp_path / "out") == contents(straight)


@pytest.mark.slow
def test_an_interrupted_run_says_so_and_goes_on_to_the_same_bytes(source, straight, running, tmp_path, capsys):
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=120) == cli.INTERRUPTED
    errors = (tmp_path / "errors").read_text()
    assert "Give the same command again to go on" in errors
    assert "Traceback" not in errors
    assert cli.main(command(source, tmp_path / "out", "--processes", "1")) == cli.DONE
    assert contents(tmp_path / "out") == contents(straight)
    printed = capsys.readouterr().out
    for figure in ("rows read", "1,500", "duplicate", "molecules/s per core", "peak memory", "core-hours"):
        assert figure in printed


@pytest.mark.slow
def test_a_row_that_kills_its_process_is_rejected_and_all_others_stay(source, tmp_path):
    path = tmp_path / "poisoned.smi"
    lines = source.read_text().splitlines()[:600]
    path.write_text("\n".join([*lines[:250], POISON, *lines[250:]]) + "\n")
    engine = Processes(2)
    try:
        poisoned = prepare([Source.of(path)], tmp_path / "out", SETTINGS, engine, work=poisoned_batch)
    finally:
        engine.close()
    (crashed,) = [count for count in poisoned.rejected if count.reason == "crashed"]
    assert (crashed.count, crashed.row, crashed.text) == (1, 251, POISON)
    path.write_text("\n".join(lines) + "\n")
    clean = prepare([Source.of(path)], tmp_path / "clean", SETTINGS, InProcess())
    assert smiles(tmp_path / "out", poisoned) == smiles(tmp_path / "clean", clean)


@pytest.mark.slow
def test_workers_that_cannot_work_are_an_error_and_no_reason_to_reject_rows(source, tmp_path):
    engine = Processes(2)
    try:
        with pytest.raises(WorkerCrashError, match="a process that prepares molecules died"):
            prepare([Source.of(source)], tmp_path / "out", SETTINGS, engine, work=impossible_batch)
    finally:
        engine.close()
    assert list((tmp_path / "out" / "shards").iterdir()) == []


def smiles(folder: Path, prepared: Prepared) -> list[str]:
    tables = [pq.read_table(folder / "shards" / record.name) for record in prepared.manifest.shards]
    return sorted(text for table in tables for text in table["smiles"].to_pylist())


@pytest.mark.slow
def test_a_ray_cluster_gives_the_same_bytes(source, straight, tmp_path, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    # In a process of its own: Ray leaves threads and signal handlers behind.
    words = [sys.executable, "-m", "graphwright.cli.main", *command(source, tmp_path / "out")]
    ended = subprocess.run(
        [*words, "--engine", "ray", "--processes", "2"], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == cli.DONE, ended.stderr
    assert contents(tmp_path / "out") == contents(straight)


def test_the_command_ends_with_a_code_and_a_reason(source, tmp_path, capsys):
    assert cli.main(command(tmp_path / "missing.smi", tmp_path / "a")) == cli.USAGE
    assert "missing.smi is not a file" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
    (tmp_path / "bad.smi").write_text("rubbish\nC.C\n")
    assert cli.main(command(tmp_path / "bad.smi", tmp_path / "b", "--processes", "1")) == cli.USAGE
    assert "bad.smi: none of its 2 rows can be used: unparsable 1" in capsys.readouterr().err
    for option, value, message in (
        ("--max-atoms", "1", "--max-atoms: Input should be greater than or equal to 2, got 1"),
        ("--elements", "C,Xx", "--elements: 'Xx' is not the symbol of an element"),
        ("--processes", "0", "--processes must be at least 1"),
        ("--shard-rows", "0", "--shard-rows: Input should be greater than or equal to 1"),
    ):
        assert cli.main([*command(source, tmp_path / "c"), option, value]) == cli.USAGE
        assert message in capsys.readouterr().err
    words = command(source, tmp_path / "c")
    assert cli.main([*words[:4], str(source), *words[4:]]) == cli.USAGE
    assert "rows.smi is given twice" in capsys.readouterr().err


def test_options_reach_the_preparation(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("key,structure\nx,CCO\ny,CCN\nz,CCCCC\n")
    words = ["data", "prepare", "molecules", str(tmp_path / "a.csv"), "--out", str(tmp_path / "out")]
    words += ["--smiles-column", "structure", "--id-column", "key", "--max-atoms", "4", "--elements", "C,O"]
    assert cli.main([*words, "--processes", "1"]) == cli.DONE
    (row,) = pq.read_table(tmp_path / "out" / "shards" / "000-000000.parquet").to_pylist()
    assert (row["id"], row["smiles"]) == ("x", "CCO")
    assert cli.main([*words, "--processes", "1"]) == cli.DONE
    assert "nothing was left to do" in capsys.readouterr().out
