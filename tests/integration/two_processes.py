"""Two processes at once, started by Fabric: `two_processes.py FOLDER`. What they find goes into the folder."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from lightning.fabric import Fabric
from safetensors.torch import save_file
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))
from graphwright.settings import Run
from graphwright.tasks.coloring import ColoringDataset
from graphwright.training import TrainingModel, build, loop, train
from graphwright.training.schedule import StepOrder
from tiny import WITH_STATE, tiny_settings

CASES: dict[str, dict[str, Any]] = {
    "learned": {"kind": "learned"},
    "with state": WITH_STATE,
    "mirror": {"kind": "mirror"},
}
PRECISIONS = ("32-true", "bf16-mixed")
STEPS = 3
"""Gradients of this many steps, so that a matcher is seen with a probe, without one, and with one again."""


def case(name: str) -> Run:
    """Without anything random, which each process would draw for itself."""
    return tiny_settings(matching=CASES[name] | {"random_signs": False}, train={"batch_size": 8})


def gradients(
    run: Run, wrap: Callable[[TrainingModel], Any], backward: Callable[[Tensor], None], rank: int, ranks: int
) -> dict[str, Tensor]:
    """Gradients of a few steps by name, and the matcher's buffers after each, in double precision.

    In single precision sharp plans make rounding errors, which differ between processors, as large as mistakes.
    """
    torch.manual_seed(0)
    model = build(run).double()
    wrapped = wrap(model)
    wrapped.train()
    data = ColoringDataset(run.task.config, "train")
    order = StepOrder(len(data), run.train.batch_size, 0, rank=rank, ranks=ranks)
    found = {}
    for step, (batch, _) in enumerate(zip(order, range(STEPS), strict=False)):
        images, target = data.collate([data[index] for index in batch])
        model.zero_grad()
        result = wrapped(images.double(), target.mask, target.node_labels, target.edge_labels)
        backward(result.loss)
        for name, parameter in model.named_parameters():
            found[f"{step}.{name}"] = parameter.grad.clone()
        for name, buffer in model.named_buffers():
            found[f"{step}.{name}"] = buffer.double().clone()
    return found


def training(devices: int, **options: Any) -> Run:
    """A run in which everything is random that can be."""
    return tiny_settings(
        model={"dropout": 0.2},
        matching=WITH_STATE,
        train={"steps": 6, "log_every": 4, "validate_every": 4, "devices": str(devices)}
        | {"averaging": 0.9, "optimizer": "muon"}
        | options,
    )


def interrupt_second_process_at(step: int, rank: int) -> Callable[..., Any]:
    """One process alone is asked to stop, in the middle of a step; both must, after the same one."""
    gradient = loop.Session._gradient

    def interrupted(session: Any, *tensors: Any) -> Any:
        if rank == 1 and session.progress.step == step - 1:
            os.kill(os.getpid(), signal.SIGINT)
        return gradient(session, *tensors)

    loop.Session._gradient = interrupted
    return gradient


def main(folder: Path) -> None:
    """Everything that needs two processes, in one go: starting them takes longest."""
    fabric = Fabric(accelerator="cpu", devices=2)
    fabric.launch()
    rank = fabric.global_rank
    for name in CASES:
        found = gradients(case(name), fabric.setup, fabric.backward, rank, 2)
        save_file(found, folder / f"{name}-{rank}.safetensors")
    for precision in PRECISIONS:
        facts = interrupted_and_resumed(fabric, folder / precision, precision)
        (folder / precision / f"facts-{rank}.json").write_text(json.dumps(facts))


def interrupted_and_resumed(fabric: Fabric, folder: Path, precision: str) -> dict[str, Any]:
    """A run straight on, and one that is interrupted and goes on; what this process knows of them."""
    run = training(2, precision=precision)
    trained = train(run, folder / "straight")
    before = interrupt_second_process_at(3, fabric.global_rank)
    try:
        train(run, folder / "interrupted")
        interrupted = False
    except KeyboardInterrupt:
        interrupted = True
    loop.Session._gradient = before
    fabric.barrier()
    note = json.loads((folder / "interrupted" / "checkpoints" / "last.json").read_text())
    fabric.barrier()
    torch.manual_seed(99)
    resumed = train(run, folder / "interrupted", resume=True)
    return {
        "interrupted": interrupted,
        "at": note["facts"]["progress"]["step"],
        "steps": [trained.progress.step, resumed.progress.step],
        "metrics": trained.metrics == resumed.metrics,
        "world": fabric.world_size,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
