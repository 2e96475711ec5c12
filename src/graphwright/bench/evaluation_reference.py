"""Evaluation as one writes it first: networkx for isomorphism, an m^2 x m^2 matrix for the alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import nn

from graphwright.decoding import decode
from graphwright.graphs import Graph, Vocabulary
from graphwright.graphs.convert import to_networkx
from graphwright.metrics.pairs import GraphPairs
from graphwright.tasks import Samples

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
