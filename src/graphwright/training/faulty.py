"""Steps that go wrong: whether one does, of which samples its batch is, and the batch again, sample by sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.checkpoint import CheckpointError
from graphwright.models import Inputs
from graphwright.settings import Run, SettingsError, Train
from graphwright.tasks import Samples
from graphwright.training.assembly import build, training_data
from graphwright.training.schedule import order_of
from graphwright.training.state import load_weights
from graphwright.transport.checks import NotFiniteError

LEAP = 4.0
"""A loss that is so many times the usual one is told."""
SETTLED = 50
"""Steps before which no loss is usual."""
MEMORY = 0.98
"""Share of the running mean that is kept at each step."""


def leaps(loss: float, usual: float | None, step: int) -> bool:
    """Whether a step's loss is far from the usual one."""
    return not math.isfinite(loss) or (usual is not None and step >= SETTLED and loss > LEAP * usual)


def usual_after(usual: float | None, loss: float) -> float:
    """The running mean after one more step."""
    return loss if usual is None else MEMORY * usual + (1 - MEMORY) * loss


def batch_indices(train: Train, data: Samples, step: int) -> list[tuple[int, int]]:
    """(index, epoch) of the samples that a step, counted from 1 as the log does, saw in all processes together."""
    return next(iter(order_of(train, data, first=step - 1)))


def first_bad_input(inputs: Inputs) -> int | None:
    """The first sample of a batch whose input holds NaN or infinity where that does not stand for unknown.

    Inputs of several tensors name those where it does in `nan_is_unknown`.
    """
    if isinstance(inputs, Tensor):
        tensors = [inputs]
    else:
        names = getattr(inputs, "_fields", [""] * len(inputs))
        unknown = getattr(inputs, "nan_is_unknown", ())
        tensors = [each for name, each in zip(names, inputs, strict=True) if name not in unknown]
    for tensor in tensors:
        # A sum is finite only if all is, and is faster than to ask each; a sum that overflows is looked into.
        if tensor.is_floating_point() and tensor.numel() and not math.isfinite(float(tensor.sum())):
            bad = ~torch.isfinite(tensor).reshape(len(tensor), -1).all(1)
            if bad.any():
                return int(bad.nonzero()[0])
    return None


@dataclass(frozen=True)
class ReplayedSample:
    """One sample of a batch under a checkpoint's weights, without dropout.

    loss and gradient_norm are NaN where the fault says that there are none.
    """

    index: int
    epoch: int
    nodes: int
    edges: int
    loss: float
    gradient_norm: float
    fault: str = ""


@dataclass(frozen=True)
class ReplayedBatch:
    """The batch of a step; weights_of: the step of the checkpoint that it was replayed with."""

    step: int
    weights_of: int
    samples: list[ReplayedSample]


def replay(folder: Path, step: int) -> ReplayedBatch:
    """The samples that a step of a run saw, each by itself, with the weights of the run's last checkpoint."""
    if step < 1:
        raise SettingsError(f"steps are counted from 1, got {step}")
    saved = checkpoints.load(folder / "checkpoints" / "last")
    try:
        run, reached = Run.model_validate(saved.facts["settings"]), int(saved.facts["progress"]["step"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder / 'checkpoints' / 'last.json'} holds no run: {error}") from error
    data = training_data(run)
    torch.manual_seed(run.train.seed)
    model = build(run)
    load_weights(saved, "model.", model)
    model.eval()

    def replayed(index: int, epoch: int) -> ReplayedSample:
        sample = data[(index, epoch) if run.train.augment else index]
        inputs, target = data.collate([sample])
        size, edges = int(target.mask.sum()), len(sample.graph.edges)
        if first_bad_input(inputs) is not None:
            return ReplayedSample(index, epoch, size, edges, math.nan, math.nan, "the input is not finite")
        model.zero_grad()
        try:
            result = model(inputs, *target.tensors)
            result.loss.backward()
        except NotFiniteError as error:
            return ReplayedSample(index, epoch, size, edges, math.nan, math.nan, str(error))
        gradients = [each.grad.norm() for each in model.parameters() if each.grad is not None]
        norm = float(torch.stack(gradients).norm()) if gradients else 0.0
        fault = "" if math.isfinite(norm) else "the gradient is not finite"
        return ReplayedSample(index, epoch, size, edges, float(result.loss.detach()), norm, fault)

    return ReplayedBatch(step, reached, [replayed(*one) for one in batch_indices(run.train, data, step)])
