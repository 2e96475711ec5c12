"""Peak memory: of one Sinkhorn pass in a process of its own, of other calls in this one.

Linux only: it reads the peak of the resident set from /proc, which can be reset (`ru_maxrss` cannot, and starts at
the peak of the process that started this one).
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from graphwright.bench.sinkhorn_case import IMPLEMENTATIONS, make_sinkhorn_case
from graphwright.bench.timing import seconds

STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")
MEBIBYTE = 2**20


@dataclass(frozen=True)
class Pass:
    """One pass forward and backward over a whole batch, besides its inputs."""

    mebibytes: float
    milliseconds: float


def can_measure() -> bool:
    """Whether this system can tell the peak of a process."""
    return STATUS.exists() and RESET.exists()


def measure_pass(name: str, n: int, batch: int) -> Pass:
    """A pass of one of `IMPLEMENTATIONS` in a fresh process, on one thread."""
    words = [sys.executable, "-c", f"from {__name__} import main; main({name!r}, {n}, {batch})"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring the memory of {name} failed: {done.stderr.strip()}")
    return Pass(**json.loads(done.stdout))


def peak_mebibytes(call: Callable[[], object]) -> float:
    """By how much the resident set of this process rises at most while `call` runs."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # memory that was freed but kept would be used again unseen
        trim(0)
    RESET.write_text("5")  # the peak becomes the present size
    before = _status("VmHWM")
    call()
    return (_status("VmHWM") - before) / MEBIBYTE


def peaks(ours: Callable[[], object], peer: Callable[[], object]) -> dict[str, float]:
    """What our call and the peer's need at most in this process; nothing where the system cannot tell."""
    if not can_measure():
        return {}
    return {"ours_peak_mib": peak_mebibytes(ours), "peer_peak_mib": peak_mebibytes(peer)}


def _status(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{STATUS} does not tell {name}")
    return 1024 * int(found[1])


def main(name: str, n: int, batch: int) -> None:
    """What the fresh process does: measure, print JSON."""
    torch.set_num_threads(1)
    plans = IMPLEMENTATIONS[name]
    make_sinkhorn_case(2, n).pass_through(plans)  # what is loaded at first use is not the batch's memory
    case = make_sinkhorn_case(batch, n)
    peak = peak_mebibytes(lambda: case.pass_through(plans))
    print(json.dumps(asdict(Pass(peak, 1000 * seconds(lambda: case.pass_through(plans))))))
