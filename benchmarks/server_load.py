"""Many clients of a server at once, for a while: what they are answered, how fast, and what the server takes."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from benchmarks.http_client import NOTHING, Connection, Reply, Target

PATIENCE = 120.0
"""Seconds that a client waits for an answer; a server that takes longer has not answered."""
PEAKS = "110.0713 20\n138.0662 60\n195.0877 100\n"


@dataclass
class Figures:
    """Requests of one kind by their status, and the seconds of those that were answered."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def add(self, reply: Reply, seconds: float) -> None:
        self.statuses[reply.status] += 1
        if reply.status == 200:
            self.seconds.append(seconds)

    def percentile(self, share: float) -> float:
        """Among the answered ones."""
        ordered = sorted(self.seconds) or [float("nan")]
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


Kinds = dict[str, Callable[[Target, random.Random], bytes]]

REQUESTS: Kinds = {
    "page": lambda target, _: target.request("GET", "/"),
    "list of models": lambda target, _: target.request("GET", "/api/models"),
    "picture drawn": lambda target, draw: target.question(
        "/api/predict/example", model="coloring10", number=draw.randrange(1000), regions=draw.randrange(5, 11)
    ),
    "molecule": lambda target, draw: target.question(
        "/api/predict", model="qm9", text=draw.choice(["CCO", "CC=O", "OCC1CC1", "C1CCOC1", "N#CCO"])
    ),
    "spectrum": lambda target, _: target.question(
        "/api/predict", model="ms2scaffold", text=PEAKS, formula="C8H10N4O2", adduct="[M+H]+", precursor=195.0877
    ),
    "file": lambda target, _: target.request(
        "POST", "/api/predict/file?model=qm9&name=a.smi", b"CCO ethanol\nCC=O\n"
    ),
}
WEIGHTS = (20, 10, 40, 10, 10, 10)


async def clients(target: Target, count: int, seconds: float) -> dict[str, Figures]:
    """So many clients for so long. One who is told to come back does so when told, as the page's readers would."""
    figures = {kind: Figures() for kind in REQUESTS}
    end = perf_counter() + seconds
    await asyncio.gather(*(_client(target, random.Random(number), end, figures) for number in range(count)))
    return figures


async def _client(target: Target, draw: random.Random, end: float, figures: dict[str, Figures]) -> None:
    connection: Connection | None = None
    while perf_counter() < end:
        kind = draw.choices(list(REQUESTS), WEIGHTS)[0]
        start = perf_counter()
        try:
            async with asyncio.timeout(PATIENCE):
                connection = connection or await target.connect()
                reply = await connection.exchange(REQUESTS[kind](target, draw))
        except (TimeoutError, OSError):
            reply = NOTHING
        figures[kind].add(reply, perf_counter() - start)
        if connection is not None and (reply.status == 0 or reply.headers.get("connection") == "close"):
            connection.close()
            connection = None
        if reply.status == 429:
            await asyncio.sleep(min(float(reply.headers["retry-after"]), max(0.0, end - perf_counter())))
    if connection is not None:
        connection.close()


@dataclass(frozen=True)
class Memory:
    """MiB of the server and of its worker, now and at most, and the files that the server has open."""

    server: float
    server_peak: float
    worker: float
    open_files: int

    @classmethod
    def of(cls, process: int) -> Memory:
        server, workers = _status(process), [_status(child) for child in children(process)]
        worker = max((each["VmRSS"] for each in workers), default=0.0)
        return cls(server["VmRSS"], server["VmHWM"], worker, len(list(Path(f"/proc/{process}/fd").iterdir())))


def children(process: int) -> Sequence[int]:
    """The processes that a process has started."""
    return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _status(process: int) -> dict[str, float]:
    text = Path(f"/proc/{process}/status").read_text()
    return {name: int(size) / 1024 for name, size in re.findall(r"^(Vm\w+):\s+(\d+) kB", text, re.MULTILINE)}
