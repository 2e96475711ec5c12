"""`graphwright evaluate`: a model's true figures."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from graphwright.metrics import Report
from graphwright.training.saved_model import load_model


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "evaluate",
        help="a model's true metrics with intervals",
        description="Predict samples that the model has not seen, decode them without a look at the truth, and "
        "compare: exact isomorphism, edit distance (and for how many it is proved minimal), and the paper's "
        "aligned figures.",
    )
    parser.add_argument("model", help="a run's folder, a shipped model's name, or a model's .json file")
    parser.add_argument("--split", choices=("train", "validation", "test"), default="test", help="default: test")
    parser.add_argument("--seed", type=int, help="draw fresh samples of the generated task under this seed")
    parser.add_argument(
        "--samples", type=int, default=1000, help="how many, from the start of the split (default 1000)"
    )
    parser.add_argument("--decode", choices=("plain",), default="plain", help="how logits become graphs")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures to this file")
    parser.add_argument("--draw", type=Path, metavar="DIR", help="also draw hits and misses into this folder")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, print a table, write JSON and pictures."""
    from graphwright.report.evaluation import evaluate_saved
    from graphwright.report.sheet import comparison_sheet, pick_examples

    console = Console()
    if arguments.samples < 1:
        raise ValueError(f"--samples must be at least 1, got {arguments.samples}")
    model = load_model(arguments.model)
    begun = perf_counter()
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("predicting", total=arguments.samples)
        result = evaluate_saved(
            model, arguments.split, arguments.seed, arguments.samples, lambda count: progress.advance(task, count)
        )
    seconds = perf_counter() - begun
    console.print(figures_table(f"{model.name}, {arguments.split}", result.evaluation.report))
    console.print(f"{seconds:.1f} s")
    if arguments.json is not None:
        facts = {"task": f"coloring{model.run.task.capacity}"} | result.evaluation.report.to_json()
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(facts | {"seconds": seconds}, indent=2) + "\n")
        console.print(f"wrote {arguments.json}")
    if arguments.draw is not None:
        arguments.draw.mkdir(parents=True, exist_ok=True)
        out = arguments.draw / "examples.png"
        comparison_sheet(result, pick_examples(result.evaluation.report)).savefig(out, dpi=90)
        console.print(f"wrote {out}")
    return 0


def figures_table(title: str, report: Report) -> Table:
    """The figures for the terminal."""
    facts = report.to_json()
    table = Table(title=title, title_justify="left")
    table.add_column("metric")
    table.add_column("value", justify="right")
    table.add_column("95 % interval", justify="right")
    for name, value in facts.items():
        if name.endswith("_interval") or value is None:
            continue
        interval = facts.get(f"{name}_interval")
        shown = f"{value:.2f}" if isinstance(value, float) else str(value)
        table.add_row(name, shown, f"{interval[0]:.2f} to {interval[1]:.2f}" if interval else "")
    return table
