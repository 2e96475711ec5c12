"""Whole training steps for every matching, and what the plan costs in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from graphwright.bench.row import Row
from graphwright.bench.timing import best_milliseconds, threads
from graphwright.graphs import GraphBatch, Prediction
from graphwright.matching import Match, Matcher
from graphwright.settings import MatchingKind, Run
from graphwright.tasks.coloring import ColoringDataset
from graphwright.training import TrainingModel, build
from graphwright.training.assembly import coloring_config

PEER = MatchingKind.CONDITIONAL_GRADIENT


class GivenPlan(Matcher):
    """A plan made beforehand: what a step costs when matching is free."""

    def __init__(self, plan: Tensor) -> None:
        super().__init__()
        self.plan = plan

    def forward(self, states: Tensor, prediction: Prediction, target: GraphBatch) -> Match:  # noqa: ARG002
        """The plan given."""
        return Match(self.plan, self.plan.new_zeros(len(self.plan)))


def measure_training(
    load: Callable[[int], Run], sizes: tuple[int, ...] = (10, 20, 40), repeats: int = 5, threads_used: int = 2
) -> Iterator[Row]:
    """One row per matching and size: milliseconds per sample of forward, backward and optimiser.

    `load` gives the run of a size. plan_share: the part of the step that goes when the plan is given, i.e. target
    encoder and matcher or solver, forward and backward. The peer is the step with Any2Graph's solver.
    """
    with threads(threads_used):
        for n in sizes:
            run = load(n)
            data = ColoringDataset(coloring_config(run.task))
            batch = data.collate([data[index, 0] for index in range(run.train.batch_size)])
            free = _milliseconds(_with_plan(run, batch), batch, repeats)
            times = {kind: _milliseconds(build(_with(run, kind)), batch, repeats) for kind in MatchingKind}
            size = run.train.batch_size
            for kind, time in times.items():
                extras = {"samples_per_second": 1000 * size / time, "plan_share": max(0.0, 1 - free / time)}
                yield Row(
                    kind.value, n, size, threads_used, time / size, f"{PEER.value} step", times[PEER] / size,
                    extras=extras,
                )  # fmt: skip


def _with(run: Run, kind: MatchingKind) -> Run:
    return run.model_copy(update={"matching": run.matching.model_copy(update={"kind": kind})})


def _with_plan(run: Run, batch: tuple[Tensor, GraphBatch]) -> TrainingModel:
    model = build(_with(run, MatchingKind.LABELS))
    n = batch[1].capacity
    model.matcher = GivenPlan(torch.full((len(batch[1]), n, n), 1 / n))
    return model


def _milliseconds(model: TrainingModel, batch: tuple[Tensor, GraphBatch], repeats: int) -> float:
    inputs, target = batch
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    model.train()

    def step() -> None:
        result = model(inputs, target.mask, target.node_labels, target.edge_labels)
        optimizer.zero_grad(set_to_none=True)
        result.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return best_milliseconds(step, repeats)
