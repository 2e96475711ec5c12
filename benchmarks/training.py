"""Whole training steps for every matching, what the plan costs in them, and what the loop adds to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import torch

from benchmarks.measurement import Row, interleaved_milliseconds, peaks
from graphwright.graphs import GraphBatch
from graphwright.models import Inputs
from graphwright.settings import MATCHINGS, Run
from graphwright.settings.schema import ModelKind
from graphwright.tasks import resolved, task_of
from graphwright.training import TrainingModel, build
from graphwright.training.assembly import StepResult, training_data
from graphwright.training.log import Display
from graphwright.training.loop import Session
from graphwright.training.processes import in_this_process, products_of, threads

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


PEER = "conditional_gradient"
BATCH = 32
"""Samples of a step: enough to keep two cores busy, few enough for steps of seconds at N = 60."""
PLAN_REPEATS = 3
"""Times that the plan alone is repeated for one step: it is the smaller and so the noisier of the two."""


def measure_training(
    load: Callable[[int], Run],
    sizes: tuple[int, ...] = (10, 20, 40),
    batch: int = BATCH,
    repeats: int = 2,
    thread_counts: tuple[int, ...] = (1, 2),
    loop_steps: int = 12,
) -> Iterator[Row]:
    """One row per matching and size: milliseconds per sample of forward, backward and optimiser.

    `load` gives the run of a size. plan_share: time of the plan alone (target encoder and matcher or solver,
    forward and backward) over the time of the step. The peer is the step with Any2Graph's solver. Then, per size
    and on most threads, the real loop for `loop_steps` steps with the learned matcher, beside what it spends in
    those steps.
    """
    for count in thread_counts:
        with threads(count):
            for n in sizes:
                run = with_batch(load(n), batch)
                yield from _step_rows(run, count, repeats)
                if count == max(thread_counts):
                    yield measure_loop(with_matching(run, "learned"), count, loop_steps)


def measure_presets(
    load: Callable[[str], Run], names: Sequence[str], batch: int = BATCH, repeats: int = 2, count: int = 2
) -> Iterator[Row]:
    """A row for each preset: its step with the learned matcher. Batches have one size for all.

    Baselines are left out: another model has no such matcher, and another solver changes nothing here.
    """
    measured: list[Run] = []
    with threads(count):
        for name in names:
            run = with_batch(with_matching(load(name), "learned"), batch)
            if run.model.kind is not ModelKind.SLOTS or run in measured:
                continue
            measured.append(run)
            for row in _step_rows(resolved(run), count, repeats, ("learned",)):
                yield replace(row, name=f"{row.name}, {name}")


def _step_rows(run: Run, count: int, repeats: int, kinds: Sequence[str] | None = None) -> Iterator[Row]:
    kinds = kinds or MATCHINGS.names()
    run = in_this_process(run)
    task, size = task_of(run.task), run.train.batch_size
    data = training_data(run)
    batch = data.collate([data[index, 0] for index in range(size)])
    models = [build(with_matching(run, kind)) for kind in (*kinds, PEER)]
    steps = [_step(model, batch, run) for model in models]
    *times, peer = interleaved_milliseconds(steps, repeats)
    plans = interleaved_milliseconds([_plan(model, batch) for model in models[:-1]], PLAN_REPEATS * repeats)
    for kind, time, plan, step in zip(kinds, times, plans, steps[:-1], strict=True):
        extras = {"samples_per_second": 1000 * size / time, "plan_share": plan / time, **peaks(step, steps[-1])}
        figures = (time / size, f"{PEER} step", peer / size)
        yield Row(kind, task.capacity, size, count, *figures, extras=extras)


def with_batch(run: Run, size: int) -> Run:
    """The run with batches of another size."""
    return run.model_copy(update={"train": run.train.model_copy(update={"batch_size": size})})


def with_matching(run: Run, kind: str) -> Run:
    """The run with another matching."""
    return run.model_copy(update={"matching": run.matching.model_copy(update={"kind": kind})})


def _plan(model: TrainingModel, batch: tuple[Inputs, GraphBatch]) -> Callable[[], None]:
    """The plan of a step, and its gradient where it has one."""
    inputs, target = batch
    with torch.no_grad():
        predicted = model.predictor(inputs)
    target = target.pad(predicted.graphs.capacity)
    states = predicted.states.detach().requires_grad_()
    model.train()

    def plan() -> None:
        match = model.matcher(states, predicted.graphs, target)
        value = match.plan.sum() + match.auxiliary.sum()
        if value.requires_grad:
            value.backward()

    return plan


def _step(model: TrainingModel, batch: tuple[Inputs, GraphBatch], run: Run) -> Callable[[], None]:
    inputs, target = batch
    # So small a rate that all models stay where they began, where plans are hardest to find.
    optimizer = torch.optim.AdamW(model.parameters(), 1e-8, weight_decay=run.train.weight_decay)
    model.train()

    half = products_of(run) is torch.bfloat16

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            result = model(inputs, *target.tensors)
        optimizer.zero_grad(set_to_none=True)
        result.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), run.train.clip)
        optimizer.step()

    return step
