"""The real evaluation beside networkx and an m^2 x m^2 alignment, on untrained and on nearly right predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn.functional import one_hot

from benchmarks.measurement import Row, timed
from graphwright.decoding import decode
from graphwright.graphs import Graph, GraphBatch, Prediction, Vocabulary
from graphwright.graphs.convert import to_networkx
from graphwright.inference.evaluate import evaluate_predictor
from graphwright.metrics.pairs import GraphPairs
from graphwright.models.predictor import Predicted
from graphwright.settings import Run
from graphwright.tasks import Samples, task_of
from graphwright.training import build
from graphwright.training.processes import threads

STEPS = 20
NAME = "networkx.is_isomorphic, m^2 x m^2 alignment"


@dataclass(frozen=True)
class ReferenceScore:
    """Whether two graphs are isomorphic, and the edits under one alignment of them."""

    isomorphic: bool
    edit: int


def load_networkx() -> Any:
    """The module `networkx`, or how to get it."""
    try:
        import networkx
    except ImportError as error:
        raise ImportError("the peer of this benchmark is networkx: pip install networkx") from error
    return networkx


@torch.no_grad()
def reference_scores(
    predictor: nn.Module, samples: Samples, indices: Sequence[int], vocabulary: Vocabulary
) -> list[ReferenceScore]:
    """Predict, decode, and score pair by pair."""
    networkx = load_networkx()
    inputs, targets = samples.batch(indices)
    predicted = decode(predictor.eval()(inputs).graphs, vocabulary)
    return [reference_score(networkx, *pair) for pair in zip(predicted, targets.graphs(), strict=True)]


def reference_score(networkx: Any, predicted: Graph, target: Graph) -> ReferenceScore:
    """The score of one pair."""
    same = networkx.is_isomorphic(
        to_networkx(predicted),
        to_networkx(target),
        node_match=networkx.algorithms.isomorphism.categorical_node_match("label", None),
        edge_match=networkx.algorithms.isomorphism.categorical_edge_match("label", None),
    )
    pairs = GraphPairs.pad([predicted], [target])
    return ReferenceScore(bool(same), int(pairs.costs(_alignment(pairs)[None])[0]))


def _alignment(pairs: GraphPairs) -> NDArray[np.int64]:
    """(m,) the alignment that Frank-Wolfe steps on the dense quadratic assignment matrix end at."""
    m = pairs.slots
    left, right = pairs.left_edges[0], pairs.right_edges[0]
    labels = pairs.label_costs[0].astype(np.float64)
    # Entry (ik, jl): whether putting i on k and j on l makes the pair ij differ from kl.
    differ = (left[:, None, :, None] != right[None, :, None, :]).reshape(m * m, m * m) / 2
    plan = np.full(m * m, 1 / m)
    for _ in range(STEPS):
        gradient = labels.ravel() + 2 * differ @ plan
        target = np.zeros((m, m))
        target[linear_sum_assignment(gradient.reshape(m, m))] = 1
        direction = target.ravel() - plan
        slope, curvature = float(gradient @ direction), float(direction @ differ @ direction)
        step = min(1.0, -slope / (2 * curvature)) if curvature > 0 else float(slope + curvature < 0)
        if slope > -1e-9 or step == 0:
            break
        plan = plan + step * direction
    columns: NDArray[np.int64] = linear_sum_assignment(-plan.reshape(m, m))[1]
    return columns


SURE = 4.0
"""Logit of a decision."""
EDITS = 3
"""Edges changed in a nearly right prediction, at most."""


class NearlyRight(nn.Module):
    """Predicts targets shuffled, with up to `EDITS` pairs joined or parted: what a good model gets wrong.

    It does not look at its inputs: it answers for the graphs given, in their order, and begins again after them.
    """

    def __init__(self, graphs: Sequence[Graph], capacity: int, seed: int = 0) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(()))  # where the predictor lives
        rng = np.random.default_rng(seed)
        targets = GraphBatch.collate(graphs, capacity)
        self.targets, self.edges = targets, targets.edge_labels.clone()
        for matrix, size in zip(self.edges, targets.mask.sum(1).tolist(), strict=True):
            for _ in range(int(rng.integers(0, EDITS + 1)) if size > 1 else 0):
                i, j = rng.choice(size, 2, replace=False).tolist()
                matrix[i, j] = matrix[j, i] = 0 if matrix[i, j] else 1
        self.order = torch.from_numpy(rng.permuted(np.tile(np.arange(capacity), (len(graphs), 1)), axis=1))
        self.answered = 0

    def forward(self, inputs: Tensor) -> Predicted:
        """(b, ...) inputs of the next b samples -> no states, sure logits."""
        b, vocabulary = len(inputs), self.targets.vocabulary
        at = torch.arange(self.answered, self.answered + b) % len(self.order)
        self.answered = (self.answered + b) % len(self.order)
        order, sample = self.order[at], at[:, None]
        present = self.targets.mask[sample, order]
        labels = one_hot(self.targets.node_labels[sample, order], len(vocabulary.nodes))
        edges = self.edges[at[:, None, None], order[:, :, None], order[:, None, :]]
        if len(vocabulary.edges) > 2:
            edges = one_hot(edges, len(vocabulary.edges)).movedim(3, 1)
        logits = [SURE * (2 * decision.float() - 1) for decision in (present, edges, labels)]
        return Predicted(torch.empty(b, order.shape[1], 0), Prediction(*logits))


def measure_evaluation(
    run: Run, samples: int = 4000, peer_samples: int = 60, threads_used: int = 2
) -> Iterator[Row]:
    """One pass over `samples` test graphs for each kind of prediction; `seconds` is that of the whole pass.

    The peer makes the same pass over some of them. The objectives are the mean edit distances that both found on
    those: ours the best of several searches, the peer's those of its one alignment.
    """
    task = task_of(run.task)
    data = task.data("test", limit=samples)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = build(run)
    targets = data.batch(range(samples))[1].graphs()
    # Better known before minutes of measuring; and the first call is slower than all others.
    reference_score(load_networkx(), targets[0], targets[0])
    predictors = {"untrained model": model.predictor, "nearly right": NearlyRight(targets, task.capacity)}
    with threads(threads_used):
        for name, predictor in predictors.items():
            whole, few = range(samples), range(min(peer_samples, samples))
            result, ours = timed(partial(evaluate_predictor, predictor, data, whole, task.vocabulary, model.loss))
            scores, theirs = timed(partial(reference_scores, predictor, data, few, task.vocabulary))
            mean = float(result.report.edit[: len(few)].mean())
            edits = [score.edit for score in scores]
            figures = (1000 * ours / samples, NAME, 1000 * theirs / len(few), mean, float(np.mean(edits)))
            extras = {"seconds": ours}
            yield Row(f"evaluation, {name}", task.capacity, samples, threads_used, *figures, extras=extras)
