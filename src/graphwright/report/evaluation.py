"""A saved model on its task's samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from graphwright.tasks.coloring import ColoringDataset, Split
from graphwright.training.assembly import coloring_config, loss_settings
from graphwright.training.evaluation import Evaluation, evaluate_predictor
from graphwright.training.saved_model import SavedModel


@dataclass(frozen=True, eq=False)
class Evaluated:
    """An evaluation and the data set that it was made on."""

    model: SavedModel
    data: ColoringDataset
    evaluation: Evaluation


def unseen(count: int) -> None:
    """Progress that nobody watches."""


def evaluate_saved(
    model: SavedModel, split: Split, seed: int | None, samples: int, advance: Callable[[int], None] = unseen
) -> Evaluated:
    """The first `samples` of a split, of the model's own data or of fresh data under another seed."""
    task = model.run.task
    data = ColoringDataset(coloring_config(task), split, task.seed if seed is None else seed)
    if samples > len(data):
        raise ValueError(f"the {split} split has {len(data)} samples, not {samples}")
    evaluation = evaluate_predictor(
        model.predictor, data, range(samples), model.vocabulary, loss_settings(model.run.loss), advance=advance
    )
    return Evaluated(model, data, evaluation)
