"""`graphwright export`: a model to hand on."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from graphwright.cli.shared import add_decode_option
from graphwright.inference.model import load_model


def declare(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Evaluate a run's best or last checkpoint on the test split and write its predictor alone (no "
        "optimiser, no matcher) with a card and the record of how it came about. The folder can be given to "
        "evaluate and predict."
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("out", type=Path, metavar="DIR", help="where the model goes")
    parser.add_argument(
        "--checkpoint",
        choices=("best", "last"),
        default="best",
        help="the one with the best validation, slot by slot (default), or the last; with --decode known that one "
        "may be better: ask evaluate RUN/checkpoints/last.json --split validation --decode known",
    )
    parser.add_argument("--samples", type=int, help="test samples for the card (default 4000, or all)")
    add_decode_option(
        parser,
        "fingerprint where the input is one, else plain. The card's figures are made with it, and evaluate and "
        "predict take it",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the model and say what it can."""
    from graphwright.inference.export import write_model

    if arguments.samples is not None and arguments.samples < 1:
        raise ValueError(f"--samples must be at least 1, got {arguments.samples}")
    source = arguments.folder
    if arguments.checkpoint == "last":
        source = source / "checkpoints" / "last.json"
    decode = arguments.decode or load_model(str(source)).decode
    figures = write_model(source, arguments.out, arguments.samples, decode).figures()
    Console().print(f"{figures['isomorphic']:.1f} % exactly right on {figures['samples']} test samples")
    Console().print(f"wrote {arguments.out}")
    return 0
