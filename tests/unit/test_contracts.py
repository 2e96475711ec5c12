"""Every task and every encoder that comes along keeps the contracts that others are held to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from graphwright.settings import ENCODERS, TASKS
from graphwright.tasks import Task, task_of
from graphwright.tasks.coloring import ColoringTask
from graphwright.tasks.molecules import FingerprintTask
from graphwright.tasks.spectra import SpectrumTask
from graphwright.tasks.table import TableTask
from graphwright.testing import check_encoder, check_task
from tiny_molecules import tiny_file
from tiny_spectra import row_of, write_mgf, write_spectra
from tiny_tables import rows, write_jsonl

Made = tuple[Task, Path]
"""A task on small data, and a file of inputs for it."""


def coloring(folder: Path) -> Made:
    # A smaller picture is none for SegFormer.
    task = task_of(ColoringTask(capacity=5, min_size=3, samples=400, side=32))
    picture = (255 * task.data("test", seed=1)[0].image.transpose(1, 2, 0)).round().astype(np.uint8)
    Image.fromarray(picture).save(folder / "picture.png")
    return task, folder / "picture.png"


def fingerprint(folder: Path) -> Made:
    inputs = folder / "some.smi"
    inputs.write_text("CCO\nnot_smiles\nc1ccccc1\n")
    return task_of(FingerprintTask(data=str(tiny_file(folder)), capacity=9)), inputs


def spectrum(folder: Path) -> Made:
    data = write_spectra(folder / "spectra.parquet")
    inputs = write_mgf(folder / "some.mgf", [row_of("Cc1ccccc1", "test", at) for at in range(2)], formula=True)
    return task_of(SpectrumTask(data=str(data), capacity=8)), inputs


def table(name: str, change: Callable[[int], dict[str, Any]]) -> Callable[[Path], Made]:
    def made(folder: Path) -> Made:
        given = rows(60, change)
        if name != "points":
            for row in given:
                del row["points"]
        data = write_jsonl(folder / f"{name}.jsonl", given)
        return task_of(TableTask(data=str(data))), write_jsonl(folder / "some.jsonl", given[:3])

    return made


def words(at: int) -> dict[str, Any]:
    return {"words": ["end", *["inner"] * (1 + at % 3), "end"]}


def numbers(at: int) -> dict[str, Any]:
    return {"length": 3.0 + at % 3, "noise": float(np.sin(at))}


MADE: dict[str, Callable[[Path], Made]] = {
    "coloring": coloring,
    "fingerprint": fingerprint,
    "spectrum": spectrum,
    "table of sets": table("points", lambda _: {}),
    "table of tokens": table("words", words),
    "table of vectors": table("numbers", numbers),
}
READ_BY = {
    "fingerprint": "fingerprint",
    "vector": "table of vectors",
    "tokens": "table of tokens",
    "set": "table of sets",
    "columns": "table of sets",
    "cnn": "coloring",
    "segformer": "coloring",
    "spectrum": "spectrum",
}
"""A task that each encoder reads."""


def test_all_tasks_and_encoders_are_looked_at():
    assert {name.partition(" ")[0] for name in MADE} == set(TASKS.names())
    assert set(READ_BY) == set(ENCODERS.names())


@pytest.mark.parametrize("name", MADE)
def test_a_task_that_comes_along(name, tmp_path):
    check_task(*MADE[name](tmp_path))


@pytest.mark.parametrize("name", READ_BY)
def test_an_encoder_that_comes_along(name, tmp_path):
    check_encoder(name, MADE[READ_BY[name]](tmp_path)[0])
