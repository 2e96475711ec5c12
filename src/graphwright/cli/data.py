"""`graphwright data`: what is in a data set."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from graphwright.tasks.coloring import SPLITS, ColoringDataset, ColoringStatistics, draw_sheet, statistics
from graphwright.training.assembly import coloring_config


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser("data", help="look at a data set", description="Look at a data set.")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    inspect = actions.add_parser(
        "inspect",
        help="statistics and a sheet of examples",
        description="Print the statistics of a task's samples and draw a sheet of examples.",
    )
    inspect.add_argument("source", metavar="PRESET|CONFIG", help="a preset, e.g. coloring20, or a YAML file")
    inspect.add_argument("--split", choices=SPLITS, default="train")
    inspect.add_argument("--samples", type=int, default=2000, help="how many to look at (default 2000)")
    inspect.add_argument("--out", type=Path, metavar="PNG", help="where the sheet goes (default SOURCE-sheet.png)")
    inspect.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print and draw."""
    from graphwright.settings import load_run

    console = Console()
    task = load_run(arguments.source, []).task
    data = ColoringDataset(coloring_config(task), arguments.split, task.seed)
    count = min(arguments.samples, len(data))
    if count < 1:
        raise ValueError(f"--samples must be at least 1, got {arguments.samples}")
    console.print(
        _table(
            statistics(data[index] for index in track(range(count), console=console, transient=True)), len(data)
        )
    )
    out = arguments.out or Path(f"{Path(arguments.source).stem}-sheet.png")
    out.parent.mkdir(parents=True, exist_ok=True)
    draw_sheet([data[index] for index in range(min(9, count))]).savefig(out, dpi=80)
    console.print(f"wrote {out}")
    return 0


def _table(found: ColoringStatistics, length: int) -> Table:
    table = Table(show_header=False)
    shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in found.color_shares.items())
    for name, value in (
        ("samples in the split", f"{length:,}"),
        ("looked at", f"{found.samples:,}"),
        ("nodes", f"{found.size_min} to {found.size_max}, mean {found.size_mean:.2f}"),
        ("edges", f"mean {found.edges_mean:.2f}"),
        ("degree", f"mean {found.degree_mean:.2f}, largest {found.degree_max}"),
        ("colours", shares),
        ("connected", f"{100 * found.connected_share:.1f} %"),
        ("generated", f"{found.samples_per_second:,.0f} samples/s"),
    ):
        table.add_row(name, value)
    return table
