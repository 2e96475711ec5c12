"""Training as a person starts it, on the whole machine: samples per second, and minutes to a published figure."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from time import perf_counter, sleep

from benchmarks.measurement import Measured, Remark, Row
from graphwright.settings import CORES, Override, load_run
from graphwright.tasks import task_of
from graphwright.training.log import VALIDATION, read_log
from graphwright.training.processes import cores

TRAINED = ("coloring10-cpu", "qm9-cpu")
LOG_EVERY, LOGGED = 20, 4
"""Steps of a log line, and lines of a measured run: the first, in which everything starts, does not count."""
POLL = 0.5
"""Seconds between two looks at a run's log."""


@dataclass(frozen=True)
class Goal:
    """A published figure of a preset's task, and how long a run may take to pass it."""

    preset: str
    isomorphic: float
    edit: float
    minutes: float


PUBLISHED = Goal("coloring10-cpu", isomorphic=45.46, edit=2.30, minutes=5.0)
"""Any2Graph with the paper's matcher on Coloring 10, after hours of a V100 (table 1)."""
VALIDATE_EVERY = 250
"""Steps between two looks at how far a timed run is."""
MATCHINGS: dict[str, tuple[str, ...]] = {
    "learned": ("--matching.kind", "learned"),
    "conditional gradient": ("--matching.kind", "conditional_gradient"),
}


def measure_whole_machine(presets: Sequence[str] = TRAINED, further: Sequence[str] = ()) -> Iterator[Row]:
    """For each preset: a process for every core beside one process with a thread for every core."""
    count = cores()
    for preset in presets:
        rates = [_samples_per_second(preset, ["--train.devices", devices, *further]) for devices in (CORES, "1")]
        run = load_run(preset, _overrides(further))
        milliseconds = [1000 / rate for rate in rates]
        figures = (milliseconds[0], f"one process, {count} threads", milliseconds[1])
        extras = {"samples_per_second": rates[0], "peer_samples_per_second": rates[1]}
        name = f"whole machine, {preset}"
        yield Row(name, task_of(run.task).capacity, run.train.batch_size, count, *figures, extras=extras)


def measure_time_to_published(goal: Goal = PUBLISHED, further: Sequence[str] = ()) -> Measured:
    """Minutes of the whole machine from a fresh start until validation passes the goal, for both ways to match.

    Milliseconds are all of these minutes, not of one sample; the peer is conditional gradient.
    """
    run, passes = load_run(goal.preset, _overrides(further)), {}
    for name, options in MATCHINGS.items():
        with TemporaryDirectory() as folder:
            passes[name] = _until_passed(goal, Path(folder) / "run", [*options, *further])
        if passes[name] is None:
            yield Remark(
                f"{name} did not pass {goal.isomorphic} % and edit {goal.edit} in {goal.minutes:g} minutes"
            )
    peer = passes["conditional gradient"]
    for name, passed in passes.items():
        if passed is None:
            continue
        seconds, samples = passed
        if peer is None:
            yield Remark(f"{name} passed after {seconds / 60:.1f} minutes and {samples:,} samples")
            continue
        title = f"to {goal.isomorphic} % and edit {goal.edit:.2f}, {name}"
        figures = (1000 * seconds, "conditional gradient", 1000 * peer[0])
        extras = {"minutes": seconds / 60, "samples": float(samples)}
        yield Row(title, task_of(run.task).capacity, run.train.batch_size, cores(), *figures, extras=extras)


def _command(preset: str, folder: Path, options: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "graphwright.cli.main", "train", preset, "--out", str(folder), *options]


def _samples_per_second(preset: str, options: Sequence[str]) -> float:
    """The rate of a short run, its first log line and its validation left out."""
    steps = LOG_EVERY * LOGGED
    short = ["--train.steps", str(steps), "--train.log_every", str(LOG_EVERY), "--train.validation_samples", "1"]
    with TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        done = subprocess.run(_command(preset, out, [*short, *options]), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{preset} could not be trained: {done.stderr.strip()}")
        rate = steps_per_second(out)
    return load_run(preset, _overrides(options)).train.batch_size * rate


def steps_per_second(folder: Path) -> float:
    """The rate of a run with a log line for every `LOG_EVERY` steps, its first and validations left out."""
    records = [record for record in read_log(folder / "log.jsonl") if VALIDATION not in record]
    steps: int = records[-1]["step"] - records[0]["step"]
    seconds: float = records[-1]["seconds"] - records[0]["seconds"]
    return steps / seconds


def _overrides(options: Sequence[str]) -> list[Override]:
    return [
        Override(key.removeprefix("--"), value) for key, value in zip(options[::2], options[1::2], strict=True)
    ]


def _until_passed(goal: Goal, folder: Path, options: Sequence[str]) -> tuple[float, int] | None:
    """Seconds from the start, and samples, to the first validation that passes; None if the run ends before."""
    begun = perf_counter()
    schedule = ("--train.minutes", str(goal.minutes), "--train.validate_every", str(VALIDATE_EVERY))
    command = _command(goal.preset, folder, [*schedule, *options])
    batch = load_run(goal.preset, _overrides(options)).train.batch_size
    with TemporaryFile("w+") as said, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said) as process:
        try:
            while True:
                ended = process.poll()
                for record in read_log(folder / "log.jsonl"):
                    if (
                        VALIDATION in record
                        and record[VALIDATION] > goal.isomorphic
                        and record["edit"] < goal.edit
                    ):
                        return perf_counter() - begun, record["step"] * batch
                if ended:
                    said.seek(0)
                    raise RuntimeError(f"{goal.preset} could not be trained: {said.read().strip()}")
                if ended is not None:
                    return None
                sleep(POLL)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
