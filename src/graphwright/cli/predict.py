"""`graphwright predict`: files in, graphs out."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from graphwright.graphs import draw, to_json
from graphwright.tasks.coloring import RGB, read_picture
from graphwright.training.assembly import coloring_config
from graphwright.training.saved_model import PredictedGraph, load_model


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "predict",
        help="predict the graph in each file",
        description="Predict the graph in each picture. A file that cannot be read is named, the others are still "
        "predicted, and the exit code is 1.",
    )
    parser.add_argument("model", help="a run's folder, a shipped model's name, or a model's .json file")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="pictures (png, ...)")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the graphs as node-link JSON")
    parser.add_argument(
        "--draw", type=Path, metavar="DIR", help="draw each graph beside its picture, as SVG and PNG"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read what can be read, predict it at once, print, write."""
    model = load_model(arguments.model)
    side = coloring_config(model.run.task).side
    pictures, readable, failed = [], [], 0
    for path in arguments.files:
        try:
            pictures.append(read_picture(path, side))
            readable.append(path)
        except ValueError as error:
            print(f"graphwright: {error}", file=sys.stderr)
            failed += 1
    graphs = model.predict(torch.stack(pictures)) if pictures else []
    console = Console()
    if graphs:
        console.print(_table(readable, graphs))
    if arguments.json is not None:
        rows = [
            {"file": str(path), "confidence": each.confidence, "graph": to_json(each.graph)}
            for path, each in zip(readable, graphs, strict=True)
        ]
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n")
        console.print(f"wrote {arguments.json}")
    if arguments.draw is not None and graphs:
        names = _distinct(readable)
        for name, picture, each in zip(names, pictures, graphs, strict=True):
            _draw(arguments.draw / name, picture, each)
        console.print(f"drew {len(graphs)} into {arguments.draw}")
    return 1 if failed else 0


def _table(paths: list[Path], graphs: list[PredictedGraph]) -> Table:
    table = Table()
    for heading in ("file", "nodes", "edges", "confidence"):
        table.add_column(heading, justify="left" if heading == "file" else "right")
    for path, each in zip(paths, graphs, strict=True):
        edges = str(len(each.graph.edges))
        table.add_row(str(path), str(each.graph.size), edges, f"{100 * each.confidence:.1f} %")
    return table


def _distinct(paths: list[Path]) -> list[str]:
    """A file name for each drawing; numbered where two inputs share one."""
    stems = [path.stem for path in paths]
    return [stem if stems.count(stem) == 1 else f"{stem}-{at}" for at, stem in enumerate(stems)]


def _draw(path: Path, picture: torch.Tensor, predicted: PredictedGraph) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.imshow(picture.permute(1, 2, 0).numpy(), interpolation="nearest")
    left.set_axis_off()
    draw(predicted.graph, right, colors=RGB)
    right.set_title(f"confidence {100 * predicted.confidence:.0f} %", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".svg", ".png"):
        figure.savefig(path.with_name(path.name + suffix))
