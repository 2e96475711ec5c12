"""`python -m fuzzing`: every reader under a coverage-guided fuzzer, and a record of what was run and found."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fuzzing.targets import TARGETS, Target
from graphwright.files import write_json

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "fuzzing"
"""Corpora, which grow from one session to the next, and inputs that were found; a folder for every target."""
RECORD = ROOT / "docs" / "results" / "fuzzing.json"
MEMORY, SLOW, LONGEST = 2048, 20, 2**14
"""Megabytes of the whole process and seconds for one input above which it is a finding; bytes of an input."""


@dataclass(frozen=True)
class Session:
    """One target, fuzzed once. megabytes: the most that the process had; finding: what ended it early, if anything."""

    target: str
    inputs: int
    seconds: float
    megabytes: int
    covered: int
    finding: str | None
    commit: str


def fuzz(target: Target, inputs: int, seconds: int, commit: str) -> Session:
    """Run one target until so many inputs were read, so much time has passed, or something was found."""
    corpus, seeds, found = (WORK / target.name / name for name in ("corpus", "seeds", "found"))
    for each in (corpus, seeds, found):
        each.mkdir(parents=True, exist_ok=True)
    for at, seed in enumerate(target.seeds):
        (seeds / str(at)).write_bytes(seed)
    words = WORK / target.name / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words))
    options = [f"-runs={inputs}", f"-max_total_time={seconds}", f"-rss_limit_mb={MEMORY}", f"-timeout={SLOW}"]
    options += [f"-max_len={LONGEST}", f"-dict={words}", f"-artifact_prefix={found}/", "-print_final_stats=1"]
    command = [sys.executable, "-m", "fuzzing.session", target.name, *options, str(corpus), str(seeds)]
    begun = time.monotonic()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    told = done.stdout + done.stderr
    (WORK / target.name / "log").write_text(told)
    return Session(
        target.name,
        _figure(r"stat::number_of_executed_units:\s*(\d+)", told),
        round(time.monotonic() - begun, 1),
        _figure(r"stat::peak_rss_mb:\s*(\d+)", told),
        _figure(r"(?s:.*)\bcov: (\d+)", told),
        _finding(told) if done.returncode else None,
        commit,
    )


def _figure(pattern: str, told: str) -> int:
    match = re.search(pattern, told)
    return int(match[1]) if match else 0


def _finding(told: str) -> str:
    """The exception, or what libFuzzer itself says: too slow, too much memory, a crash of a library."""
    python = re.search(r"=== Uncaught Python exception: ===\n(.*)", told)
    summary = re.search(r"(?:SUMMARY|ERROR): (.*)", told)
    return python[1][:300] if python else summary[1][:300] if summary else told.strip().splitlines()[-1][:300]


def _escaped(word: str) -> str:
    """As libFuzzer's dictionaries have it."""
    return "".join(f"\\x{byte:02x}" for byte in word.encode("utf-8", "surrogatepass"))


def sessions() -> list[Session]:
    """What was recorded so far."""
    return [Session(**each) for each in json.loads(RECORD.read_text())["sessions"]] if RECORD.exists() else []


def table(of: Sequence[Session]) -> str:
    """Inputs, time, memory and findings of every target, in Markdown."""
    lines = ["| reader | inputs | seconds | most memory, MB | findings, all mended |", "|---|---|---|---|---|"]
    for name in TARGETS:
        own = [session for session in of if session.target == name]
        found = sum(session.finding is not None for session in own)
        memory = max((session.megabytes for session in own), default=0)
        spent = sum(session.seconds for session in own)
        lines.append(f"| {name} | {sum(s.inputs for s in own):,} | {spent:,.0f} | {memory:,} | {found or ''} |")
    found = sum(session.finding is not None for session in of)
    spent = sum(session.seconds for session in of)
    lines.append(f"| all | {sum(s.inputs for s in of):,} | {spent:,.0f} | | {found} |")
    return "\n".join(lines)


def _commit() -> str:
    """The commit at hand; a plus sign after it where files differ from it."""
    told = subprocess.run(
        ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    return told.stdout.strip()


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    result.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all without one")
    result.add_argument("--inputs", type=int, default=60_000, help="inputs for each target (default: %(default)s)")
    result.add_argument("--seconds", type=int, default=300, help="most for each target (default: %(default)s)")
    result.add_argument("--record", action="store_true", help=f"add the sessions to {RECORD.relative_to(ROOT)}")
    result.add_argument("--table", action="store_true", help="print what was recorded, and fuzz nothing")
    return result


def main() -> int:
    """Fuzz, print what was found, write the record; 1 if anything was found."""
    arguments = parser().parse_args()
    if arguments.table:
        print(table(sessions()))
        return 0
    for name in arguments.targets:
        if name not in TARGETS:
            print(f"there is no target {name}: {', '.join(TARGETS)}", file=sys.stderr)
            return 2
    found = False
    for name in arguments.targets or TARGETS:
        session = fuzz(TARGETS[name], arguments.inputs, arguments.seconds, _commit())
        found |= session.finding is not None
        print(
            f"{name}: {session.inputs:,} inputs in {session.seconds:.0f} s, {session.megabytes:,} MB, "
            f"{session.finding or 'nothing found'}",
            flush=True,
        )
        if arguments.record:
            write_json(RECORD, {"sessions": [asdict(each) for each in [*sessions(), session]]})
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
