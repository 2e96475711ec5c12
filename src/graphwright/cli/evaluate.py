"""`graphwright evaluate`: a model's true figures."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from graphwright.cli.shared import HANDED_ON, add_decode_option
from graphwright.files import refuse_overwriting, write_json
from graphwright.graphs import save_figure
from graphwright.inference.decoders import decoder_named
from graphwright.inference.evaluate import Evaluated, baseline_figures, evaluate_saved, figure_rows
from graphwright.inference.model import load_model
from graphwright.tasks import SPLITS


def declare(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Predict samples that the model has not seen, decode them without a look at the truth, and "
        "compare: exact isomorphism, edit distance (and for how many it is proved minimal), and the paper's "
        "aligned figures."
    )
    parser.add_argument("model", help="a run's folder, a shipped model's name, or a model's .json file")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        help="all samples of a file like the task's own (its splits ignored), or the test split of prepared data",
    )
    parser.add_argument("--split", choices=SPLITS, default="test", help="of the model's own data; default: test")
    parser.add_argument("--seed", type=int, help="draw fresh samples of a generated task under this seed")
    parser.add_argument(
        "--samples", type=int, help="how many, from the start (default 1000 of a split, all of a file)"
    )
    add_decode_option(parser, HANDED_ON)
    parser.add_argument(
        "--baseline",
        action="store_true",
        help="also simple methods on the same samples, such as the graph of the nearest training input (of all "
        "training molecules or spectra, of 10,000 generated pictures)",
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures to this file")
    parser.add_argument("--draw", type=Path, metavar="DIR", help="also draw hits and misses into this folder")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, print a table, write JSON and pictures."""
    from graphwright.report import comparison_sheet, pick_examples

    console = Console()
    if arguments.samples is not None and arguments.samples < 1:
        raise ValueError(f"--samples must be at least 1, got {arguments.samples}")
    if arguments.data is not None and arguments.seed is not None:
        raise ValueError("--seed draws fresh samples and --data reads them: give one of the two")
    if arguments.data is not None:
        refuse_overwriting([arguments.data], json=arguments.json)
    model = load_model(arguments.model)
    decode = arguments.decode or model.decode
    begun = perf_counter()
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("predicting", total=arguments.samples)
        result = evaluate_saved(
            model,
            arguments.split,
            arguments.seed,
            arguments.samples,
            file=arguments.data,
            advance=lambda count: progress.advance(task, count),
            decode=decode,
        )
    seconds = perf_counter() - begun
    facts = result.figures() | {"decode": decode, "seconds": seconds}
    unusable = result.data.unusable()
    if unusable:
        facts["unusable_rows"] = unusable
    compared = arguments.baseline and model.task.own_baselines
    baseline = _nearest(result, console) if arguments.baseline and not compared else None
    if baseline is not None:
        facts["baseline"] = baseline
    if compared:
        facts["baselines"] = baseline_figures(result)
    where = arguments.split if arguments.data is None else str(arguments.data)
    titles = result.titles()
    console.print(figures_table(f"{model.name}, {where}, decoded {decode}", facts, titles))
    on_training = arguments.data is None and arguments.split == "train"
    if on_training and decoder_named(decode).from_known and model.memory is not None:
        console.print("The model remembers training inputs: these figures say nothing of others.", style="bold")
    if unusable:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in unusable.items())
        console.print(f"{sum(unusable.values()):,} unusable rows were left out: {counts}")
    if baseline is not None:
        console.print(figures_table(nearest_title(baseline), baseline, titles))
    if "per_molecule" in facts:
        console.print(figures_table("mean over molecules", facts["per_molecule"], titles))
    if compared:
        console.print(comparison_table(model.name, facts))
    console.print(f"{seconds:.1f} s")
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        write_json(arguments.json, facts)
        console.print(f"wrote {arguments.json}")
    if arguments.draw is not None:
        arguments.draw.mkdir(parents=True, exist_ok=True)
        out = arguments.draw / "examples.png"
        save_figure(comparison_sheet(result, pick_examples(result.evaluation.report)), out, dpi=90)
        console.print(f"wrote {out}")
    return 0


def _nearest(result: Evaluated, console: Console) -> dict[str, Any]:
    """The baseline's figures on the samples of an evaluation."""
    from graphwright.baselines import nearest_figures

    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("reading the training samples", total=None)
        return nearest_figures(result, lambda count: progress.advance(task, count))


def nearest_title(baseline: Mapping[str, Any]) -> str:
    """Among how many training samples the nearest was sought, and by what."""
    method = baseline["method"]
    return f"nearest of {method['references']:,} training samples by {method['likeness']}"


def figures_table(title: str, facts: Mapping[str, Any], titles: Mapping[str, str]) -> Table:
    """The figures for the terminal, called as pages and cards call them."""
    table = Table(title=title, title_justify="left")
    table.add_column("metric")
    table.add_column("value", justify="right")
    table.add_column("95 % interval", justify="right")
    for row in figure_rows(facts, titles):
        table.add_row(*row)
    return table


def comparison_table(name: str, facts: Mapping[str, Any]) -> Table:
    """A model beside the simple methods: exact, by spectrum and by molecule, and the mean similarity."""
    table = Table(title="beside simple methods", title_justify="left")
    table.add_column("method")
    for heading in ("exact %", "exact % by molecule", "model is better by", "edit", "Tanimoto"):
        table.add_column(heading, justify="right")
    for method, figures in {name: facts, **facts["baselines"]}.items():
        molecules, better = figures["per_molecule"], figures.get("model_better_by")
        low, high = molecules["isomorphic_interval"]
        cells = [f"{figures['isomorphic']:.1f}", f"{molecules['isomorphic']:.1f} ({low:.1f} to {high:.1f})"]
        cells.append("" if better is None else f"{better[0]:+.1f} ({better[1]:+.1f} to {better[2]:+.1f})")
        table.add_row(method, *cells, f"{molecules['edit']:.2f}", f"{molecules['tanimoto']:.3f}")
    return table
