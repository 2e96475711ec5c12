"""Sinkhorn forward and backward beside the eager version, POT and ott-jax; and its peak memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch

from benchmarks import ott_peer as ott
from benchmarks.measurement import (
    Measured,
    Remark,
    Row,
    can_measure,
    interleaved_milliseconds,
    peak_mebibytes,
    seconds,
)
from benchmarks.plans import load_pot, pot_sinkhorn
from benchmarks.sinkhorn_case import (
    IMPLEMENTATIONS,
    Plans,
    SinkhornCase,
    eager_sinkhorn,
    make_sinkhorn_case,
    our_plans,
)
from graphwright.training.processes import threads

NAME = "sinkhorn forward + backward"
EAGER = "eager autograd"
CHECKOUT = Path(__file__).parents[1]
"""Where `import benchmarks` works."""


def measure_sinkhorn(
    sizes: tuple[int, ...] = (10, 20, 32, 60),
    batch: int = 128,
    repeats: int = 5,
    thread_counts: tuple[int, ...] = (1, 2),
    memory: tuple[int, int] = (60, 1536),
) -> Measured:
    """Rows for every size, peer and number of threads, then one of peak memory at `memory` = (n, batch).

    Sharp costs, the harder ones, are measured beside the eager version alone.
    """
    pot = load_pot()
    peers: dict[str, Plans] = {
        EAGER: eager_sinkhorn,
        "ot.batch.solve_batch, autodiff": lambda *arguments: pot_sinkhorn(pot, *arguments),
    }
    python = ott.ott_python()
    if python is None:
        yield Remark(f"{ott.NAME} is absent, its rows are left out; to have them: {ott.HOW}")
    for count in thread_counts:
        with threads(count):
            for n in sizes:
                sharp = make_sinkhorn_case(batch, n, sharp=True)
                yield from _rows(f"{NAME}, sharp", sharp, {EAGER: eager_sinkhorn}, count, repeats)
                case = make_sinkhorn_case(batch, n)
                rows = list(_rows(NAME, case, peers, count, repeats))
                yield from rows
                if python is not None:
                    try:
                        yield _ott_row(python, case, rows[0], repeats)
                    except ott.OttError as error:
                        yield Remark(f"{error}; its rows are left out")
                        python = None
    if can_measure():
        yield memory_row(*memory)
    else:
        yield Remark("peak memory is measured on Linux only")


def _rows(name: str, case: SinkhornCase, peers: dict[str, Plans], count: int, repeats: int) -> Iterator[Row]:
    batch, n, _ = case.cost.shape
    calls = [partial(case.pass_through, plans) for plans in (our_plans, *peers.values())]
    ours, *others = interleaved_milliseconds(calls, repeats)
    reached = case.mean_objective(case.pass_through(our_plans)[0])
    for (peer, plans), time in zip(peers.items(), others, strict=True):
        theirs = case.mean_objective(case.pass_through(plans)[0])
        yield Row(name, n, batch, count, ours / batch, peer, time / batch, reached, theirs)


def _ott_row(python: Path, case: SinkhornCase, ours: Row, repeats: int) -> Row:
    result = ott.ott_pass(python, case, ours.threads, repeats)
    time, theirs = result.milliseconds / ours.batch, case.mean_objective(result.plan)
    peer = f"{ott.NAME}, unrolled"
    return Row(NAME, ours.n, ours.batch, ours.threads, ours.ours_ms, peer, time, ours.ours_objective, theirs)


def memory_row(n: int, batch: int) -> Row:
    """Peak memory of one pass besides its inputs, ours and the eager version's, each in a fresh process."""
    ours, eager = measure_pass("ours", n, batch), measure_pass("eager", n, batch)
    extras = {
        "ours_peak_mib": ours.mebibytes,
        "peer_peak_mib": eager.mebibytes,
        "memory_share": ours.mebibytes / eager.mebibytes,
    }
    times = (ours.milliseconds / batch, EAGER, eager.milliseconds / batch)
    return Row(f"{NAME}, peak memory", n, batch, 1, *times, extras=extras)


@dataclass(frozen=True)
class Pass:
    """One pass forward and backward over a whole batch, besides its inputs."""

    mebibytes: float
    milliseconds: float


def measure_pass(name: str, n: int, batch: int) -> Pass:
    """A pass of one of `IMPLEMENTATIONS` in a fresh process, on one thread."""
    words = [sys.executable, "-c", f"from {__name__} import print_pass; print_pass({name!r}, {n}, {batch})"]
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring the memory of {name} failed: {done.stderr.strip()}")
    return Pass(**json.loads(done.stdout))


def print_pass(name: str, n: int, batch: int) -> None:
    """What the fresh process does: measure, print JSON."""
    torch.set_num_threads(1)
    plans = IMPLEMENTATIONS[name]
    make_sinkhorn_case(2, n).pass_through(plans)  # what is loaded at first use is not the batch's memory
    case = make_sinkhorn_case(batch, n)
    peak = peak_mebibytes(lambda: case.pass_through(plans))
    print(json.dumps(asdict(Pass(peak, 1000 * seconds(lambda: case.pass_through(plans))))))
