"""`graphwright data environments`: the alphabet that fingerprints are decoded with."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.progress import Progress


def add_environments(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = actions.add_parser(
        "environments",
        help="the atom environments that --decode fingerprint puts molecules together from",
        description="Count the atom environments (radius 1 and 2) and ring systems in the training split of data "
        "sets, and write them with a record. What comes with the package was made so.",
    )
    parser.add_argument("data", nargs="*", metavar="DATA", help="shipped data or files (default: qm9 molecules)")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="NPZ", help="where they go; the record beside it"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Count and write."""
    from graphwright.tasks.molecules.assembly.alphabet import write_alphabet

    if arguments.out.suffix != ".npz":
        raise ValueError(f"--out must end in .npz, got {arguments.out}")
    console = Console()
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("reading molecules", total=None)
        alphabet = write_alphabet(
            arguments.data or ["qm9", "molecules"],
            arguments.out,
            lambda done, total: progress.update(task, completed=done, total=total),
        )
    console.print(
        f"{len(alphabet):,} environments of radius 1, {len(alphabet.wide.ids):,} of radius 2, "
        f"{len(alphabet.rings.ids):,} ring systems"
    )
    console.print(f"wrote {arguments.out}")
    return 0
