"""A model to hand on: weights, record and card."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

from graphwright.report.calibration import calibrated_temperature
from graphwright.report.evaluation import Evaluated, evaluate_saved
from graphwright.report.page import NAMES
from graphwright.report.record import run_record
from graphwright.training.decoders import Decoder, check_decoder
from graphwright.training.saved_model import SavedModel, export_model, load_model, log_beside

INDEPENDENT = (
    "The confidence that `predict` prints takes the decisions as independent; it ranks predictions and is not "
    "calibrated."
)
RECOGNISED = (
    "The confidence that `predict` prints is the model's probability of the graph among all that it knows and the "
    "formula, where it is known, allows, at the temperature at which the mean confidence was the accuracy on "
    "validation samples: right on the whole, not for every kind of input."
)
REMEMBERED = (
    "It carries what it remembers of {count:,} training inputs: the licences of the training data hold for them, "
    "and figures on inputs that it was trained on mean nothing."
)
CARD_SAMPLES = 4000
"""Test samples behind a card's figures, where there are so many."""


def write_model(source: Path, out: Path, samples: int | None, decoder: Decoder) -> Evaluated:
    """Write a predictor with its record and a card; returns its figures on the test split.

    source: whatever `load_model` takes: of a run's folder the best checkpoint counts.
    The figures are those of the weights as written, with the decoder that the model is handed on with.
    """
    model = load_model(str(source))
    check_decoder(decoder, model.vocabulary, model.checking)
    facts: dict[str, object] = {"decoder": decoder.value}
    known = (model.known.library, model.memory) if decoder is Decoder.KNOWN else ()
    if decoder is Decoder.KNOWN and model.predictor.recogniser is not None:
        facts["temperature"] = calibrated_temperature(model)
    export_model(str(source), out, facts, *known)
    result = evaluate_saved(load_model(str(out)), samples=samples, at_most=CARD_SAMPLES)
    figures = result.figures()
    record = run_record(model, result.data) | facts | {"test": figures}
    export_model(str(source), out, facts | {"test": figures}, *known)
    (out / "record.json").write_text(json.dumps(record, indent=2) + "\n")
    log = log_beside(str(source))
    if log.exists():
        (out / "log.csv").write_bytes(log.read_bytes())
    (out / "README.md").write_text(_card(out.name, record, model))
    return result


def _card(name: str, record: dict[str, object], model: SavedModel) -> str:
    settings, figures = record["settings"], record["test"]
    assert isinstance(settings, dict)
    assert isinstance(figures, dict)
    progress = record["progress"] or {}
    assert isinstance(progress, dict)
    sittings = record["trained"] or [record]
    assert isinstance(sittings, list)
    matching, hardware = settings["matching"], sittings[-1]["hardware"]
    examples = {
        "coloring": "picture.png",
        "fingerprint": "molecules.smi",
        "spectrum": "spectra.mgf",
        "table": "inputs.csv",
    }
    example = examples[settings["task"]["kind"]]
    rows = _rows(figures, "")
    if "per_molecule" in figures:
        rows += _rows(figures["per_molecule"], ", mean over molecules")
    limits = [model.task.limits, RECOGNISED if "temperature" in record else INDEPENDENT]
    if record["decoder"] == Decoder.KNOWN and model.memory is not None:
        limits.append(REMEMBERED.format(count=len(model.memory.places)))
    return f"""# {name}

{textwrap.fill(model.task.summary, 115)}
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

{progress.get("step", 0):,} steps of {settings["train"]["batch_size"]} samples, in
{progress.get("seconds", 0) / 60:.0f} minutes, seed {settings["train"]["seed"]}. Hardware: {json.dumps(hardware)}.
Settings, commit and data hash are in `record.json`, the training log in `log.csv`.

## Limits

{chr(10).join(textwrap.fill(each, 115) for each in limits)}
"""


def _rows(figures: dict[str, Any], of: str) -> list[str]:
    """Lines of a table: name, mean, interval."""
    rows = []
    for key, text in NAMES.items():
        if key in figures:
            interval = figures.get(f"{key}_interval")
            shown = f"{interval[0]:.2f} to {interval[1]:.2f}" if interval else ""
            rows.append(f"| {text}{of} | {figures[key]:.2f} | {shown} |")
    return rows
