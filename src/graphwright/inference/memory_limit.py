"""Whether a model fits into the memory, asked before any of it is taken."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from graphwright.settings import Run
from graphwright.tasks import task_of

WEIGHT = 4
"""Bytes of a weight while it is used."""
MEMORY_FILE = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
DEPTHS = ("layers", "blocks")
"""How settings end that say how many layers a part has."""
ORDINARY = 250_000_000
"""Weights that every machine has room for: a gigabyte."""


class TooLargeError(ValueError):
    """Something that does not fit into the memory that is free."""


def free_memory(device: torch.device | None = None) -> int | None:
    """Bytes that this process can still take: what the system, its container and its own limit leave, or what an
    accelerator has; None where nothing tells.
    """
    if device is not None and device.type == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    return min(_limits(), default=None)


def _limits() -> Iterator[int]:
    free = _system_memory()
    if free is not None:
        yield free
    try:
        most = int((CGROUP / "memory.max").read_text())
        yield max(0, most - int((CGROUP / "memory.current").read_text()) + _reclaimable())
    except (OSError, ValueError):  # no container, or one without a limit
        pass
    try:
        import resource

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most != resource.RLIM_INFINITY:
            yield max(0, most - int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE"))
    except (ImportError, OSError, ValueError):
        pass


def _system_memory() -> int | None:
    """What programs can get without anything else being swapped out, and the swap that is free."""
    try:
        lines = dict(line.split(":", 1) for line in MEMORY_FILE.read_text().splitlines())
        return 1024 * sum(int(lines[name].split()[0]) for name in ("MemAvailable", "SwapFree"))
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _reclaimable() -> int:
    """Bytes of a container that hold copies of files and are given up when anybody asks."""
    lines = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
    return int(lines.get("inactive_file", 0))


def count_weights(run: Run, build: Callable[[Run], nn.Module]) -> int:
    """Weights of the model that a run's settings describe, which is built without its numbers.

    Layers are alike: what one more adds is counted, not a hundred thousand of them.
    """
    depths: dict[tuple[str, str], int] = {
        (section, name): value
        for section in ("model", "matching")
        for name, value in getattr(run, section).model_dump().items()
        if name.endswith(DEPTHS)
    }
    flat = dict.fromkeys(depths, 1)
    base = _count(run, flat, build)
    deeper = sum(
        (value - 1) * (_count(run, flat | {which: 2}, build) - base)
        for which, value in depths.items()
        if value != 1
    )
    return base + deeper


def _count(run: Run, depths: dict[tuple[str, str], int], build: Callable[[Run], nn.Module]) -> int:
    """Weights of the model with so many layers in each part."""
    changes: dict[str, dict[str, Any]] = {"model": {"encoder_weights": None}, "matching": {}}
    for (section, name), value in depths.items():
        changes[section][name] = value
    sections = {name: getattr(run, name).model_copy(update=update) for name, update in changes.items()}
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        model = build(run.model_copy(update=sections))
    return sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))


def refuse_large_model(run: Run, build: Callable[[Run], nn.Module], copies: int, what: str) -> None:
    """Refuse a model of which so many copies do not fit; `what` begins the sentence, as in "predicting takes"."""
    if is_ordinary(run):
        return
    weights = count_weights(run, build)
    refuse_larger(
        WEIGHT * copies * weights,
        f"this model has {weights:,} weights: {what}",
        "try a smaller model.width, model.encoder_width or model.layers",
    )


def is_ordinary(run: Run) -> bool:
    """Whether a model is of a size that need not be counted.

    The first tensor without numbers makes torch import for a second.
    """
    return _most_weights(run) < ORDINARY


def _most_weights(run: Run) -> int:
    """More weights than a run's model has, by its widest part and its number of layers."""
    sizes = {
        name: value
        for section in (run.model, run.matching)
        for name, value in section.model_dump().items()
        if type(value) is int
    }
    known = sizes.pop("known_graphs", 0)
    layers = sum(value for name, value in sizes.items() if name.endswith(DEPTHS))
    widest = max(task_of(run.task).capacity, *sizes.values())
    return 32 * (layers + 2) * widest**2 + known * widest


def refuse_larger(needed: int, what: str, advice: str) -> None:
    """Refuse what needs more bytes than are free."""
    free = free_memory()
    if free is not None and needed > free:
        raise TooLargeError(
            f"{what} at least {bytes_in_words(needed)} of memory, and {bytes_in_words(free)} are free: {advice}"
        )


def bytes_in_words(size: int) -> str:
    """A number of bytes for a person."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
