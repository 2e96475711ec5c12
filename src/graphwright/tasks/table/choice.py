"""What to train a table with where nobody says: chosen from the data, and why."""

from __future__ import annotations

from dataclasses import dataclass

from graphwright.settings import EncoderKind, Override, SlotKind
from graphwright.settings.encoders import OWNING
from graphwright.tasks.split import SPLITS
from graphwright.tasks.table.task import Table
from graphwright.tasks.table.understood import Understood

SHOWN_FAULTS = 3
FEW_ROWS = 2000
"""Below so many training rows a wide model learns them by heart."""
TOKENS_ARE_SLOTS = "slots   every element of an input may be a node: no graph has more nodes than its input"
LARGEST_BATCH, SMALLEST_BATCH = 64, 4


@dataclass(frozen=True)
class Choice:
    """Settings that depend on the data, and lines that say what was chosen and why."""

    overrides: tuple[Override, ...]
    lines: tuple[str, ...]


def choose(table: Table) -> Choice:
    """Width and batch size for a table; capacity, labels and encoder are read off the data in any case."""
    found = table.understood
    found.refuse_too_few()
    rows = len(found.samples["train"])
    width = 128 if rows >= FEW_ROWS else 64
    batch = LARGEST_BATCH
    # Eight batches an epoch at the least: fewer repeat the same joint batches again and again.
    while batch > SMALLEST_BATCH and 8 * batch > rows:
        batch //= 2
    slots = _slots(found)
    values = {
        "model.encoder": str(found.form.kind),
        "model.slots": slots.value,
        "model.layers": 2 if slots is SlotKind.TOKENS else 3,
        "model.encoder_width": width,
        "model.width": width,
        "model.head_width": width,
        "train.batch_size": batch,
        "train.validation_samples": min(500, max(1, len(found.samples["validation"]))),
    }
    lines = [
        f"{found.path}: {found.counts()} rows"
        + ("" if found.by_column else ", split by hash (there is no column split)"),
        f"input   {found.form.described}: encoder {found.form.kind}",
        f"graphs  at most {found.capacity} nodes, as the largest training graph; "
        f"{_count(len(found.vocabulary.nodes), 'node label')}, "
        f"{_count(len(found.vocabulary.edges) - 1, 'edge label')}",
        *([TOKENS_ARE_SLOTS] if slots is SlotKind.TOKENS else []),
        f"model   width {width} and batches of {batch}, for {rows:,} training rows",
        *_faults(found),
    ]
    return Choice(tuple(Override(key, value) for key, value in values.items()), tuple(lines))


def _slots(found: Understood) -> SlotKind:
    """Every element a slot, where it may stand for a node: a set never smaller than its graph."""
    samples = found.samples["train"]
    owning = EncoderKind(found.form.kind) in OWNING
    enough = owning and all(len(sample.value) >= sample.graph.size for sample in samples)
    return SlotKind.TOKENS if enough else SlotKind.LEARNED


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _faults(found: Understood) -> list[str]:
    rejected = found.all_rejected()
    if not rejected:
        return []
    by_split = ", ".join(f"{len(found.rejected[split]):,} {split}" for split in SPLITS)
    more = len(rejected) - SHOWN_FAULTS
    return [
        f"left out {_count(len(rejected), 'unusable row')} ({by_split}):",
        *(f"  {each.detail}" for each in rejected[:SHOWN_FAULTS]),
        *([f"  and {more:,} more: `graphwright data inspect {found.path}` lists them"] if more > 0 else []),
    ]
