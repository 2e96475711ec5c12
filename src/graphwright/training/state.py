"""Everything that a run is at one moment, as a checkpoint."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from graphwright.training.checkpoint import Checkpoint, CheckpointError


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


def capture(
    model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress, generators: Tensor, settings: Any
) -> Checkpoint:
    """Weights, optimiser state, progress, and the random state of every rank, (ranks, bytes)."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    names = _parameter_names(model, optimizer)
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            tensors[f"optimizer.{names[parameter]}.{key}"] = torch.as_tensor(value)
    tensors["random"] = generators
    return Checkpoint(tensors, {"progress": asdict(progress), "settings": settings})


def restore(
    checkpoint: Checkpoint, model: nn.Module, optimizer: torch.optim.Optimizer, rank: int
) -> Progress:
    """Put a captured state back; returns how far it had come."""
    load_model(checkpoint, model)
    names = _parameter_names(model, optimizer)
    for parameter, name in names.items():
        prefix = f"optimizer.{name}."
        state = {
            key.removeprefix(prefix): value for key, value in checkpoint.tensors.items() if key.startswith(prefix)
        }
        if state:
            # Adam's step counter lives on the host; the moments beside the parameter.
            optimizer.state[parameter] = {
                key: value.clone() if value.ndim == 0 else value.to(parameter.device) for key, value in state.items()
            }
    random = checkpoint.tensors["random"]
    if rank < len(random):
        torch.set_rng_state(random[rank])
    return Progress(**checkpoint.facts["progress"])


def load_model(checkpoint: Checkpoint, model: nn.Module) -> None:
    """Put the weights back, refusing any that do not fit."""
    weights = {
        name.removeprefix("model."): value for name, value in checkpoint.tensors.items() if name.startswith("model.")
    }
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(f"the checkpoint does not fit the model: {error}") from error


def _parameter_names(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[Tensor, str]:
    held = {parameter for group in optimizer.param_groups for parameter in group["params"]}
    return {parameter: name for name, parameter in model.named_parameters() if parameter in held}
