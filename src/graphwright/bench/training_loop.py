"""The real training loop beside the forward passes, backward passes and optimiser steps inside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from graphwright.bench.row import Row
from graphwright.graphs import GraphBatch
from graphwright.models import Inputs
from graphwright.settings import Run
from graphwright.tasks import task_of
from graphwright.training.assembly import StepResult
from graphwright.training.console import Display
from graphwright.training.loop import Session

WARM_UP = 3
"""Steps before the clock counts: the data workers start, memory is taken."""


def measure_loop(run: Run, threads: int, steps: int) -> Row:
    """Milliseconds per sample of the whole loop, and of what it cannot do without; `loop_overhead` is the rest.

    Everything in a step counts, data, log lines and bookkeeping included; validations and checkpoints do not,
    since how often they come is a setting.
    """
    short = run.train.model_copy(
        update={
            "steps": WARM_UP + steps,
            "minutes": None,
            "epochs": None,
            "threads": threads,
            "validate_every": WARM_UP + steps,
            "validation_samples": 1,
        }
    )
    with TemporaryDirectory() as folder:
        session = _TimedSession(run.model_copy(update={"train": short}), Path(folder) / "run", Display.silent())
        session.train(resume=False)
    samples = steps * short.batch_size
    whole, inside = (1000 * sum(times[WARM_UP:]) / samples for times in (session.whole, session.inside))
    extras = {"samples_per_second": 1000 / whole, "loop_overhead": 1 - inside / whole}
    figures = (whole, "forward, backward, optimiser in it", inside)
    return Row("loop", task_of(run.task).capacity, short.batch_size, threads, *figures, extras=extras)


class _TimedSession(Session):
    """The session of `training.train` with a clock on its steps."""

    def __init__(self, run: Run, folder: Path, display: Display) -> None:
        super().__init__(run, folder, display)
        self.whole: list[float] = []
        """Seconds of every step, from the request for its data to its log line."""
        self.inside: list[float] = []
        """Seconds of every step in forward, backward (with clipping) and optimiser."""
        optimizer = self.optimizer.optimizer
        optimizer.register_step_pre_hook(lambda *_: self._count(-perf_counter()))
        optimizer.register_step_post_hook(lambda *_: self._count(perf_counter()))

    def _step(self, batches: Iterator[tuple[Inputs, GraphBatch]]) -> bool:
        self.inside.append(0.0)
        start = perf_counter()
        stop = super()._step(batches)
        self.whole.append(perf_counter() - start)
        return stop

    def _gradient(self, inputs: Inputs, target: GraphBatch) -> tuple[StepResult, float]:
        start = perf_counter()
        result = super()._gradient(inputs, target)
        self._count(perf_counter() - start)
        return result

    def _count(self, seconds: float) -> None:
        self.inside[-1] += seconds
