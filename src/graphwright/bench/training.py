"""Whole training steps for every matching, what the plan costs in them, and what the loop adds to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch

from graphwright.bench.peak_memory import peaks
from graphwright.bench.row import Row
from graphwright.bench.timing import interleaved_milliseconds
from graphwright.bench.training_loop import measure_loop
from graphwright.graphs import GraphBatch
from graphwright.models import Inputs
from graphwright.settings import MatchingKind, Run
from graphwright.settings.schema import ModelKind
from graphwright.tasks import resolved, task_of
from graphwright.training import TrainingModel, build
from graphwright.training.threads import threads

PEER = MatchingKind.CONDITIONAL_GRADIENT
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
                    yield measure_loop(with_matching(run, MatchingKind.LEARNED), count, loop_steps)


def measure_presets(
    load: Callable[[str], Run], names: Sequence[str], batch: int = BATCH, repeats: int = 2, count: int = 2
) -> Iterator[Row]:
    """A row for each preset: its step with the learned matcher. Batches have one size for all.

    Baselines are left out: another model has no such matcher, and another solver changes nothing here.
    """
    measured: list[Run] = []
    with threads(count):
        for name in names:
            run = with_batch(with_matching(load(name), MatchingKind.LEARNED), batch)
            if run.model.kind is not ModelKind.SLOTS or run in measured:
                continue
            measured.append(run)
            for row in _step_rows(resolved(run), count, repeats, (MatchingKind.LEARNED,)):
                yield replace(row, name=f"{row.name}, {name}")


def _step_rows(
    run: Run, count: int, repeats: int, kinds: Sequence[MatchingKind] = tuple(MatchingKind)
) -> Iterator[Row]:
    task, size = task_of(run.task), run.train.batch_size
    data = task.data("train")
    batch = data.collate([data[index, 0] for index in range(size)])
    models = [build(with_matching(run, kind)) for kind in (*kinds, PEER)]
    steps = [_step(model, batch, run) for model in models]
    *times, peer = interleaved_milliseconds(steps, repeats)
    plans = interleaved_milliseconds([_plan(model, batch) for model in models[:-1]], PLAN_REPEATS * repeats)
    for kind, time, plan, step in zip(kinds, times, plans, steps[:-1], strict=True):
        extras = {"samples_per_second": 1000 * size / time, "plan_share": plan / time, **peaks(step, steps[-1])}
        figures = (time / size, f"{PEER.value} step", peer / size)
        yield Row(kind.value, task.capacity, size, count, *figures, extras=extras)


def with_batch(run: Run, size: int) -> Run:
    """The run with batches of another size."""
    return run.model_copy(update={"train": run.train.model_copy(update={"batch_size": size})})


def with_matching(run: Run, kind: MatchingKind) -> Run:
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

    def step() -> None:
        result = model(inputs, target.mask, target.node_labels, target.edge_labels)
        optimizer.zero_grad(set_to_none=True)
        result.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), run.train.clip)
        optimizer.step()

    return step
