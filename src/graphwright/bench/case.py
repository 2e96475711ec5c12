"""Matching problems that our solvers and the peers are given alike."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from graphwright.graphs import GraphBatch, Vocabulary
from graphwright.transport import Divergence, EdgeTerm, MatchingProblem, SelfLoops, project
from graphwright.transport.divergences import safe_log

LABELS = 4
EXACT = 200
"""Sinkhorn steps that bring any plan to exact marginals."""


@dataclass(frozen=True, eq=False)
class Case:
    """Noisy copies of random graphs: predictions (b, n, n) in [0, 1], targets, and label costs when fused."""

    problem: MatchingProblem
    prediction: Tensor
    target: Tensor
    target_labels: Tensor
    """(b, n) codes of the targets' nodes."""
    labels: Tensor | None

    def mean_objective(self, plan: Tensor) -> float:
        """Mean objective once the plan's marginals are exact, so that nobody gains by missing them."""
        return float(self.problem.objective(exact_marginals(plan.to(self.problem.linear))).mean())

    def graphs(self, size: int) -> GraphBatch:
        """The first `size` nodes of the targets as graphs; the slots beyond them are padding."""
        vocabulary = Vocabulary(tuple("abcd"), ("none", "edge"))
        mask = (torch.arange(self.target_labels.shape[1]) < size).expand_as(self.target_labels)
        pairs = mask[:, :, None] & mask[:, None, :]
        return GraphBatch(mask, self.target_labels * mask, self.target.long() * pairs, vocabulary)


def make_case(batch: int, n: int, *, fused: bool, seed: int = 0) -> Case:
    """Random graphs of mean degree 4, permuted, their edges blurred; `fused` adds four node labels, blurred too.

    POT's convention is mass one and equal weights: objective = <M, T> + GW(T), twice its alpha = 1/2 value.
    """
    generator = torch.Generator().manual_seed(seed)
    upper = (torch.rand(batch, n, n, generator=generator) < 4 / (n - 1)).float().triu(1)
    clean = upper + upper.mT
    noise = 0.3 * torch.randn(batch, n, n, generator=generator).triu(1)
    prediction = (clean + noise + noise.mT).clamp(0, 1)
    order = torch.rand(batch, n, generator=generator).argsort(1)
    target = clean.gather(1, order[:, :, None].expand(-1, -1, n)).gather(2, order[:, None, :].expand(-1, n, -1))
    true = torch.randint(LABELS, (batch, n), generator=generator)
    wanted = true.gather(1, order)
    labels = None
    linear = torch.zeros(batch, n, n)
    if fused:
        scores = one_hot(true, LABELS) + 0.5 * torch.randn(batch, n, LABELS, generator=generator)
        labels = torch.cdist(scores, one_hot(wanted, LABELS).float()).square()
        linear = labels / n
    term = EdgeTerm(prediction, target, Divergence.SQUARED)
    problem = MatchingProblem(linear, (term,), torch.ones(batch, n), SelfLoops.INCLUDED)
    return Case(problem, prediction, target, wanted, labels)


def exact_marginals(plan: Tensor) -> Tensor:
    """(b, n, n) plans with unit sums, near plans (b, n, n) that may have missed them."""
    return project(safe_log(plan), EXACT).matrix
