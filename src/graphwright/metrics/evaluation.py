"""All figures of many predicted graphs: one value per sample, their summary, and its confidence interval."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphwright.decoding import Slots
from graphwright.graphs import NO_EDGE, Graph, GraphBatch, Vocabulary, is_isomorphic
from graphwright.graphs.graph import IntArray
from graphwright.metrics.aligned import Agreement, AlignedSlots, aligned_errors, decoded_alignments
from graphwright.metrics.edit import EditDistance, check_pairs, edit_distances
from graphwright.metrics.metric import METRICS, Values

DRAWS_TOGETHER = 1_000_000


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


def bootstrap_interval(
    values: ArrayLike,
    groups: Sequence[Hashable] | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap interval of the mean of values (m,).

    groups: a name for each value (its formula, its molecule). Values of a group are not independent of each other:
    whole groups are then drawn, as many as there are, and the mean is over all the values drawn.
    """
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"values must have shape (m,) with m > 0, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"values[{int(np.flatnonzero(~np.isfinite(array))[0])}] is not finite")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    if resamples < 1:
        raise ValueError(f"resamples must be positive, got {resamples}")
    sums, sizes = (array, np.ones_like(array)) if groups is None else _grouped(array, groups)
    means = _resampled_means(sums, sizes, resamples, np.random.default_rng(seed))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def _grouped(
    values: NDArray[np.float64], groups: Sequence[Hashable]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum and number of the values in each group."""
    if len(groups) != len(values):
        raise ValueError(f"groups has {len(groups)} entries for {len(values)} values")
    codes: dict[Hashable, int] = {}
    membership = [codes.setdefault(group, len(codes)) for group in groups]
    sums, sizes = np.zeros(len(codes)), np.zeros(len(codes))
    np.add.at(sums, membership, values)
    np.add.at(sizes, membership, 1)
    return sums, sizes


def _resampled_means(
    sums: NDArray[np.float64], sizes: NDArray[np.float64], resamples: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """(resamples,) means of as many draws, with replacement, as there are sums."""
    means = np.empty(resamples)
    together = max(1, DRAWS_TOGETHER // len(sums))
    for begin in range(0, resamples, together):
        count = min(together, resamples - begin)
        drawn = generator.integers(len(sums), size=(count, len(sums)))
        means[begin : begin + count] = sums[drawn].sum(1) / sizes[drawn].sum(1)
    return means


def skeleton(graph: Graph) -> Graph:
    """The graph with its node labels and adjacency, all edges alike."""
    vocabulary = Vocabulary(graph.vocabulary.nodes, (NO_EDGE, "edge"))
    return Graph(graph.node_labels, graph.edges, np.ones_like(graph.edge_labels), vocabulary)


def is_isomorphic_skeleton(first: Graph, second: Graph) -> bool:
    """Whether the two are the same graph up to the order of nodes and the labels of edges."""
    return is_isomorphic(skeleton(first), skeleton(second))


BoolArray = NDArray[np.bool_]
ShareArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Report:
    """How m predicted graphs compare with their targets; every array is (m,).

    isomorphic: the same labelled graph. isomorphic_skeleton: the same but for edge labels.
    edit: edit distance, the best found. edit_lower_bound: equal to it where it is proved.
    size_correct: as many nodes. node_accuracy, edge_precision, edge_recall: shares, see `Agreement`.
    aligned_edit, aligned_exact, attribute_error: see `AlignedErrors`; None where no alignment was given, the last
        also where nodes have no attributes.
    predicted, targets: the graphs, m each.
    groups: names of samples that belong together, for the intervals; None where all are independent.
    """

    isomorphic: BoolArray
    isomorphic_skeleton: BoolArray
    edit: IntArray
    edit_lower_bound: IntArray
    size_correct: BoolArray
    node_accuracy: ShareArray
    edge_precision: ShareArray
    edge_recall: ShareArray
    predicted: Sequence[Graph]
    targets: Sequence[Graph]
    aligned_edit: IntArray | None = None
    aligned_exact: BoolArray | None = None
    attribute_error: ShareArray | None = None
    groups: Sequence[Hashable] | None = None

    def __len__(self) -> int:
        return len(self.edit)

    @property
    def edit_proved(self) -> BoolArray:
        """Where the edit distance is proved to be the least."""
        proved: BoolArray = self.edit == self.edit_lower_bound
        return proved

    def interval(self, values: Values) -> Interval:
        """95 % bootstrap interval of the mean of values (m,), by groups where there are groups."""
        return bootstrap_interval(values, self.groups)

    def to_json(self) -> dict[str, Any]:
        """Means over samples of every metric, in its unit; intervals as [low, high]."""
        facts: dict[str, Any] = {"samples": len(self)}
        for metric in METRICS.entries():
            values = metric.values(self)
            facts[metric.name] = None if values is None else metric.scale * float(values.mean())
            if metric.headline and values is not None:
                interval = self.interval(values)
                facts[f"{metric.name}_interval"] = [metric.scale * interval.low, metric.scale * interval.high]
        return facts


CHUNKS_PER_PROCESS = 8
"""Hard pairs take far longer than easy ones, so the work is dealt out in several rounds."""


def evaluate_graphs(
    predicted: Sequence[Graph],
    targets: Sequence[Graph],
    aligned: AlignedSlots | None = None,
    groups: Sequence[Hashable] | None = None,
    processes: int = 1,
) -> Report:
    """Compare predicted[i] with targets[i], for every i.

    aligned: the slots that the graphs were decoded from and their alignment to the target, for the paper's
        `aligned_edit` and `aligned_exact`; the alignment is also tried as a start for the edit distance.
    groups: a name for each sample (its molecule, its formula), for the intervals.
    processes: more than 1 spreads the work. Each takes seconds to start, as long as a thousand easy pairs take,
        and imports the caller's script, which must keep its own work under `if __name__ == "__main__"`.
    """
    check_pairs(predicted, targets, "predicted", "targets")
    if not predicted:
        raise ValueError("predicted is empty")
    if processes < 1:
        raise ValueError(f"processes must be positive, got {processes}")
    for name, sequence in (("aligned", aligned), ("groups", groups)):
        if sequence is not None and len(sequence) != len(targets):
            raise ValueError(f"{name} has {len(sequence)} samples, targets has {len(targets)}")
    errors = None if aligned is None else aligned_errors(aligned, _target_batch(targets, aligned.slots))
    scores = _scores(predicted, targets, _starts(predicted, targets, aligned), processes)
    edits, agreements = [score.edit for score in scores], [score.agreement for score in scores]
    return Report(
        isomorphic=np.array([edit.distance == 0 for edit in edits]),
        isomorphic_skeleton=np.array([score.skeleton for score in scores]),
        edit=np.array([edit.distance for edit in edits]),
        edit_lower_bound=np.array([edit.lower_bound for edit in edits]),
        size_correct=np.array([a.size == b.size for a, b in zip(predicted, targets, strict=True)]),
        node_accuracy=np.array([each.node_accuracy for each in agreements]),
        edge_precision=np.array([each.edge_precision for each in agreements]),
        edge_recall=np.array([each.edge_recall for each in agreements]),
        predicted=predicted,
        targets=targets,
        aligned_edit=None if errors is None else errors.edit.cpu().numpy(),
        aligned_exact=None if errors is None else errors.exact.cpu().numpy(),
        attribute_error=None if errors is None or errors.attributes is None else errors.attributes.cpu().numpy(),
        groups=groups,
    )


@dataclass(frozen=True, eq=False)
class _Score:
    edit: EditDistance
    skeleton: bool
    agreement: Agreement


def _scores(
    predicted: Sequence[Graph], targets: Sequence[Graph], starts: Sequence[IntArray | None], processes: int
) -> list[_Score]:
    if processes == 1:
        return _score(predicted, targets, starts)
    # Similar sizes together, which is faster, and the largest first: the slowest chunk must not start last.
    order = sorted(range(len(targets)), key=lambda at: -max(predicted[at].size, targets[at].size))
    size = -(-len(order) // (processes * CHUNKS_PER_PROCESS))
    chunks = [order[begin : begin + size] for begin in range(0, len(order), size)]
    dealt = ([[values[at] for at in chunk] for chunk in chunks] for values in (predicted, targets, starts))
    # Spawned, not forked: the threads of torch do not survive a fork.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        scores = [score for part in pool.map(_score, *dealt) for score in part]
    return [score for _, score in sorted(zip(order, scores, strict=True), key=lambda pair: pair[0])]


def _score(
    predicted: Sequence[Graph], targets: Sequence[Graph], starts: Sequence[IntArray | None]
) -> list[_Score]:
    """What is computed pair by pair."""
    return [
        _Score(edit, _same_skeleton(one, other, edit), Agreement.of(one, other, edit.alignment))
        for one, other, edit in zip(predicted, targets, edit_distances(predicted, targets, starts), strict=True)
    ]


def _same_skeleton(predicted: Graph, target: Graph, edit: EditDistance) -> bool:
    if edit.distance == 0 or len(target.vocabulary.edges) == 2:
        return edit.distance == 0
    return is_isomorphic_skeleton(predicted, target)


def _starts(
    predicted: Sequence[Graph], targets: Sequence[Graph], aligned: AlignedSlots | None
) -> list[IntArray | None]:
    """The alignments given, where the predicted graph has the nodes of its slots (a decoder may drop some)."""
    if aligned is None:
        return [None] * len(targets)
    present = aligned.slots.presence.sum(1).tolist()
    alignments = decoded_alignments(aligned, [target.size for target in targets])
    return [
        alignment if graph.size == count else None
        for graph, count, alignment in zip(predicted, present, alignments, strict=True)
    ]


def _target_batch(targets: Sequence[Graph], slots: Slots) -> GraphBatch:
    """The targets, padded to as many nodes as there are slots."""
    for at, target in enumerate(targets):
        if target.size > slots.capacity:
            raise ValueError(f"targets[{at}] has {target.size} nodes, aligned has {slots.capacity} slots")
    return GraphBatch.collate(targets, slots.capacity).to(slots.presence.device)
