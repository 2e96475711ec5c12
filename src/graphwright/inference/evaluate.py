"""A model's figures on a data set, and those of simple methods on the same samples."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graphwright.decoding import Candidates, Slots, harden
from graphwright.graphs import Graph, GraphBatch, Prediction, Vocabulary, is_isomorphic
from graphwright.inference.decoders import PLAIN, Ranking, decoder_named, ranking
from graphwright.inference.model import SavedModel
from graphwright.losses import LossSettings, matching_problem
from graphwright.metrics import METRICS, AlignedSlots, Report, bootstrap_interval, evaluate_graphs
from graphwright.models import inputs_to
from graphwright.tasks import Extra, Samples, Split
from graphwright.tasks.split import Membership, molecule_means
from graphwright.transport import aligning_plan, round_to_permutation

SECONDS = {
    "decode_seconds_median": "seconds for one answer, median",
    "decode_seconds_p99": "seconds for one answer, 99th percentile",
}
"""Figures of a decoder that takes its time, as pages and cards name them."""
STARTS = 4
SAMPLES = 1000
"""How many samples of a model's own data to look at if nobody says."""
TOPS = (5, 10)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Predicted graphs beside their targets, in order, and their figures.

    ranked: for every sample the graphs of a ranking decoder; empty without one.
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
    paper = LossSettings()
    exact = replace(
        loss, objective=paper.objective, order=paper.order, reading=paper.reading, self_loops=paper.self_loops
    )
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
                bounds = samples.bounds(chosen)
                ranked += rank(prediction, bounds, inputs)
            assignments.append(alignments(prediction, target.to(device), loss))
            targets += target.graphs()
            advance(len(target))
    finally:
        predictor.train(was_training)
    measured = bool(slots) and slots[0].attributes is not None
    joined = Slots(
        torch.cat([part.presence for part in slots]),
        torch.cat([part.node_labels for part in slots]),
        torch.cat([part.edge_labels for part in slots]),
        torch.cat([part.attributes for part in slots if part.attributes is not None]) if measured else None,
    )
    predicted = joined.graphs(vocabulary) if rank is None else [each.candidates[0].graph for each in ranked]
    report = evaluate_graphs(predicted, targets, AlignedSlots(joined, torch.cat(assignments)))
    return Evaluation(list(indices), predicted, targets, report, ranked)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluated:
    """An evaluation, the data set that it was made on, and the metrics that only this task has.

    membership: of the samples, where several may be of one molecule. decode: what made the graphs, by name.
    """

    model: SavedModel
    data: Samples
    evaluation: Evaluation
    extras: list[Extra] = field(default_factory=list)
    membership: Membership | None = None
    decode: str = PLAIN

    def titles(self) -> dict[str, str]:
        """What figures are called on pages and cards, in the order in which they are shown."""
        common = {metric.name: metric.heading for metric in METRICS.entries()}
        return common | {extra.name: extra.title for extra in self.extras} | SECONDS

    def rows(self) -> list[tuple[str, str, str]]:
        """For people: what every figure is called, its value, and its 95 % interval where it has one."""
        return figure_rows(self.figures(), self.titles())

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(len(row[at]) for row in rows) for at in range(2)]
        lines = [
            f"{name:<{widths[0]}}  {value:>{widths[1]}}  {interval}".rstrip() for name, value, interval in rows
        ]
        return "\n".join([f"{self.model.name}, decoded {self.decode}, with 95 % intervals", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A table, for a notebook."""
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows()
        )
        return f"<table><tr><th></th><th>mean</th><th>95 % interval</th></tr>{body}</table>"

    def figures(self) -> dict[str, Any]:
        """The contract of `graphwright evaluate --json`: the report's figures, then the task's own."""
        facts = {"task": self.model.task.name} | self.evaluation.report.to_json()
        for extra in self.extras:
            interval = self.evaluation.report.interval(extra.values)
            scale = 100 if extra.share else 1
            facts[extra.name] = scale * float(extra.values.mean())
            facts[f"{extra.name}_interval"] = [scale * interval.low, scale * interval.high]
        facts |= decoder_named(self.decode).facts(self.evaluation.ranked)
        if self.membership is not None:
            facts["per_molecule"] = molecule_means(self.evaluation.report, self.extras, self.membership)
        return facts


def figure_rows(facts: Mapping[str, Any], titles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Title, value and interval of every figure that has a title, and how many samples they are of."""
    rows = []
    for name, text in {"samples": "samples", "molecules": "molecules", **titles}.items():
        value, interval = facts.get(name), facts.get(f"{name}_interval")
        if value is not None:
            shown = f"{value:.2f}" if isinstance(value, float) else f"{value:,}"
            rows.append((text, shown, f"{interval[0]:.2f} to {interval[1]:.2f}" if interval else ""))
    return rows


def unseen(count: int) -> None:
    """Progress that nobody watches."""


def evaluate_saved(
    model: SavedModel,
    split: Split = "test",
    seed: int | None = None,
    samples: int | None = None,
    *,
    at_most: int = SAMPLES,
    file: Path | None = None,
    advance: Callable[[int], None] = unseen,
    decode: str | None = None,
) -> Evaluated:
    """The first `samples` of a split of the model's own data (fresh ones under another seed), or of a file.

    Without a number: `at_most` so many of a split, all of a file. Without a decoder: the model's own.
    """
    decode = model.decode if decode is None else decode
    decoder = decoder_named(decode)
    if file is None:
        limit = at_most if samples is None else samples
        data, where = model.task.data(split, seed=seed, limit=limit), f"the {split} split"
    else:
        data, where = model.task.data_from(file, limit=sys.maxsize if samples is None else samples), str(file)
        limit = len(data) if samples is None else samples
    if samples is not None and samples > len(data):
        raise ValueError(f"{where} has {len(data)} samples, not {samples}")
    # Lists of candidates are the custom with molecules; of other plain answers they cost more than they tell.
    ranks = model.task.ranked or decode != PLAIN
    known = model.known if decoder.from_known else None
    views_of = model.views if decoder.from_views else None
    rank = ranking(decoder, max(TOPS), model.task, known, views_of) if ranks else None
    evaluation = evaluate_predictor(
        model.answering(decode),
        data,
        range(min(limit, len(data))),
        model.vocabulary,
        model.run.loss,
        advance=advance,
        rank=rank,
    )
    extras = [*model.task.extras(evaluation.predicted, evaluation.targets), *_tops(evaluation)]
    extras = decoder.extras(extras, evaluation.ranked) if ranks else extras
    membership = data.membership(evaluation.indices)
    if membership is None:
        return Evaluated(model, data, evaluation, extras, decode=decode)
    # Spectra of a formula are not independent: intervals are by resampling formulas.
    grouped = replace(evaluation, report=replace(evaluation.report, groups=membership.groups))
    return Evaluated(model, data, grouped, extras, membership, decode)


def _tops(evaluation: Evaluation) -> list[Extra]:
    """Whether the truth is among the first few graphs; nothing without a ranking."""
    if not evaluation.ranked:
        return []
    ranks = np.array(
        [
            _rank([each.graph for each in ranked.candidates], truth)
            for ranked, truth in zip(evaluation.ranked, evaluation.targets, strict=True)
        ]
    )
    return [
        Extra(f"top{count}", f"truth among the first {count} candidates, %", (ranks < count).astype(np.float64))
        for count in TOPS
    ]


def _rank(graphs: Sequence[Graph], truth: Graph) -> int:
    return next((at for at, graph in enumerate(graphs) if is_isomorphic(graph, truth)), len(graphs) + max(TOPS))


def baseline_figures(result: Evaluated) -> dict[str, dict[str, Any]]:
    """The figures of every simple method that the task knows, by name.

    model_better_by: by how many per cent of the molecules the model is exact more often, and the 95 % interval
    by resampling formulas: of the difference, since both err on the same hard molecules.
    """
    task, evaluation, membership = result.model.task, result.evaluation, result.membership
    if not task.own_baselines or membership is None:
        raise ValueError(f"there are no simple methods to compare with for {task.name}")
    facts = {}
    for each in task.baselines(result.data, evaluation.indices):
        report = replace(evaluate_graphs(each.graphs, evaluation.targets), groups=membership.groups)
        extras = task.extras(each.graphs, evaluation.targets)
        figures = replace(result, evaluation=replace(evaluation, report=report), extras=extras).figures()
        exact = evaluation.report.isomorphic.astype(np.float64) - report.isomorphic
        means, groups = membership.by_molecule(exact)
        interval = bootstrap_interval(means, groups)
        better = [float(means.mean()), interval.low, interval.high]
        facts[each.name] = figures | {"model_better_by": [100 * value for value in better]}
    return facts
