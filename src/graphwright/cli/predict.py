"""`graphwright predict`: files in, graphs out."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphwright.cli.shared import HANDED_ON, add_decode_option, patient_bar
from graphwright.decoding import Formula, order_in_words
from graphwright.files import refuse_overwriting, write_json
from graphwright.graphs import Graph, to_json
from graphwright.inference.decoders import decoder_named
from graphwright.inference.model import PredictedGraph, SavedModel, load_model
from graphwright.tasks import BadInput, NamedInput, Task

WIDE = 250
"""Columns where there is no terminal: a file or a pipe has no edge to wrap at."""
SHOWN = 100
"""Rows of the table; whoever predicts more wants the JSON."""
DRAWN = (".svg", ".png")


def declare(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Predict the graph of each picture, fingerprint, molecule or spectrum. What "
        "cannot be read is named, the rest is still predicted, and the exit code is 1."
    )
    parser.add_argument("model", help="a run's folder, a shipped model's name, or a model's .json file")
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="a file, or for molecules a SMILES itself. Pictures (png, ...) for Coloring; SMILES (smi, txt, csv, "
        "tsv, parquet) or fingerprints (npy, or 2048 zeros and ones a line) for molecules; tandem mass spectra "
        "(mgf, msp, mzML, ...) for scaffolds",
    )
    parser.add_argument("--top", type=int, default=1, metavar="K", help="give the K likeliest graphs (default 1)")
    add_decode_option(parser, HANDED_ON)
    parser.add_argument(
        "--seconds",
        type=float,
        help="at most so many for one input, after which the best found so far must do (with --decode valid, "
        "default 2, or fingerprint, default 8)",
    )
    parser.add_argument(
        "--formula",
        help="formula, e.g. C7H8O, that every molecule must have (with --decode valid, known); for spectra, "
        "that of the molecules where the file does not say it: explains peaks and bounds valid scaffolds",
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the graphs as node-link JSON")
    parser.add_argument(
        "--draw",
        type=Path,
        metavar="DIR",
        help="draw each graph, as SVG (Coloring: and PNG), in a file named after the input",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read what can be read, predict it, print, write."""
    if arguments.top < 1:
        raise ValueError(f"--top must be at least 1, got {arguments.top}")
    model = load_model(arguments.model)
    decode = arguments.decode or model.decode
    reader, formula = _with_formula(model.task, arguments.formula, decode)
    files = {path.resolve() for word in arguments.inputs if (path := model.task.file_of(word)) is not None}
    refuse_overwriting(files, json=arguments.json)
    read = list(reader.read_words(arguments.inputs))
    inputs = [each for each in read if isinstance(each, NamedInput)]
    for each in read:
        if isinstance(each, BadInput):
            print(f"graphwright: {each.message}", file=sys.stderr)
    graphs = _predict(model, inputs, arguments.top, decode, formula, arguments.seconds)
    console = Console(markup=False)  # brackets are part of SMILES and of names
    if not console.is_terminal:
        console.width = WIDE
    if graphs:
        console.print(_table(model.task, inputs[:SHOWN], graphs[:SHOWN], arguments.inputs))
    decoder = decoder_named(decode)
    hasty = sum(not each.candidates[0].proved for each in graphs if each.candidates)
    if hasty and decoder.takes_the_time_given:
        console.print(f"{hasty:,} of {len(graphs):,} are the best found in time, not proved to be the likeliest")
    short = [each for each in graphs if len(each.candidates) < arguments.top]
    if short and arguments.top > 1:
        why = "; ".join(filter(None, (decoder.why_fewer, decoder.for_more)))
        console.print(f"{len(short):,} of {len(graphs):,} have fewer than {arguments.top}: {why}")
    for words in sorted({words for each in graphs[:SHOWN] if (words := order_in_words(each.candidates))}):
        console.print(f"candidates: {words}")
    if len(graphs) > SHOWN:
        console.print(f"and {len(graphs) - SHOWN:,} more: --json OUT has all of them")
    if arguments.json is not None:
        rows = [_row(model.task, one, each) for one, each in zip(inputs, graphs, strict=True)]
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        write_json(arguments.json, rows)
        console.print(f"wrote {arguments.json}")
    if arguments.draw is not None and graphs:
        arguments.draw.mkdir(parents=True, exist_ok=True)
        drawings = 0
        for stem, one, predicted in zip(_distinct([one.stem for one in inputs]), inputs, graphs, strict=True):
            for suffix, answer in _drawn(predicted):
                title = f"confidence {100 * answer.confidence:.0f} %"
                path = _beside(arguments.draw / (stem + suffix), files)
                model.task.write_drawing(path, one.value, answer.graph, title, answer.text)
                drawings += 1
        console.print(f"drew {drawings} into {arguments.draw}")
    return 1 if len(inputs) < len(read) else 0


def _with_formula(task: Task, text: str | None, decode: str) -> tuple[Task, Formula | None]:
    """The task that reads the inputs, and the formula that every graph must have."""
    if text is None:
        return task, None
    informed = task.with_formula(text)
    if informed is not None:
        return informed, None
    if not decoder_named(decode).obeys_formulas:
        raise ValueError(f"--formula needs --decode valid or known: {decode} decoding knows nothing of it")
    return task, Formula.parse(text)


def _predict(
    model: SavedModel,
    inputs: Sequence[NamedInput],
    top: int,
    decode: str,
    formula: Formula | None,
    seconds: float | None,
) -> list[PredictedGraph]:
    """The graphs, batch by batch; a bar on the error stream where that takes its time."""
    graphs: list[PredictedGraph] = []
    at_once = decoder_named(decode).at_once
    with patient_bar("predicting", len(inputs)) as advance:
        for start in range(0, len(inputs), at_once):
            values = [each.value for each in inputs[start : start + at_once]]
            graphs += model.predict(values, top=top, decode=decode, formula=formula, seconds=seconds)
            advance(len(values))
    return graphs


@dataclass(frozen=True, eq=False)
class _Answer:
    """A graph, how sure the model is of it, and what a decoder that checks has to say; None elsewhere."""

    graph: Graph
    confidence: float
    checked: bool | None = None
    text: str | None = None
    note: str | None = None


def _ranked(predicted: PredictedGraph) -> list[_Answer]:
    """The candidates, or the one graph."""
    if not predicted.candidates:
        return [_Answer(predicted.graph, predicted.confidence)]
    return [
        _Answer(each.graph, each.probability, each.checked, each.text, each.note) for each in predicted.candidates
    ]


def _drawn(predicted: PredictedGraph) -> list[tuple[str, _Answer]]:
    """What to add to the file's name, and the answer."""
    ranked = _ranked(predicted)
    return [(f"-{rank}" if len(ranked) > 1 else "", each) for rank, each in enumerate(ranked, 1)]


def _table(
    task: Task, inputs: Sequence[NamedInput], graphs: Sequence[PredictedGraph], words: Sequence[str]
) -> Table:
    folders = {f"{path.parent}{os.sep}" for word in words if (path := task.file_of(word)) and path.parent.name}
    several = any(len(each.candidates) > 1 for each in graphs)
    checked = any(each.checked is not None for one in graphs for each in one.candidates)
    # Of a person's own table graphs may be molecules, too.
    written = task.ranked or any(task.text(each.graph) for each in graphs)
    given = any(one.text and one.text != one.name for one in inputs)
    table = Table()
    table.add_column("name" if given else "input", overflow="fold")
    if given:
        table.add_column("input", overflow="fold")
    # A SMILES says how large a molecule is, and a terminal has no room to spare.
    counted = [] if written else ["nodes", "edges"]
    for heading in (*(["rank"] if several else []), *counted, "confidence"):
        table.add_column(heading, justify="right")
    if checked:
        table.add_column("same fingerprint")
    if written:
        table.add_column("SMILES", overflow="fold")
    noted = any(one.note for one in inputs)
    if noted:
        table.add_column("about the input")
    for one, predicted in zip(inputs, graphs, strict=True):
        for rank, each in enumerate(_ranked(predicted), 1):
            cells = [f"{_without(folders, one.name)} {one.title}".strip() if rank == 1 else ""]
            cells += [one.text if rank == 1 else ""] if given else []
            cells += [str(rank)] if several else []
            cells += [str(each.graph.size), str(len(each.graph.edges))] if counted else []
            cells += [f"{100 * each.confidence:.1f} %"]
            cells += [_verdict(each)] if checked else []
            cells += [each.text or task.text(each.graph) or "not a valid molecule"] if written else []
            cells += [one.note if rank == 1 else ""] if noted else []
            table.add_row(*map(Text, cells))
    return table


def _row(task: Task, one: NamedInput, predicted: PredictedGraph) -> dict[str, Any]:
    first = _ranked(predicted)[0]
    row: dict[str, Any] = {"file": one.name, "confidence": predicted.confidence} | _described(task, first)
    row |= {name: told for name, told in (("name", one.title), ("given", one.text), ("note", one.note)) if told}
    facts = task.facts(one.value)
    if facts:
        row["input"] = facts
    if predicted.candidates:
        row["candidates"] = [
            {"probability": each.probability, "share": each.share, "proved": each.proved}
            | _described(task, answer)
            for each, answer in zip(predicted.candidates, _ranked(predicted), strict=True)
        ]
    return row


def _described(task: Task, answer: _Answer) -> dict[str, Any]:
    written = answer.text or task.text(answer.graph)
    text = {"smiles": written} if task.ranked or written else {}
    same = {} if answer.checked is None else {"same_fingerprint": answer.checked}
    note = {} if answer.note is None else {"why_not": answer.note}
    return {"graph": to_json(answer.graph)} | text | same | note


def _verdict(answer: _Answer) -> str:
    """Whether it has the fingerprint, and why it cannot where that is known."""
    if answer.checked:
        return "yes"
    return "no" if answer.note is None else f"no: {answer.note}"


def _without(folders: Collection[str], name: str) -> str:
    """The name of an input in a file without that file's folder."""
    return name.removeprefix(max((each for each in folders if name.startswith(each)), key=len, default=""))


def _beside(path: Path, files: Collection[Path]) -> Path:
    """A drawing's name that is no input's: a picture is never drawn over."""
    taken = any(path.with_name(path.name + suffix).resolve() in files for suffix in DRAWN)
    return path.with_name(f"{path.name}-graph") if taken else path


def _distinct(stems: list[str]) -> list[str]:
    """A file name for each drawing; numbered where two inputs share one."""
    counts = Counter(stems)
    return [stem if counts[stem] == 1 else f"{stem}-{at}" for at, stem in enumerate(stems)]
