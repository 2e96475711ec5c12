"""A model's figures on a data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from graphwright.decoding import Candidates, Slots, harden
from graphwright.graphs import Graph, GraphBatch, Prediction, Vocabulary
from graphwright.losses import LossSettings, matching_problem
from graphwright.metrics import AlignedSlots, Report, evaluate_graphs
from graphwright.models import inputs_to
from graphwright.tasks import Bounded, Samples
from graphwright.training.decoders import Ranking
from graphwright.transport import Relaxation, SelfLoops, aligning_plan, round_to_permutation

STARTS = 4


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Predicted graphs beside their targets, in order, and their figures.

    ranked: for every sample what a ranking decoder found; empty without one.
    """

    indices: list[int]
    predicted: list[Graph]
    targets: list[Graph]
    report: Report
    ranked: list[Candidates] = field(default_factory=list)


@torch.no_grad()
def alignments(prediction: Prediction, target: GraphBatch, loss: LossSettings) -> Tensor:
    """(b, n) the slot of each target position, by conditional gradient on J from the best of a few starts.

    One start is not enough: a graph with symmetries is as well served from the uniform plan by many plans between
    which nothing decides, and on 32 slots one start loses half of the scaffolds that are predicted exactly.
    """
    exact = replace(loss, relaxation=Relaxation(), self_loops=SelfLoops.INCLUDED)
    target = target.pad(prediction.capacity)
    plan = aligning_plan(matching_problem(prediction, target, exact), STARTS).matrix
    return round_to_permutation(plan.mT)


@torch.no_grad()
def evaluate_predictor(
    predictor: nn.Module,
    samples: Samples,
    indices: Sequence[int],
    vocabulary: Vocabulary,
    loss: LossSettings,
    batch_size: int = 128,
    advance: Callable[[int], None] = lambda count: None,  # noqa: ARG005
    rank: Ranking | None = None,
) -> Evaluation:
    """Predict the samples, decode without looking at the targets, and compare.

    The alignment of the paper's diagnostic is `alignments`', whatever matcher a model was trained with. Graphs are
    decoded by thresholds, or are the first of those that `rank` finds; the diagnostic is of the thresholds always.
    Where samples come with bounds, such as molecular formulas, `rank` is told of them. `advance` is told how many
    samples were done.
    """
    was_training = predictor.training
    predictor.eval()
    device = next(predictor.parameters()).device
    slots, assignments, targets = [], [], []
    ranked: list[Candidates] = []
    try:
        for start in range(0, len(indices), batch_size):
            chosen = indices[start : start + batch_size]
            inputs, target = samples.batch(chosen)
            prediction = predictor(inputs_to(inputs, device)).graphs
            slots.append(harden(prediction, vocabulary))
            if rank is not None:
                bounds = samples.bounds(chosen) if isinstance(samples, Bounded) else None
                ranked += rank(prediction, vocabulary, bounds, inputs)
            assignments.append(alignments(prediction, target.to(device), loss))
            targets += target.graphs()
            advance(len(target))
    finally:
        predictor.train(was_training)
    joined = Slots(
        torch.cat([part.presence for part in slots]),
        torch.cat([part.node_labels for part in slots]),
        torch.cat([part.edge_labels for part in slots]),
    )
    predicted = joined.graphs(vocabulary) if rank is None else [each.candidates[0].graph for each in ranked]
    report = evaluate_graphs(predicted, targets, AlignedSlots(joined, torch.cat(assignments)))
    return Evaluation(list(indices), predicted, targets, report, ranked)
