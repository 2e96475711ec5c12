"""The real evaluation, on the predictions of an untrained model and on nearly right ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from graphwright.bench.evaluation_reference import NAME, load_networkx, reference_score, reference_scores
from graphwright.bench.row import Row
from graphwright.bench.timing import timed
from graphwright.graphs import Graph, GraphBatch, Prediction
from graphwright.models.predictor import Predicted
from graphwright.settings import Run
from graphwright.tasks import task_of
from graphwright.training import build
from graphwright.training.evaluation import evaluate_predictor
from graphwright.training.threads import threads

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
        self.place = nn.Parameter(torch.zeros(()))  # where the predictor lives
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
            found = float(result.report.edit[: len(few)].mean())
            edits = [score.edit for score in scores]
            figures = (1000 * ours / samples, NAME, 1000 * theirs / len(few), found, float(np.mean(edits)))
            extras = {"seconds": ours}
            yield Row(f"evaluation, {name}", task.capacity, samples, threads_used, *figures, extras=extras)
