"""How many processes share a batch on a machine without accelerators."""

from __future__ import annotations

import os

from graphwright.settings import CORES, Accelerator, Run


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_cores(run: Run, available: int) -> Run:
    """The run with `train.devices cores` in numbers: as many processes as cores, or less, to divide the batch.

    Two processes of one thread each are faster than one of two threads: small products do not fill two threads.
    """
    train = run.train
    if train.devices != CORES:
        return run
    # torchrun has started the processes already.
    asked = int(os.environ.get("LOCAL_WORLD_SIZE", available))
    count = next(count for count in range(asked, 0, -1) if train.batch_size % count == 0)
    threads = train.threads or max(1, available // count)
    found = {"accelerator": Accelerator.CPU, "devices": str(count), "threads": threads}
    return run.model_copy(update={"train": train.model_copy(update=found)})
