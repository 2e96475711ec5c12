"""`graphwright data`: what is in a data set."""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from graphwright.cli.environments import add_environments
from graphwright.cli.prepare import add_prepare
from graphwright.settings import load_run
from graphwright.tasks import SPLITS, Explaining, Rejection, Selective, task_of


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser("data", help="look at a data set", description="Look at a data set.")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    inspect = actions.add_parser(
        "inspect",
        help="statistics, what is unusable and why, and a sheet of examples",
        description="Print the statistics of a task's samples and how many rows of a file are unusable for what "
        "reason, and draw a sheet of examples.",
    )
    inspect.add_argument(
        "source",
        metavar="PRESET|CONFIG|DATA",
        help="a preset, e.g. coloring20 or qm9, a YAML file, a file with SMILES or spectra, your own table of "
        "inputs and graphs, or a prepared folder",
    )
    inspect.add_argument("--split", choices=SPLITS, default="train")
    inspect.add_argument("--samples", type=int, default=2000, help="how many to look at (default 2000)")
    inspect.add_argument("--out", type=Path, metavar="PNG", help="where the sheet goes (default SOURCE-sheet.png)")
    inspect.add_argument("--rejected", type=Path, metavar="CSV", help="list the unusable rows in this file")
    inspect.set_defaults(run=run)
    add_prepare(actions)
    add_environments(actions)


def run(arguments: argparse.Namespace) -> int:
    """Print and draw."""
    console = Console()
    if arguments.samples < 1:
        raise ValueError(f"--samples must be at least 1, got {arguments.samples}")
    task = task_of(load_run(arguments.source).task)
    if isinstance(task, Explaining):
        # Before the samples: where there is none in this split, this says why.
        console.print(_table(task.explained()))
        for each in task.rejections():
            console.print(f"unusable: {each.detail}", markup=False, highlight=False, soft_wrap=True)
    whole = task.data(arguments.split)
    # Not one of the samples looked at may stand in for an unusable row.
    data = task.data(arguments.split, limit=arguments.samples)
    count = min(arguments.samples, len(data))
    rows = task.statistics(data[index] for index in track(range(count), console=console, transient=True))
    if isinstance(task, Explaining):
        rejected: Sequence[Rejection] = task.rejections()
    else:
        rejected = data.rejected if isinstance(data, Selective) else ()
    console.print(_table([("samples in the split", f"{len(whole):,}"), *rows, *_rejections(rejected)]))
    if arguments.rejected is not None:
        _list(arguments.rejected, rejected)
        console.print(f"wrote {arguments.rejected}")
    out = arguments.out or Path(f"{Path(arguments.source).stem}-sheet.png")
    out.parent.mkdir(parents=True, exist_ok=True)
    task.sheet([data[index] for index in range(min(9, count))]).savefig(out, dpi=80)
    console.print(f"wrote {out}")
    return 0


def _rejections(rejected: Sequence[Rejection]) -> list[tuple[str, str]]:
    counts = Counter(each.reason for each in rejected)
    return [(f"unusable: {reason}", f"{count:,}") for reason, count in counts.most_common()]


def _list(path: Path, rejected: Sequence[Rejection]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("row", "text", "reason", "detail"))
        writer.writerows((each.row, each.text, each.reason, each.detail) for each in rejected)


def _table(rows: Sequence[tuple[str, str]]) -> Table:
    table = Table(show_header=False)
    for name, value in rows:
        table.add_row(name, value)
    return table
