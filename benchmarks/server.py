"""`python -m benchmarks.server`: a server of our own under load and attack, on this machine's loopback alone.

Everything is bounded in count and time, and ends by itself. Exit code 1: something was answered with a 5xx, let
through, or not survived; each is named.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.http_client import NOTHING, Reply, Target
from benchmarks.server_attacks import (
    answers,
    deaf,
    headers,
    leaving,
    silent,
    slow_bodies,
    slow_heads,
    traversals,
    uploads,
)
from benchmarks.server_load import Figures, Memory, children, clients
from graphwright.cli.main import guarded
from graphwright.cli.shared import DONE, SOME_FAILED

CUT_OFF = 15.0
"""Seconds after which the server under test cuts a prediction off."""
SLOW_SECONDS = 60.0
"""How long slow clients take: three times what a request may take to arrive."""
TIMES = {"slow heads": 3, "silent": 3, "deaf": 0.1}
"""How many for each honest client: more connections than are allowed, but few of the deaf, who are answered all
that the system keeps for them."""


@dataclass
class Record:
    """What was measured, and what went wrong."""

    clients: int
    seconds: float
    load: dict[str, Any] = field(default_factory=dict)
    attacks: dict[str, Any] = field(default_factory=dict)
    slow: dict[str, Any] = field(default_factory=dict)
    cut_off: dict[str, float] = field(default_factory=dict)
    memory: dict[str, dict[str, float]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Served:
    """A server that was started for this, and its process."""

    target: Target
    process: int

    @property
    def worker(self) -> int:
        (worker,) = children(self.process)
        return worker


@contextmanager
def served(problems: list[str]) -> Iterator[Served]:
    """`graphwright serve` on a free port; what it says of itself on its error stream must hold no traceback."""
    command = [sys.executable, "-m", "graphwright.cli.main", "serve", "--port", "0", "--seconds", f"{CUT_OFF:g}"]
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as server:
            assert server.stdout is not None
            try:
                address = re.search(r"http://\S+", server.stdout.readline().decode())
                if address is None:
                    raise RuntimeError(f"the server does not start: {log.read_text()}")
                yield Served(Target.of(address[0]), server.pid)
            finally:
                server.terminate()
                try:
                    server.wait(20)
                except subprocess.TimeoutExpired:
                    server.kill()
                    problems.append("the server did not end when told to")
        if "Traceback" in log.read_text():
            problems.append(f"a traceback in the server's log: {log.read_text()[-2000:]}")


async def measure(server: Served, record: Record, say: Callable[[str], None]) -> None:
    """Everything, one after the other."""
    target = server.target
    for model in ("coloring10", "qm9", "ms2scaffold"):  # loading them is the first caller's wait
        await _asked(target, target.question("/api/predict/example", model=model), record)
    record.memory["at the start"] = asdict(Memory.of(server.process))
    say(f"{record.clients} clients for {record.seconds:g} seconds")
    start = perf_counter()
    figures = await clients(target, record.clients, record.seconds)
    record.load = _load(figures, perf_counter() - start)
    record.problems += _failures({kind: each.statuses for kind, each in figures.items()})
    record.memory["after the load"] = asdict(Memory.of(server.process))

    for name, requests in (("traversal", traversals), ("headers", headers), ("uploads", uploads)):
        say(f"attack: {name}")
        replies = await answers(target, requests(target))
        record.attacks[name] = dict(Counter(str(reply.status) for reply in replies.values()))
        record.problems += wrong(replies)
    record.memory["after the attacks"] = asdict(Memory.of(server.process))

    kinds: dict[str, Callable[[Target, int, float], Awaitable[int]]] = {
        "slow heads": slow_heads,
        "slow bodies": slow_bodies,
        "silent": silent,
        "deaf": deaf,
    }
    for name, kind in kinds.items():
        count = round(record.clients * TIMES.get(name, 1))
        say(f"{count} clients: {name}")
        rid, others = await beside(target, kind(target, count, SLOW_SECONDS))
        record.slow[name] = {"clients": count, "closed": rid, **_told(others)}
        if rid < count:
            record.problems.append(f"{name}: {count - rid} of {count} were never closed")
        record.problems += _failures({f"beside {name}": others.statuses})
    await leaving(target, record.clients)
    record.memory["after slow clients"] = asdict(Memory.of(server.process))

    say("a prediction that never ends")
    question = target.question("/api/predict/example", model="coloring10")
    await _asked(target, question, record)  # after which nobody else is in the queue
    os.kill(server.worker, signal.SIGSTOP)
    for what in ("cut off", "the next answer"):
        start = perf_counter()
        reply = await _asked(target, question, record, expected=422 if what == "cut off" else 200)
        record.cut_off[what] = perf_counter() - start
        say(f"{what}: {reply.status} after {record.cut_off[what]:.1f} s")
    record.memory["at the end"] = asdict(Memory.of(server.process))


def wrong(replies: Mapping[str, Reply]) -> list[str]:
    """Rude requests that were answered, made the server fail, or were told a file's content."""
    problems = []
    for name, reply in replies.items():
        if reply.status and not 400 <= reply.status < 500:
            problems.append(f"{name}: {reply.status}")
        if b"root:" in reply.body:
            problems.append(f"{name}: told what it must not: {reply.body[:80]!r}")
    return problems


async def beside(target: Target, attack: Awaitable[int]) -> tuple[int, Figures]:
    """What an attack comes to, and what an honest client is answered meanwhile, once a second."""
    attacking = asyncio.ensure_future(attack)
    figures = Figures()
    while not attacking.done():
        start = perf_counter()
        try:
            reply = await target.sent(target.request("GET", "/api/models"), 60)
        except (OSError, TimeoutError):
            reply = NOTHING
        figures.add(reply, perf_counter() - start)
        await asyncio.sleep(1.0)
    return await attacking, figures


async def _asked(target: Target, request: bytes, record: Record, expected: int = 200) -> Reply:
    """The answer, for which a client who is told to come back does so for two minutes."""
    end = perf_counter() + 120
    reply = await target.sent(request, 240)
    while reply.status == 429 and perf_counter() < end:
        await asyncio.sleep(float(reply.headers["retry-after"]))
        reply = await target.sent(request, 240)
    if reply.status != expected:
        record.problems.append(f"expected {expected}, got {reply.status}: {reply.body[:200]!r}")
    return reply


def _failures(statuses: Mapping[str, Counter[int]]) -> list[str]:
    """Answers that an honest client must not get."""
    return [
        f"{kind}: {count} times {status or 'no answer'}"
        for kind, counted in statuses.items()
        for status, count in counted.items()
        if status not in (200, 429)
    ]


def _load(figures: Mapping[str, Figures], seconds: float) -> dict[str, Any]:
    whole = Figures()
    for each in figures.values():
        whole.statuses.update(each.statuses)
        whole.seconds += each.seconds
    told = {kind: _told(each) for kind, each in figures.items()}
    return {"seconds": round(seconds, 1), "all": _told(whole), **told}


def _told(figures: Figures) -> dict[str, Any]:
    shares = {"p50": 0.5, "p99": 0.99, "most": 1.0}
    waits = {name: round(figures.percentile(share), 3) for name, share in shares.items() if figures.seconds}
    return {"statuses": {str(status): count for status, count in sorted(figures.statuses.items())}, **waits}


def shown(record: Record) -> list[Table]:
    """The record as tables."""
    load = Table(title=f"{record.clients} clients", title_justify="left")
    for heading in ("requests", "200", "429", "others", "p50 s", "p99 s", "most s"):
        load.add_column(heading, justify="left" if heading == "requests" else "right")
    rows = {kind: facts for kind, facts in record.load.items() if isinstance(facts, dict)}
    rows |= {f"beside {facts['clients']} {name}": facts for name, facts in record.slow.items()}
    for kind, facts in rows.items():
        statuses = dict(facts["statuses"])
        answered, busy = statuses.pop("200", 0), statuses.pop("429", 0)
        waits = [f"{facts[name]:.3f}" if name in facts else "" for name in ("p50", "p99", "most")]
        load.add_row(kind, str(answered), str(busy), str(sum(statuses.values())), *waits)
    memory = Table(title="MiB", title_justify="left")
    for heading in ("when", "server", "at most", "worker", "open files"):
        memory.add_column(heading, justify="left" if heading == "when" else "right")
    for when, facts in record.memory.items():
        memory.add_row(when, *(f"{value:.0f}" for value in facts.values()))
    attacks = Table(title="attacks, by status (0: closed without an answer)", title_justify="left")
    for heading in ("attack", "statuses"):
        attacks.add_column(heading)
    for name, statuses in record.attacks.items():
        attacks.add_row(name, ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items())))
    return [load, attacks, memory]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="python -m benchmarks.server",
        description="Start a server on this machine's loopback, load it, attack it, and tell what it did.",
    )
    result.add_argument("--clients", type=int, default=200, help="at once (default 200)")
    result.add_argument("--seconds", type=float, default=60.0, help="of load (default 60)")
    result.add_argument("--json", type=Path, metavar="OUT", help="also write the record to this file")
    return result


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, write JSON."""
    record = Record(arguments.clients, arguments.seconds)
    console = Console(highlight=False, markup=False)
    with served(record.problems) as server:
        asyncio.run(measure(server, record, console.print))
    for table in shown(record):
        console.print(table)
    for problem in record.problems:
        console.print(f"problem: {problem}")
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(asdict(record), indent=2) + "\n")
        console.print(f"wrote {arguments.json}")
    return SOME_FAILED if record.problems else DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Load and attack as the command line says; the exit codes are graphwright's."""
    return guarded("benchmarks.server", lambda: run(parser().parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
