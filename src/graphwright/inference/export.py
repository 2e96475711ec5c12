"""A model to hand on: weights, card, and the record of how its figures came about."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import textwrap
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphwright import __version__
from graphwright.files import write_json, write_text
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.checkpoint import Checkpoint, compacted
from graphwright.inference.decoders import decoder_named
from graphwright.inference.evaluate import Evaluated, evaluate_saved
from graphwright.inference.model import MODEL_NAME, PREDICTOR, SavedModel, load_model, log_beside
from graphwright.known import Library, Memory, Recogniser
from graphwright.known.decoding import temperature
from graphwright.known.library import check_recognised
from graphwright.models import inputs_to
from graphwright.tasks import Samples


def provenance() -> dict[str, Any]:
    """Commit and hardware, for a record."""
    return {"commit": commit(), "hardware": hardware()}


def commit() -> str | None:
    """The commit that the code stands at, with "+" if it was changed since; None outside a checkout."""
    here = Path(__file__).parent
    try:
        name = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--", ":/src"], cwd=here, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return name + ("+" if changed.strip() else "")


def hardware() -> dict[str, Any]:
    """Processor, cores, threads used, accelerator."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def _processor() -> str:
    try:
        return processor_name(Path("/proc/cpuinfo").read_text()) or platform.machine()
    except OSError:
        return platform.processor() or platform.machine()


def processor_name(information: str) -> str:
    """The first processor of a /proc/cpuinfo, with its family and model where it says them.

    A virtual machine's "AMD EPYC" is any of several generations, of which one is twice as fast as another.
    """
    said = dict[str, str]()
    for line in information.splitlines():
        name, _, value = line.partition(":")
        said.setdefault(name.strip(), value.strip())
    told = [f"{name.rpartition(' ')[2]} {said[name]}" for name in ("cpu family", "model") if name in said]
    return ", ".join([said["model name"], *told]) if "model name" in said else ""


def sessions_of(facts: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Commit and hardware of every session of a training, from a checkpoint's facts; older ones say sittings."""
    sessions: list[dict[str, Any]] | None = facts.get("sessions", facts.get("sittings"))
    return sessions


def run_record(model: SavedModel, data: Samples) -> dict[str, Any]:
    """Everything needed to repeat a run, and to know whether its data were the same.

    trained: commit and hardware of every session of the training, and the step that it began with; those beside it
    are of the code that made the record.
    """
    return {
        "settings": model.run.model_dump(mode="json"),
        "progress": model.facts.get("progress"),
        "trained": sessions_of(model.facts),
        "data_sha256": data.digest(),
        **provenance(),
        "graphwright": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


INDEPENDENT = (
    "The confidence that `predict` prints takes the decisions as independent; it ranks predictions and is not "
    "calibrated."
)
VIEWED = (
    "The confidence that `predict` prints is the geometric mean of what several views of the input give the "
    "graph, each taking its decisions as independent; it ranks predictions and is not calibrated."
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
CALIBRATING, AT_ONCE = 4000, 128
"""Validation samples by which confidence is calibrated, where there are so many; and those predicted together."""
KEPT = ("settings", "progress", "sessions")
"""Facts of a run that go along with its model."""


def write_model(source: Path, out: Path, samples: int | None, decode: str) -> Evaluated:
    """Write a predictor with its record and a card; returns its figures on the test split.

    source: whatever `load_model` takes: of a run's folder the best checkpoint counts.
    The figures are those of the weights as written, with the decoder that the model is handed on with.
    """
    model = load_model(str(source))
    decoder = decoder_named(decode)
    decoder.check(model.task)
    facts: dict[str, object] = {"decoder": decode}
    known = (model.known.library, model.memory) if decoder.from_known else ()
    if decoder.from_known and model.predictor.recogniser is not None:
        facts["temperature"] = calibrated_temperature(model)
    export_model(str(source), out, facts, *known)
    result = evaluate_saved(load_model(str(out)), samples=samples, at_most=CARD_SAMPLES)
    figures = result.figures()
    record = run_record(model, result.data) | facts | {"test": figures}
    export_model(str(source), out, facts | {"test": figures}, *known)
    write_json(out / "record.json", record)
    log = log_beside(str(source))
    if log.exists():
        write_text(out / "log.csv", log.read_text(encoding="utf-8"))
    write_text(out / "README.md", _card(out.name, record, result.titles(), model))
    return result


def _card(name: str, record: dict[str, object], titles: Mapping[str, str], model: SavedModel) -> str:
    settings, figures = record["settings"], record["test"]
    assert isinstance(settings, dict)
    assert isinstance(figures, dict)
    progress = record["progress"] or {}
    assert isinstance(progress, dict)
    sessions = record["trained"] or [record]
    assert isinstance(sessions, list)
    matching, hardware = settings["matching"], sessions[-1]["hardware"]
    rows = _rows(figures, titles, "")
    if "per_molecule" in figures:
        rows += _rows(figures["per_molecule"], titles, ", mean over molecules")
    decoder = decoder_named(str(record["decoder"]))
    alone = VIEWED if decoder.from_views else INDEPENDENT
    limits = [model.task.limits, RECOGNISED if "temperature" in record else alone]
    if decoder.from_known and model.memory is not None:
        limits.append(REMEMBERED.format(count=len(model.memory.indices)))
    return f"""# {name}

{textwrap.fill(model.task.summary, 115)}
A {settings["model"]["encoder"]} encoder and a Transformer decoder, trained with the `{matching["kind"]}` matcher.

```
graphwright evaluate {name}
graphwright predict {name} {model.task.example_file}
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


def _rows(figures: dict[str, Any], titles: Mapping[str, str], of: str) -> list[str]:
    """Lines of a table: name, mean, interval."""
    rows = []
    for key, text in titles.items():
        if figures.get(key) is not None:
            interval = figures.get(f"{key}_interval")
            shown = f"{interval[0]:.2f} to {interval[1]:.2f}" if interval else ""
            rows.append(f"| {text}{of} | {figures[key]:.2f} | {shown} |")
    return rows


def export_model(
    source: str,
    folder: Path,
    record: Mapping[str, Any],
    library: Library | None = None,
    memory: Memory | None = None,
) -> None:
    """Write a run's predictor alone, compacted, with what it knows and remembers and how it came about."""
    _write(load_model(source), folder, record, library, memory)


def save_model(model: SavedModel, folder: Path, decode: str) -> None:
    """Write a model as `export_model` does, without measuring it anew; figures that it came with go along."""
    decoder = decoder_named(decode)
    decoder.check(model.task)
    handed = decoder.from_known
    # Figures are of the decoder that they were made with.
    same = ("temperature", "test") if decode == model.decode else ("temperature",)
    record = {name: model.facts[name] for name in same if name in model.facts} | {"decoder": decode}
    _write(model, folder, record, model.known.library if handed else None, model.memory if handed else None)


def _write(
    model: SavedModel, folder: Path, record: Mapping[str, Any], library: Library | None, memory: Memory | None
) -> None:
    predictor = deepcopy(model.predictor)  # a model that is saved goes on as it is
    if isinstance(predictor.recogniser, Recogniser):
        predictor.recogniser.graphs.fold()
    weights = {PREDICTOR + name: tensor for name, tensor in predictor.state_dict().items()}
    tensors = compacted(weights) | ({} if library is None else library.packed())
    tensors |= {} if memory is None else memory.packed()
    facts = {**model.facts, "sessions": sessions_of(model.facts)}
    kept = {name: facts[name] for name in KEPT if facts.get(name) is not None}
    checkpoints.save(folder / MODEL_NAME, Checkpoint(tensors, {**kept, **record}))


@torch.no_grad()
def calibrated_temperature(model: SavedModel) -> float:
    """The temperature at which the mean confidence is the share of validation samples that are right.

    One number for all. A model is too sure of what it knows, and knows nothing of graphs that it has not met; the
    order of candidates stays as it is.
    """
    data, library, predict = (
        model.task.data("validation"),
        model.known.library,
        model.answering("known"),
    )
    logits: list[NDArray[np.float64]] = []
    right = []
    for start in range(0, min(len(data), CALIBRATING), AT_ONCE):
        chosen = range(start, min(len(data), CALIBRATING, start + AT_ONCE))
        inputs, target = data.batch(chosen)
        known = predict(inputs_to(inputs, model.device)).graphs.known
        if known is None:
            raise ValueError("a model that recognises no graphs has no confidence in them")
        check_recognised(known, len(library))
        bounds = data.bounds(chosen) or [None] * len(chosen)
        for row, bound, graph in zip(known.cpu().double().numpy(), bounds, target.graphs(), strict=True):
            allowed = library.contents.within(bound, model.vocabulary)
            if len(allowed):
                logits.append(row[allowed])
                right.append(int(allowed[row[allowed].argmax()]) == library.distinct.find(graph))
    return temperature(logits, float(np.mean(right))) if right else 1.0
