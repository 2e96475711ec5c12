"""A model to hand on: weights, record and card."""

from __future__ import annotations

import json
from pathlib import Path

from graphwright.metrics import Report
from graphwright.report.evaluation import evaluate_saved
from graphwright.report.page import NAMES
from graphwright.report.record import run_record
from graphwright.training.saved_model import export_model, load_model


def write_model(run_folder: Path, out: Path, samples: int) -> Report:
    """Write a run's best predictor with its record and a card; returns its figures on the test split."""
    model = load_model(str(run_folder))
    result = evaluate_saved(model, "test", None, samples)
    figures = result.evaluation.report.to_json()
    record = run_record(model, result.data) | {"test": figures}
    export_model(str(run_folder), out, {"test": figures})
    (out / "record.json").write_text(json.dumps(record, indent=2) + "\n")
    log = run_folder / "log.csv"
    if log.exists():
        (out / "log.csv").write_bytes(log.read_bytes())
    (out / "README.md").write_text(_card(out.name, record))
    return result.evaluation.report


def _card(name: str, record: dict[str, object]) -> str:
    settings, figures = record["settings"], record["test"]
    assert isinstance(settings, dict)
    assert isinstance(figures, dict)
    progress = record["progress"] or {}
    assert isinstance(progress, dict)
    task, matching, hardware = settings["task"], settings["matching"], record["hardware"]
    rows = []
    for key, text in NAMES.items():
        interval = figures.get(f"{key}_interval")
        shown = f"{interval[0]:.2f} to {interval[1]:.2f}" if interval else ""
        rows.append(f"| {text} | {figures[key]:.2f} | {shown} |")
    return f"""# {name}

From a picture of {task["min_size"]} to {task["capacity"]} coloured regions to the graph of which touch
(the Coloring task). A {settings["model"]["encoder"]} encoder and a Transformer decoder, trained with the
`{matching["kind"]}` matcher.

```
graphwright evaluate {name}
graphwright predict {name} picture.png
```

## Figures

The first {figures["samples"]} samples of the test split, none of them seen in training or selection.

| | mean | 95 % interval |
|---|---|---|
{chr(10).join(rows)}

## How it came about

{progress.get("step", 0):,} steps of {settings["train"]["batch_size"]} samples up to the best validation, in
{progress.get("seconds", 0) / 60:.0f} minutes, seed {settings["train"]["seed"]}. Hardware: {json.dumps(hardware)}.
Settings, commit and data hash are in `record.json`, the training log in `log.csv`.

## Limits

Pictures must be like the task's: flat regions in its four colours, up to {task["capacity"]} of them. On anything
else it still answers, and is wrong. The confidence that `predict` prints takes the decisions as independent; it
ranks predictions, it is not calibrated.
"""
