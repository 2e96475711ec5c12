"""Jobs in several processes and on Ray: the same results, failures alone, interrupts saved."""

import os
import signal
import threading
import time
from contextlib import closing

import pytest

from graphwright.experiments import InProcess, Job, Processes, RayCluster, State, Store, run_jobs
from tiny import tiny_settings

RUNS = [tiny_settings(train={"steps": 3, "seed": seed, "validate_every": 3}) for seed in range(3)]
JOBS = [Job(run, samples=4) for run in RUNS]
BROKEN = Job(RUNS[0], samples=4, baseline="oracle")
LONG = Job(tiny_settings(train={"steps": 100_000, "log_every": 1, "checkpoint_minutes": 100.0}), samples=4)


def never() -> bool:
    return False


def samples(store: Store, job: Job) -> str:
    return (store.folder(job) / "samples.csv").read_text()


@pytest.mark.parametrize(
    ("engine", "count"),
    [
        ("processes", 1),
        pytest.param("processes", 3, marks=pytest.mark.slow),
        pytest.param("ray", 3, marks=pytest.mark.slow),
    ],
)
def test_engines_give_the_results_of_one_process_and_a_failure_stays_alone(engine, count, tmp_path):
    plain, other, jobs = Store(tmp_path / "plain"), Store(tmp_path / "other"), JOBS[:count]
    for _ in run_jobs(InProcess(), jobs, plain, never):
        pass
    made = Processes(2, 1) if engine == "processes" else RayCluster(2, 1)
    with closing(made):
        outcomes = {outcome.job.key: outcome for outcome in run_jobs(made, [*jobs, BROKEN], other, never)}
    assert outcomes[BROKEN.key].state is State.FAILED
    assert "no baseline 'oracle'" in outcomes[BROKEN.key].reason
    for job in jobs:
        assert outcomes[job.key].state is State.DONE
        assert samples(other, job) == samples(plain, job)


def begun(store: Store) -> bool:
    log = store.folder(LONG) / "log.jsonl"
    return log.exists() and len(log.read_text().splitlines()) > 2


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_a_stop_saves_what_is_under_way_and_begins_nothing_more(engine, tmp_path):
    store = Store(tmp_path)
    made = Processes(1, 1) if engine == "processes" else RayCluster(1, 1)
    with closing(made):
        outcomes = list(run_jobs(made, [LONG, JOBS[0]], store, lambda: begun(store)))
    assert outcomes[0].state is State.INTERRUPTED
    assert store.state(LONG) is State.INTERRUPTED  # there is a checkpoint, though none was due for 100 minutes
    assert store.state(JOBS[0]) is State.MISSING


@pytest.mark.slow
def test_a_process_that_is_killed_is_named_and_the_others_go_on(tmp_path):
    store = Store(tmp_path)

    def kill() -> None:
        while not begun(store):
            time.sleep(0.1)
        for child in children(os.getpid()):
            if str(store.folder(LONG)) in open_files(child):
                os.kill(child, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    outcomes = {outcome.job.key: outcome for outcome in run_jobs(Processes(2, 1), [LONG, JOBS[0]], store, never)}
    killer.join()
    assert outcomes[LONG.key].state is State.FAILED
    assert "SIGKILL" in outcomes[LONG.key].reason
    assert outcomes[JOBS[0].key].state is State.DONE


def children(parent: int) -> list[int]:
    """All processes below one."""
    below: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                below.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(name))
        except OSError:
            continue
    found, waiting = [], [parent]
    while waiting:
        own = below.get(waiting.pop(), [])
        found += own
        waiting += own
    return found


def open_files(process: int) -> str:
    try:
        handles = [os.readlink(f"/proc/{process}/fd/{name}") for name in os.listdir(f"/proc/{process}/fd")]
    except OSError:
        return ""
    return "\n".join(handles)
