"""`python -m benchmarks.paper_presets [PRESET...]`: one real training step of the paper's models, on one core.

Of each preset whose budget is epochs (the paper's models, batches and epochs): what its dry run says, then a step
of `graphwright train` at the preset's own batch, in as few parts as fit into the memory given, with the processor
time and the peak memory of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from time import sleep
from typing import Any

from benchmarks.measurement import peak_so_far
from graphwright.cli.main import guarded
from graphwright.cli.shared import DONE, keep_freed_memory
from graphwright.experiments.estimate import measure_cost, training_time
from graphwright.experiments.job import Job
from graphwright.inference.export import commit, hardware
from graphwright.settings import Override, load_run, presets
from graphwright.tasks import resolved
from graphwright.training.footprint import footprint
from graphwright.training.processes import in_this_process, threads

GIGABYTES = 6.0
"""What a step may take, unless more or less is given."""
POLL = 0.1
"""Seconds between two looks at a process."""


@dataclass(frozen=True)
class Step:
    """A preset's size and cost by the dry run, and one step of it: parts of the batch, processor seconds, peak."""

    preset: str
    commit: str | None
    hardware: dict[str, Any]
    predictor: int
    matcher: int
    batch: int
    parts: int
    megabytes_per_sample: float
    milliseconds_per_sample: float
    samples_per_epoch: int
    samples: int
    processor_seconds: float
    peak_gigabytes: float


def in_epochs() -> list[str]:
    """Presets whose budget is epochs."""
    return [preset.name for preset in presets() if load_run(preset.name).train.epochs is not None]


def measure(preset: str, gigabytes: float, overrides: Sequence[Override] = ()) -> Step:
    """A preset with other settings laid over it, as a test needs them small."""
    run = resolved(in_this_process(load_run(preset, [*overrides, Override("train.accelerator", "cpu")])))
    need = footprint(run)
    parts = need.parts(run.train.batch_size, 1e9 * gigabytes)
    if parts is None:
        raise ValueError(f"{preset}: one sample is too much for {gigabytes:g} GB; give --gigabytes")
    cost = measure_cost(run)
    steps, _ = training_time(Job(run, samples=1), cost)
    seconds, peak = one_step(preset, parts, overrides)
    return Step(
        preset,
        commit(),
        hardware(),
        need.predictor,
        need.matcher,
        run.train.batch_size,
        parts,
        need.per_sample / 1e6,
        1000 * cost.training,
        cost.epoch,
        steps * run.train.batch_size,
        seconds,
        peak / 1e9,
    )


def one_step(preset: str, parts: int, overrides: Sequence[Override] = ()) -> tuple[float, int]:
    """Processor seconds and peak bytes of a process that makes one step and one validation of one sample."""
    given = {override.key: override.value for override in overrides} | {
        "train.accelerator": "cpu",
        "train.accumulate": parts,
        "train.steps": 1,
        "train.threads": 1,
        "train.validation_samples": 1,
        "train.workers": 0,  # they would make data for many steps
    }
    words = [word for key, value in given.items() for word in (f"--{key}", str(value))]
    with TemporaryDirectory() as folder, TemporaryFile("w+") as said:
        out = str(Path(folder) / "run")
        command = [sys.executable, "-m", "graphwright.cli.main", "train", preset, "--out", out, *words]
        process, peak, ended = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said), 0, 0
        # What this one process used: a parent's own figures are of all its children. Its peak is asked for while
        # it is there: the one that is told at its end begins with the size of the process that started it.
        while not ended:
            sleep(POLL)
            peak = peak_so_far(process.pid) or peak
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise ValueError(f"{preset} could not make a step: {said.read().strip()[-2000:]}")
    return used.ru_utime + used.ru_stime, peak


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, and write after each; presets that are not measured keep their figures."""
    known = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else []
    rows = {row["preset"]: row for row in known}
    for preset in arguments.presets or in_epochs():
        with threads(1):
            step = measure(preset, arguments.gigabytes)
            rows[preset] = asdict(step)
        print(
            f"{preset}: {step.batch:,} samples in {step.parts} parts took {step.processor_seconds:.0f} s of one "
            f"core and {step.peak_gigabytes:.1f} GB",
            flush=True,
        )
        if arguments.json is not None:
            arguments.json.write_text(json.dumps([rows[name] for name in sorted(rows)], indent=1) + "\n")
    return DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Measure as the command line says."""
    keep_freed_memory()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper_presets", description=__doc__)
    parser.add_argument("presets", nargs="*", metavar="PRESET", help="default: all whose budget is epochs")
    parser.add_argument("--gigabytes", type=float, default=GIGABYTES, help="for a step (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures to this file")
    return guarded("benchmarks.paper_presets", lambda: run(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
