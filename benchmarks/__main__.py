"""`python -m benchmarks NAME`: our speed beside a named peer's."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks import BENCHMARKS, LONG, Remark, Row, scaling_figure, table
from graphwright.cli.main import guarded
from graphwright.cli.shared import DONE, SOME_FAILED, keep_freed_memory

PLOTTED = "scaling"
WIDE = 1000
"""Columns where there is no terminal, more than a table takes: a file or a pipe has no edge to wrap at."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure our speed beside a named peer's, in one run. Times are milliseconds per sample; "
        "the ratio says how many times faster ours is. Close other programs first.",
    )
    result.add_argument(
        "name", choices=[*BENCHMARKS, "all"], help=f"what to measure; all: everything but {', '.join(LONG)}"
    )
    result.add_argument("--json", type=Path, metavar="OUT", help="also write the rows to this file")
    result.add_argument(
        "--plot", type=Path, metavar="PNG", help="of scaling (or all): also draw how cost grows with n and batch"
    )
    return result


def run(arguments: argparse.Namespace) -> int:
    """Measure, print a table, write JSON and the plot."""
    names = [name for name in BENCHMARKS if name not in LONG] if arguments.name == "all" else [arguments.name]
    if arguments.plot is not None and PLOTTED not in names:
        raise ValueError(f"--plot draws the benchmark {PLOTTED}: python -m benchmarks {PLOTTED} --plot PNG")
    for path in (arguments.json, arguments.plot):
        if path is not None:  # a path that cannot be written is better known before than after
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    console = Console()
    if not console.is_terminal:
        console.width = WIDE
    measured: dict[str, list[Row]] = {}
    remarks: list[str] = []
    failed: list[str] = []
    for name in names:
        try:
            measured[name] = _measure(name, remarks)
        except ImportError as error:  # one peer that is not installed does not end a run of all
            if len(names) == 1:
                raise
            failed.append(f"{name} could not be measured: {error}")
        if arguments.json is not None:  # after each: an interrupted run keeps what it has measured
            rows = [row.to_json() | _of(name, names) for name, done in measured.items() for row in done]
            arguments.json.write_text(json.dumps(rows, indent=2) + "\n")
    console.print(table(measured))
    for line in (*remarks, *failed):
        console.print(line, highlight=False, markup=False)
    if arguments.json is not None:
        console.print(f"wrote {arguments.json}")
    if arguments.plot is not None and PLOTTED in measured:
        scaling_figure(measured[PLOTTED]).savefig(arguments.plot, dpi=120)
        console.print(f"wrote {arguments.plot}")
    return SOME_FAILED if failed else DONE


def _of(name: str, names: list[str]) -> dict[str, str]:
    """Which benchmark a row is of, where there are several."""
    return {"benchmark": name} if len(names) > 1 else {}


def _measure(name: str, remarks: list[str]) -> list[Row]:
    """The rows, shown as they come on the error stream; remarks are added to those given."""
    rows: list[Row] = []
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(f"bench {name}", total=None)
        for row in BENCHMARKS[name]():
            if isinstance(row, Remark):
                remarks.append(row.text)
                continue
            rows.append(row)
            line = f"bench {name}: {row.name}, n = {row.n}, {row.threads} threads, {row.ratio:.2f}x"
            progress.update(task, description=line)
            if not console.is_terminal:
                print(line, file=console.file, flush=True)
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Measure as the command line says; the exit codes are graphwright's."""
    keep_freed_memory()
    return guarded("benchmarks", lambda: run(parser().parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
