"""`graphwright debug`: what went wrong in a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table


def declare(parser: argparse.ArgumentParser) -> None:
    parser.description = "Look into a run that went wrong."
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    batch = actions.add_parser(
        "batch",
        help="the samples of one step, each by itself",
        description="Make the batch of a step again and print each sample's loss and gradient, the largest first. "
        "The weights are those of the run's last checkpoint, without dropout.",
    )
    batch.add_argument("folder", type=Path, metavar="RUN", help="a run's folder")
    batch.add_argument("step", type=int, metavar="STEP", help="as log.jsonl and spikes.jsonl count them")
    batch.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Replay and print."""
    from graphwright.training.faulty import replay

    batch = replay(arguments.folder, arguments.step)
    table = Table(title=f"step {batch.step}, with the weights after step {batch.weights_of}", title_justify="left")
    for heading in ("training sample", "epoch", "nodes", "edges", "loss", "gradient norm"):
        table.add_column(heading, justify="right")
    table.add_column("fault")
    # What has no loss at all comes first.
    for each in sorted(batch.samples, key=lambda one: (not one.fault, -one.loss if one.loss == one.loss else 0.0)):
        figures = (f"{each.loss:.4f}", f"{each.gradient_norm:.4g}")
        table.add_row(*map(str, (each.index, each.epoch, each.nodes, each.edges)), *figures, each.fault)
    Console().print(table)
    faults = sum(bool(each.fault) for each in batch.samples)
    Console().print(f"{faults} of {len(batch.samples)} samples have a fault")
    return 0
