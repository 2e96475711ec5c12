"""`graphwright bench`: our speed beside a named peer's."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from graphwright.bench import BENCHMARKS, Row, table


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "bench",
        help="measure our speed beside a named peer's, in one run",
        description="Measure our speed beside a named peer's, in one run. Times are milliseconds per sample; "
        "the ratio says how many times faster ours is. Close other programs first.",
    )
    parser.add_argument("name", choices=[*BENCHMARKS, "all"], help="what to measure")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the rows to this file")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print a table, write JSON."""
    console = Console()
    if arguments.json is not None:  # a path that cannot be written is better known before than after
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.touch()
    if not console.is_terminal:
        console.width = 170  # a file or a pipe has no edge to wrap at
    rows: list[Row] = []
    names = list(BENCHMARKS) if arguments.name == "all" else [arguments.name]
    for name in names:
        measured = _measure(name, console)
        console.print(table(f"bench {name}", measured))
        rows += measured
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([row.to_json() for row in rows], indent=2) + "\n")
        console.print(f"wrote {arguments.json}")
    return 0


def _measure(name: str, console: Console) -> list[Row]:
    rows = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(f"bench {name}", total=None)
        for row in BENCHMARKS[name]():
            rows.append(row)
            progress.update(task, description=f"bench {name}: {row.name}, n = {row.n}, {row.ratio:.1f}x")
    return rows
