"""Definitions, written as plainly as possible, that the library is compared with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import networkx as nx
import numpy as np
import torch
from networkx.algorithms.isomorphism import categorical_edge_match, categorical_node_match
from torch import Tensor

from graphwright.graphs import Graph, to_networkx
from graphwright.transport import Divergence, Objective, Order, Reading, Relaxation, SelfLoops


def scalar_divergence(divergence: Divergence, prediction: Tensor, target: Tensor) -> float:
    """d of one pair: scalars for edges, vectors for classes; from probabilities and logarithms alone."""
    a, b = np.atleast_1d(prediction.numpy()), np.atleast_1d(target.numpy())
    if divergence is Divergence.SQUARED:
        return float(((a - b) ** 2).sum())
    if prediction.ndim == 0:
        p = 1 / (1 + np.exp(-a[0]))
        a, b = np.log([1 - p, p]), np.array([1 - b[0], b[0]])
    else:
        a = a - np.log(np.exp(a).sum())
    cross_entropy = -(b * a).sum()
    if divergence is Divergence.CROSS_ENTROPY:
        return float(cross_entropy)
    positive = b[b > 0]
    return float(cross_entropy + (positive * np.log(positive)).sum())


def quartic_objective(
    plan: Tensor,
    prediction: Tensor,
    target: Tensor,
    mask: Tensor,
    divergence: Divergence,
    self_loops: SelfLoops = SelfLoops.INCLUDED,
) -> Tensor:
    """(b,) J by its definition, four nested sums: sum w_j w_l d(A_ik, B_jl) T_ij T_kl / m^2."""
    n = plan.shape[1]
    values = []
    for sample in range(len(plan)):
        total = 0.0
        for i, k, j, other in itertools.product(range(n), repeat=4):
            if self_loops is SelfLoops.EXCLUDED and (i == k or j == other):
                continue
            weight = mask[sample, j] * mask[sample, other] * plan[sample, i, j] * plan[sample, k, other]
            pair = scalar_divergence(divergence, prediction[sample, ..., i, k], target[sample, ..., j, other])
            total += float(weight) * pair
        values.append(total / max(float(mask[sample].sum()), 1.0) ** 2)
    return torch.tensor(values, dtype=plan.dtype)


def averaged_objective(
    plan: Tensor,
    prediction: Tensor,
    target: Tensor,
    mask: Tensor,
    divergence: Divergence,
    self_loops: SelfLoops,
    relaxation: Relaxation,
) -> Tensor:
    """(b,) J, J_a or J_b, any order and reading, by definition: average what the plan mixes, compare, weigh.

    Swapped, J_a(T'; B, A) compares, at node q and slot i, B_qj averaged over row i with A_ki over column q.
    """
    excluded = self_loops is SelfLoops.EXCLUDED
    swapped = relaxation.order is Order.TARGET_FIRST
    literal = swapped and relaxation.reading is Reading.LITERAL
    nodes = range(plan.shape[1])
    pairs = [(x, y) for x in nodes for y in nodes if not (excluded and x == y)]
    values = []
    for T, A, B, w in zip(plan.numpy(), prediction.numpy(), target.numpy(), mask.numpy(), strict=True):
        if divergence is Divergence.SQUARED:
            a, b = np.atleast_3d(A.T).T, np.atleast_3d(B.T).T
        elif A.ndim == 2:
            a, b = np.stack([1 / (1 + np.exp(A)), 1 / (1 + np.exp(-A))]), np.stack([1 - B, B])
        else:
            a, b = np.exp(A) / np.exp(A).sum(0), B
        groups = []  # each: weights of (slot, slot) pairs and of (node, node) pairs, averaged on their own
        if relaxation.objective is Objective.J:
            for (i, k), (j, q) in itertools.product(pairs, pairs):
                groups.append(([(w[j] * w[q] * T[i, j] * T[k, q], i, k)], [(1, j, q)]))
        elif relaxation.objective is Objective.J_A:
            for i, q in itertools.product(nodes, nodes):
                slots = [(T[k, q], *((k, i) if swapped else (i, k))) for k in nodes if not (excluded and k == i)]
                ends = [
                    (w[j] * T[i, j], *((q, j) if swapped else (j, q))) for j in nodes if not (excluded and j == q)
                ]
                groups.append(([(w[q] * weight, *pair) for weight, *pair in slots], ends))
        elif swapped:
            for j, q in pairs:
                groups.append(([(w[j] * w[q] * T[i, j] * T[k, q], i, k) for i, k in pairs], [(1, j, q)]))
        else:
            for i, k in pairs:
                groups.append(([(1, i, k)], [(w[j] * w[q] * T[i, j] * T[k, q], j, q) for j, q in pairs]))
        total = 0.0
        for slots, ends in groups:
            masses = [sum(weight for weight, *_ in side) for side in (slots, ends)]
            if min(masses) <= 0:
                continue
            first = sum(weight * a[:, i, k] for weight, i, k in slots) / masses[0]
            second = sum(weight * b[:, j, q] for weight, j, q in ends) / masses[1]
            total += masses[0] * masses[1] * _discrepancy(divergence, first, second, literal, relaxation.clamp)
        values.append(total / max(w.sum(), 1.0) ** 2)
    return torch.tensor(values, dtype=plan.dtype)


def _discrepancy(
    divergence: Divergence, predicted: np.ndarray, wanted: np.ndarray, literal: bool, clamp: float
) -> float:
    """d of two averages; read literally, the wanted one stands inside the logarithm."""
    if divergence is Divergence.SQUARED:
        return float(((predicted - wanted) ** 2).sum())
    inside, label = (np.maximum(wanted, clamp), predicted) if literal else (predicted, wanted)
    positive = label[label > 0]
    entropy = -(positive * np.log(positive)).sum() if divergence is Divergence.KL else 0.0
    return float(-(label * np.log(inside)).sum() - entropy)


def permutations(n: int) -> Iterator[Tensor]:
    """Every (n, n) permutation matrix, float64."""
    for order in itertools.permutations(range(n)):
        yield torch.eye(n, dtype=torch.float64)[list(order)]


def bistochastic(generator: torch.Generator, *shape: int) -> Tensor:
    """Random float64 bistochastic matrices: mixtures of permutations, exact in both marginals."""
    *batch, n = shape
    result = torch.zeros(*batch, n, n, dtype=torch.float64)
    weights = torch.rand(4, generator=generator, dtype=torch.float64)
    for weight in weights / weights.sum():
        order = torch.rand(*batch, n, generator=generator).argsort(-1)
        result += weight * torch.eye(n, dtype=torch.float64)[order]
    return result


def networkx_says(first: Graph, second: Graph) -> bool:
    """Whether networkx finds the labelled graphs isomorphic."""
    return nx.is_isomorphic(
        to_networkx(first),
        to_networkx(second),
        node_match=categorical_node_match("label", None),
        edge_match=categorical_edge_match("label", None),
    )
