"""Everything that a run is at one moment, as a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from graphwright.inference.checkpoint import Checkpoint, CheckpointError
from graphwright.training.optimizer import WeightAverage


@dataclass
class Progress:
    """How far a run has come."""

    step: int = 0
    seconds: float = 0.0
    """Training time so far, over all sessions."""
    best: float | None = None
    """Best validation metric."""
    stale: int = 0
    """Validations since then."""
    validated: int = 0
    """Step of the last validation."""
    metrics: dict[str, Any] = field(default_factory=dict)
    """The last validation's figures."""
    skipped: int = 0
    """Steps whose gradient was not finite, and which changed nothing."""
    skipped_in_row: int = 0
    """How many of them were the last ones."""
    usual_loss: float | None = None
    """A running mean, by which a leap of the loss is told."""


def capture(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    progress: Progress,
    generators: Tensor,
    facts: Mapping[str, Any],
    average: WeightAverage | None = None,
) -> Checkpoint:
    """Weights and their running mean, optimiser, progress, random states (ranks, bytes), and facts beside them."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    if average is not None:
        tensors |= {f"average.{name}": tensor for name, tensor in average.state_dict().items()}
    names = _parameter_names(model, optimizer)
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            tensors[f"optimizer.{names[parameter]}.{key}"] = torch.as_tensor(value)
    tensors["random"] = generators
    return Checkpoint(tensors, {"progress": asdict(progress), **facts})


def restore(
    checkpoint: Checkpoint,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    rank: int = 0,
    device: torch.device | None = None,
    average: WeightAverage | None = None,
) -> Progress:
    """Put a captured state back; returns how far it had come."""
    progress, random = progress_of(checkpoint), checkpoint.tensors.get("random")
    if random is None or random.dtype != torch.uint8 or random.ndim != 2:
        raise CheckpointError("the checkpoint holds a model, not a run that can go on: no random states")
    load_weights(checkpoint, "model.", model)
    if average is not None:
        load_weights(checkpoint, "average.", average)
    for parameter, name in _parameter_names(model, optimizer).items():
        prefix = f"optimizer.{name}."
        state = {
            key.removeprefix(prefix): value
            for key, value in checkpoint.tensors.items()
            if key.startswith(prefix) and "." not in key.removeprefix(prefix)
        }
        if state:
            _refuse_misfit(name, parameter, state)
            # Adam's step counter lives on the host; the moments beside the parameter, be it a single number.
            optimizer.state[parameter] = {
                key: value.clone() if key == "step" else value.to(parameter.device, copy=True)
                for key, value in state.items()
            }
    # A rank that was not there when the checkpoint was written goes on with its own seed.
    if rank < len(random):
        set_random_state(random[rank], device)
    return progress


def progress_of(checkpoint: Checkpoint) -> Progress:
    """How far the run of a checkpoint had come; whoever wrote it may have meant harm."""
    try:
        progress = TypeAdapter(Progress).validate_python(checkpoint.facts["progress"])
    except (KeyError, ValidationError) as error:
        raise CheckpointError(f"the checkpoint holds a model, not a run that can go on: {error!r}") from error
    if progress.step < 0 or not 0 <= progress.seconds < math.inf:
        raise CheckpointError(f"no run has come to step {progress.step} in {progress.seconds} seconds")
    return progress


def load_weights(checkpoint: Checkpoint, prefix: str, model: nn.Module) -> None:
    """Put the weights whose names begin with the prefix back, refusing any that do not fit."""
    weights = {
        name.removeprefix(prefix): value for name, value in checkpoint.tensors.items() if name.startswith(prefix)
    }
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(f"the checkpoint does not fit the model: {error}") from error


def _refuse_misfit(name: str, parameter: Tensor, state: Mapping[str, Tensor]) -> None:
    """What an optimiser keeps of a weight is a number, or of the weight's shape."""
    for key, value in state.items():
        if value.ndim and value.shape != parameter.shape:
            raise CheckpointError(
                f"the checkpoint does not fit the model: optimizer.{name}.{key} is {tuple(value.shape)}, "
                f"the weight {tuple(parameter.shape)}"
            )


def random_state(device: torch.device | None = None) -> Tensor:
    """(bytes,) uint8: where torch's random numbers stand, on the host and on the device that draws dropout."""
    host = torch.get_rng_state()
    if device is None or device.type == "cpu":
        return host
    return torch.cat([host, torch.get_device_module(device).get_rng_state(device).cpu()])


def set_random_state(state: Tensor, device: torch.device | None = None) -> None:
    """Draw the same random numbers again from here on."""
    length = len(torch.get_rng_state())
    torch.set_rng_state(state[:length].clone())
    # A state saved on the host alone says nothing of another device.
    if device is not None and device.type != "cpu" and len(state) > length:
        torch.get_device_module(device).set_rng_state(state[length:].clone(), device)


def _parameter_names(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[Tensor, str]:
    held = {parameter for group in optimizer.param_groups for parameter in group["params"]}
    return {parameter: name for name, parameter in model.named_parameters() if parameter in held}
