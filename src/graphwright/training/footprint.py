"""What a training step needs: weights, memory, and how many samples of a batch fit at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphwright.graphs import GraphBatch
from graphwright.inference.memory_limit import refuse_large_model
from graphwright.models import Inputs
from graphwright.settings import OptimizerKind, Run
from graphwright.tasks import resolve
from graphwright.training.assembly import TrainingModel, build, build_network, training_data

FEW, MORE = 2, 4
"""Samples of the two steps whose difference is what one sample keeps."""
USABLE = 0.7
"""Share of the free memory that a step may take: data and what a step only holds for a moment have the rest."""


@dataclass(frozen=True)
class Footprint:
    """Parameters of predictor and matcher; bytes that a run holds whatever its batch, and that a step keeps for
    its way back for every sample that goes through the model at a time."""

    predictor: int
    matcher: int
    fixed: int
    per_sample: float

    def bytes(self, samples: int) -> float:
        """What a step holds with so many samples at a time."""
        return self.fixed + self.per_sample * samples

    def parts(self, samples: int, available: float) -> int | None:
        """The fewest parts in which a batch fits into so many bytes; None where one sample does not."""
        room = USABLE * available - self.fixed
        at_a_time = int(room // self.per_sample)
        return -(-samples // at_a_time) if at_a_time >= 1 else None


def footprint(run: Run) -> Footprint:
    """Measured on the processor, by what torch saves for the backward pass of two small steps on real samples."""
    plan = resolve(run)
    refuse_large_model(plan.run, build_network, 1, "it takes")
    model = build(plan.run, plan.library).train()
    data = training_data(plan.run)
    few, more = (
        saved_bytes(model, *data.collate([data[index % len(data), 0] for index in range(count)]))
        for count in (FEW, MORE)
    )
    predictor, matcher = (_count(part) for part in (model.predictor, model.matcher))
    # Weights and their gradients; AdamW keeps two numbers for each, Muon's matrices one; a running mean is a copy.
    copies = 4 if run.train.optimizer is OptimizerKind.ADAMW else 3
    fixed = 4 * copies * (predictor + matcher) + (4 * predictor if run.train.averaging else 0)
    return Footprint(predictor, matcher, fixed, (more - few) / (MORE - FEW))


def _count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def saved_bytes(model: TrainingModel, inputs: Inputs, target: GraphBatch) -> int:
    """Size of all tensors that a step keeps between its forward and its backward pass, each once."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    saved: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        # Kept alive, so that no two of them ever had one address.
        saved.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(inputs, *target.tensors)
    return sum(tensor.untyped_storage().nbytes() for at, tensor in saved.items() if at not in weights)
