"""`python -m fuzzing`: every reader under a coverage-guided fuzzer, and a record of what was run and found."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NoReturn

from fuzzing.mutation import mutate_json

if TYPE_CHECKING:
    from fuzzing.targets import Target

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "fuzzing"
"""Corpora, which grow from one session to the next, and inputs that were found; a folder for every target."""
RECORD = ROOT / "docs" / "results" / "fuzzing.json"
MEMORY, SLOW, LONGEST = 2048, 20, 2**11
"""Megabytes of the whole process and seconds of the processor for one input above which it is a finding; bytes of
an input."""
STUCK = 900
"""Seconds by the clock after which libFuzzer takes an input for one that never ends: on a busy machine a session
has waited for the processor for minutes, which is no fault of its input."""
BYTES = 0.3
"""Share of the changes to JSON that do not care whether it stays JSON."""
INSTRUMENTED = ["fuzzing.targets", "graphwright", "pyteomics", "yaml"]
"""Whose branches are what an input is new by."""


@dataclass(frozen=True)
class Session:
    """One target, fuzzed once. megabytes: the most that the process had. finding: what ended it, if anything."""

    target: str
    inputs: int
    seconds: float
    megabytes: int
    covered: int
    finding: str | None
    commit: str


def load_targets() -> dict[str, Target]:
    """The targets, with everything that they read by counting its branches."""
    import atheris

    # It would name every module.
    with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=INSTRUMENTED):
        from fuzzing.targets import TARGETS, folder
    folder()  # made here, taken away here: sessions end without a word
    return TARGETS


def fuzz(target: Target, inputs: int, seconds: int, commit: str) -> Session:
    """Run one target until so many inputs were read, so much time has passed, or something was found."""
    corpus, seeds, findings = (WORK / target.name / name for name in ("corpus", "seeds", "found"))
    for each in (corpus, seeds, findings):
        each.mkdir(parents=True, exist_ok=True)
    for at, seed in enumerate(target.seeds):
        (seeds / str(at)).write_bytes(seed)
    words, log = WORK / target.name / "words", WORK / target.name / "log"
    options = [f"-runs={inputs}", f"-max_total_time={seconds}", f"-rss_limit_mb={MEMORY}", f"-timeout={STUCK}"]
    options += [f"-max_len={LONGEST}", f"-artifact_prefix={findings}/", "-print_final_stats=1"]
    if target.words:  # libFuzzer does not begin with a dictionary that is empty
        words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words))
        options.append(f"-dict={words}")
    begun = time.monotonic()
    # libFuzzer ends the process that it runs in; a copy of this one has everything imported.
    child = os.fork()
    if child == 0:
        _run(target, [*options, str(corpus), str(seeds)], log)
    _, status = os.waitpid(child, 0)
    told = log.read_text(errors="replace")
    return Session(
        target.name,
        _figure(r"stat::number_of_executed_units:\s*(\d+)", told),
        round(time.monotonic() - begun, 1),
        _figure(r"stat::peak_rss_mb:\s*(\d+)", told),
        _figure(r"(?s:.*)\bcov: (\d+)", told),
        _finding(told) if status else None,
        commit,
    )


def _run(target: Target, options: Sequence[str], log: Path) -> NoReturn:
    """Never returns."""
    import atheris

    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    # Its Mutate is another one once it runs.
    changes = mutator(target, lambda data, most: atheris.Mutate(data, most))
    extra = {"custom_mutator": changes} if target.is_json else {}
    atheris.Setup(["fuzzing", *options], lambda data: timed(target, data), **extra)
    atheris.Fuzz()
    os._exit(0)


def timed(target: Target, data: bytes) -> None:
    """Read an input, and find fault with one that takes long."""
    begun = time.process_time()
    target(data)
    if time.process_time() - begun > SLOW:
        raise TimeoutError(f"an input took {time.process_time() - begun:.0f} seconds of the processor")


def mutator(target: Target, of_bytes: Callable[[bytes, int], bytes]) -> Callable[[bytes, int, int], bytes]:
    """Changes to the input of a target that reads JSON."""

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        changed = None if random.random() < BYTES else mutate_json(data, random, target.words)
        return of_bytes(data, most) if changed is None or len(changed) > most else changed

    return mutate


def _figure(pattern: str, told: str) -> int:
    match = re.search(pattern, told)
    return int(match[1]) if match else 0


def _finding(told: str) -> str:
    """The exception, or what libFuzzer itself says: too slow, too much memory, a crash of a library."""
    python = re.search(r"=== Uncaught Python exception: ===\n(.*)", told)
    summary = re.search(r"(?:SUMMARY|ERROR): (.*)", told)
    return python[1][:300] if python else summary[1][:300] if summary else told.strip()[-300:]


def _escaped(word: str) -> str:
    """As libFuzzer's dictionaries have it."""
    return "".join(f"\\x{byte:02x}" for byte in word.encode("utf-8", "surrogatepass"))


def sessions() -> list[Session]:
    """What was recorded so far."""
    return [Session(**each) for each in json.loads(RECORD.read_text())["sessions"]] if RECORD.exists() else []


def table(of: Sequence[Session]) -> str:
    """Inputs, time, memory and findings of every target, in Markdown."""
    lines = ["| reader | inputs | seconds | most memory, MB | findings |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(session.target for session in of):
        own = [session for session in of if session.target == name]
        memory = max(session.megabytes for session in own)
        lines.append(f"| {name} | {_sums(own)[0]} | {_sums(own)[1]} | {memory:,} | {_sums(own)[2]} |")
    lines.append(f"| all | {_sums(of)[0]} | {_sums(of)[1]} | | {_sums(of)[2]} |")
    return "\n".join(lines)


def _sums(of: Sequence[Session]) -> tuple[str, str, str]:
    findings = sum(session.finding is not None for session in of)
    return f"{sum(each.inputs for each in of):,}", f"{sum(each.seconds for each in of):,.0f}", str(findings or "")


def _commit() -> str:
    """The commit at hand; a plus sign after it where files differ from it."""
    command = ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False).stdout.strip()


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    result.add_argument("targets", nargs="*", metavar="TARGET", help="some of the readers; all without one")
    result.add_argument("--inputs", type=int, default=60_000, help="inputs for each target (default: %(default)s)")
    result.add_argument("--seconds", type=int, default=600, help="most for each target (default: %(default)s)")
    result.add_argument("--record", action="store_true", help=f"add the sessions to {RECORD.relative_to(ROOT)}")
    result.add_argument("--table", action="store_true", help="print what was recorded, and fuzz nothing")
    return result


def main() -> int:
    """Fuzz, print what was found, write the record; 1 if anything was found."""
    arguments = parser().parse_args()
    if arguments.table:
        print(table(sessions()))
        return 0
    targets = load_targets()
    unknown = [name for name in arguments.targets if name not in targets]
    if unknown:
        print(f"there is no target {unknown[0]}; there are {', '.join(targets)}", file=sys.stderr)
        return 2
    any_finding = False
    commit = _commit()
    for name in arguments.targets or targets:
        session = fuzz(targets[name], arguments.inputs, arguments.seconds, commit)
        any_finding |= session.finding is not None
        print(
            f"{name}: {session.inputs:,} inputs in {session.seconds:.0f} s, {session.megabytes:,} MB, "
            f"{session.finding or 'nothing found'}",
            flush=True,
        )
        if arguments.record:
            every = [asdict(each) for each in [*sessions(), session]]
            RECORD.write_text(json.dumps({"sessions": every}, indent=1) + "\n")
    return int(any_finding)


if __name__ == "__main__":
    sys.exit(main())
