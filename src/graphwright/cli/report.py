"""`graphwright report`: a run as one HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console


def declare(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Evaluate a run on unseen samples and write one HTML page: learning curves, figures with "
        "intervals, examples with what is wrong in red, a transport plan, timings."
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="a run's folder, or a shipped model's name")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="HTML",
        help="where the page goes (default RUN/report.html, or NAME-report.html)",
    )
    parser.add_argument("--samples", type=int, help="unseen samples to evaluate (default 1000, or all)")
    parser.add_argument("--title", default="graphwright", help="the page's title")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the page and say where it is."""
    from graphwright.inference.model import shipped_names
    from graphwright.report import decided, write_report

    if arguments.samples is not None and arguments.samples < 1:
        raise ValueError(f"--samples must be at least 1, got {arguments.samples}")
    # A shipped model has no folder of a person's own, and a report makes none.
    shipped = str(arguments.folder) in shipped_names()
    usual = Path(f"{arguments.folder}-report.html") if shipped else arguments.folder / "report.html"
    out = arguments.out or usual
    result = write_report(arguments.folder, out, arguments.samples, arguments.title)
    figures = result.figures()
    low, high = figures["isomorphic_interval"]
    console = Console()
    console.print(
        f"{figures['isomorphic']:.1f} % exactly right on unseen samples (95 % interval {low:.1f} to {high:.1f})"
        f"{decided(result)}"
    )
    console.print(f"report: {out.resolve()}", soft_wrap=True)
    return 0
