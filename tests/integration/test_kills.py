"""A process killed anywhere leaves whole files behind, and goes on to what it would have come to, to the last bit.

The writes are struck by fault injection: a child process kills itself before its n-th rename or flush.
"""

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pyarrow import parquet

from graphwright.cli.train import is_unsaved
from graphwright.inference import checkpoint as checkpoints
from graphwright.settings import Run
from graphwright.training import train
from graphwright.training.log import read_log
from tiny import WITH_STATE, tiny_settings

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
TIMES = ("seconds", "samples_per_second")
RANDOM_KILLS = 50


def settings(workers: int = 0) -> Run:
    """Everything that a state has: dropout, a matcher with a state, averaged weights, the middle of an epoch."""
    return tiny_settings(
        task={"samples": 30},
        model={"dropout": 0.2},
        matching=WITH_STATE,
        train={
            "steps": 5,
            "workers": workers,
            "log_every": 2,
            "validate_every": 2,
            "validation_samples": 2,
            "checkpoint_minutes": 1e-9,
            "averaging": 0.9,
        },
    )


def in_child(work: Callable[[], None]) -> int:
    """Do something in a forked process; its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at_write(visit: int) -> None:
    """Let this process die before its n-th rename or flush to the disk; both come with every file."""
    visits = iter(range(1, 10**9))
    for name in ("replace", "fsync"):
        original = getattr(os, name)

        def struck(*arguments: Any, original: Any = original) -> Any:
            if next(visits) == visit:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments)

        setattr(os, name, struck)


def killed_at_write(visit: int, work: Callable[[], object]) -> bool:
    """Whether the work was killed at this write, rather than done before."""

    def struck() -> None:
        kill_at_write(visit)
        work()

    code = in_child(struck)
    assert code in (0, -signal.SIGKILL)
    return code != 0


def finish(run: Run, folder: Path) -> None:
    """As the command line goes on: from the last checkpoint, which must load, or from the start."""
    saved = checkpoints.exists(folder / "checkpoints" / "last")
    if saved:
        checkpoints.load(folder / "checkpoints" / "last")
    else:
        assert not folder.exists() or is_unsaved(folder)
    torch.manual_seed(12345)  # owed to nothing in this process
    train(run, folder, resume=saved)


def assert_same_run(first: Path, second: Path) -> None:
    for name in ("last", "best"):
        one, other = (checkpoints.load(folder / "checkpoints" / name) for folder in (first, second))
        assert one.tensors.keys() == other.tensors.keys()
        for key, value in one.tensors.items():
            assert torch.equal(value, other.tensors[key]), f"{name}: {key}"
        progress = [dict(each.facts["progress"]) | {"seconds": 0} for each in (one, other)]
        assert progress[0] == progress[1]
    logs = [
        [{key: value for key, value in record.items() if key not in TIMES} for record in read_log(path)]
        for path in (first / "log.jsonl", second / "log.jsonl")
    ]
    assert logs[0] == logs[1]
    assert len((second / "log.csv").read_text().splitlines()) == len(logs[1]) + 1
    assert not list(second.rglob("*.draft"))
    assert json.loads((second / "metrics.json").read_text())["step"] == 5


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("straight") / "run"
    train(settings(), folder)
    return folder


@pytest.mark.parametrize("visit", [2, 9, 26])
def test_a_run_killed_at_a_write_goes_on_to_the_last_bit(straight, tmp_path, visit):
    """Before the log is there, inside the first checkpoint, and inside a later one."""
    assert killed_at_write(visit, lambda: train(settings(), tmp_path / "run"))
    finish(settings(), tmp_path / "run")
    assert_same_run(straight, tmp_path / "run")


@pytest.mark.slow
def test_a_run_killed_at_every_write_goes_on_to_the_last_bit(straight, tmp_path):
    visit = 0
    while killed_at_write(visit := visit + 1, lambda: train(settings(), tmp_path / str(visit))):
        finish(settings(), tmp_path / str(visit))
        assert_same_run(straight, tmp_path / str(visit))
    print(f"killed at each of {visit - 1} writes")
    assert visit > 50


def killed_after(seconds: float, run: Run, folder: Path) -> bool:
    """Train in a child for so long; whether it was killed rather than done."""
    child = os.fork()
    if child == 0:
        try:
            train(run, folder)
            os._exit(0)
        except BaseException:
            os._exit(99)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)  # a child that is done waits to be asked for its code
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.parametrize(
    ("kills", "workers"),
    [
        (2, 0),
        pytest.param(RANDOM_KILLS, 0, marks=pytest.mark.slow),
        pytest.param(RANDOM_KILLS, 2, marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_at_random_moments_goes_on_to_the_last_bit(straight, tmp_path, kills, workers):
    run = settings(workers)
    begun = time.perf_counter()
    train(run, tmp_path / "whole")
    length, rng, struck, begun_runs = time.perf_counter() - begun, random.Random(0), 0, 0
    # The first run is the slowest, so that some later ones are done before their moment comes.
    while struck < kills:
        folder = tmp_path / str(begun_runs)
        begun_runs += 1
        assert begun_runs < 20 * kills, f"only {struck} runs were killed before their end"
        struck += killed_after(rng.uniform(0, length), run, folder)
        finish(run, folder)
        assert_same_run(straight, folder)
    print(f"{struck} of {begun_runs} runs were killed before their end")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_on_streamed_shards_killed_at_every_write_goes_on_to_the_last_bit(tmp_path, workers):
    pytest.importorskip("rdkit")
    from graphwright.tasks.molecules import find_data
    from graphwright.tasks.molecules.prepare import InProcess, PrepareSettings, Source, prepare
    from tiny_molecules import molecule_settings

    rows = tmp_path / "rows.smi"
    table = parquet.read_table(find_data("qm9"), columns=["smiles"])
    rows.write_text("\n".join(table.slice(0, 400)["smiles"].to_pylist()) + "\n")
    asked = PrepareSettings(shard_rows=100, max_atoms=9, elements=("C", "O", "N", "F"))
    prepare([Source.of(rows)], tmp_path / "shards", asked, InProcess())
    run = molecule_settings(tmp_path / "shards", train=settings(workers).train.model_dump())
    train(run, tmp_path / "straight")
    visit = 0
    while killed_at_write(visit := visit + 1, lambda: train(run, tmp_path / str(visit))):
        finish(run, tmp_path / str(visit))
        assert_same_run(tmp_path / "straight", tmp_path / str(visit))
    print(f"killed at each of {visit - 1} writes, {workers} workers")
    assert visit > 50


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "visits", [[5], pytest.param(range(1, 10**6), marks=pytest.mark.slow)], ids=["one", "all"]
)
def test_a_preparation_killed_at_a_write_loses_and_doubles_no_row(tmp_path, visits):
    pytest.importorskip("rdkit")
    from graphwright.tasks.molecules.prepare import InProcess, PrepareSettings, Source, prepare

    smiles = ["C" * length + end for length in range(1, 16) for end in ("O", "N", "F", "rubbish", "O")]
    (tmp_path / "rows.smi").write_text("\n".join(smiles) + "\n")
    asked = PrepareSettings(shard_rows=10, list_rejected=True)

    def work(out: Path) -> None:
        prepare([Source.of(tmp_path / "rows.smi")], out, asked, InProcess())

    work(tmp_path / "straight")
    expected = contents(tmp_path / "straight")
    done = 0
    for visit in visits:
        out = tmp_path / str(visit)
        if not killed_at_write(visit, lambda out=out: work(out)):
            break
        work(out)
        assert contents(out) == expected, visit
        done += 1
    print(f"killed at each of {done} writes")
    assert done >= min(len(visits), 10)
