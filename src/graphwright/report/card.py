"""A model to hand on: weights, record and card."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

from graphwright.report.evaluation import Evaluated, evaluate_saved
from graphwright.report.page import NAMES
from graphwright.report.record import run_record
from graphwright.tasks import Task
from graphwright.training.decoders import Decoder, check_decoder
from graphwright.training.saved_model import export_model, load_model

INDEPENDENT = (
    "The confidence that `predict` prints takes the decisions as independent; it ranks predictions and is not "
    "calibrated."
)
RECOGNISED = (
    "The confidence that `predict` prints is the model's probability of the graph among all that it knows and the "
    "formula, where it is known, allows."
)
CARD_SAMPLES = 4000
"""Test samples behind a card's figures, where there are so many."""


def write_model(run_folder: Path, out: Path, samples: int | None, decoder: Decoder) -> Evaluated:
    """Write a run's best predictor with its record and a card; returns its figures on the test split.

    The figures are those of the weights as written, with the decoder that the model is handed on with.
    """
    model = load_model(str(run_folder))
    check_decoder(decoder, model.vocabulary)
    facts = {"decoder": decoder.value}
    known = (model.known.library, model.memory) if decoder is Decoder.KNOWN else ()
    export_model(str(run_folder), out, facts, *known)
    result = evaluate_saved(load_model(str(out)), samples=samples, at_most=CARD_SAMPLES)
    figures = result.figures()
    record = run_record(model, result.data) | facts | {"test": figures}
    export_model(str(run_folder), out, facts | {"test": figures}, *known)
    (out / "record.json").write_text(json.dumps(record, indent=2) + "\n")
    log = run_folder / "log.csv"
    if log.exists():
        (out / "log.csv").write_bytes(log.read_bytes())
    (out / "README.md").write_text(_card(out.name, record, model.task))
    return result


def _card(name: str, record: dict[str, object], task: Task) -> str:
    settings, figures = record["settings"], record["test"]
    assert isinstance(settings, dict)
    assert isinstance(figures, dict)
    progress = record["progress"] or {}
    assert isinstance(progress, dict)
    sittings = record["trained"] or [record]
    assert isinstance(sittings, list)
    matching, hardware = settings["matching"], sittings[-1]["hardware"]
    examples = {"coloring": "picture.png", "fingerprint": "molecules.smi", "spectrum": "spectra.mgf"}
    example = examples[settings["task"]["kind"]]
    rows = []
    for key, text in NAMES.items():
        if key not in figures:
            continue
        interval = figures.get(f"{key}_interval")
        shown = f"{interval[0]:.2f} to {interval[1]:.2f}" if interval else ""
        rows.append(f"| {text} | {figures[key]:.2f} | {shown} |")
    recognised = record["decoder"] == Decoder.KNOWN and settings["model"]["known_graphs"]
    return f"""# {name}

{textwrap.fill(task.summary, 115)}
A {settings["model"]["encoder"]} encoder and a Transformer decoder, trained with the `{matching["kind"]}` matcher.

```
graphwright evaluate {name}
graphwright predict {name} {example}
```

## Figures

The first {figures["samples"]} samples of the test split, none of them seen in training or selection; decoded
`{record["decoder"]}`, as `evaluate` and `predict` do where nothing else is asked for.

| | mean | 95 % interval |
|---|---|---|
{chr(10).join(rows)}

## How it came about

{progress.get("step", 0):,} steps of {settings["train"]["batch_size"]} samples up to the best validation, in
{progress.get("seconds", 0) / 60:.0f} minutes, seed {settings["train"]["seed"]}. Hardware: {json.dumps(hardware)}.
Settings, commit and data hash are in `record.json`, the training log in `log.csv`.

## Limits

{textwrap.fill(task.limits, 115)}
{textwrap.fill(RECOGNISED if recognised else INDEPENDENT, 115)}
"""
