"""The paper's propositions on small graphs: every statement computed, none assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import torch
from torch import Tensor

from graphwright.graphs import Graph, GraphBatch
from graphwright.losses import LossSettings
from graphwright.matching import LearnedMatcher, Temperature
from graphwright.models import TargetEncoder
from graphwright.transport import (
    Divergence,
    EdgeTerm,
    MatchingProblem,
    Objective,
    Relaxation,
    SelfLoops,
    conditional_gradient,
    l1_plan,
    mirror_descent,
    multi_start,
    relaxed_objective,
    uniform_plan,
)

STARTS, OUTER, INNER = 4, 30, 100
STATE, WIDTH = 8, 16
CYCLE = Graph.build(6, [(i, (i + 1) % 6) for i in range(6)])
TRIANGLES = Graph.build(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])


@dataclass(frozen=True)
class Minima:
    """Of one pair of matrices the least J over permutations and the least J, J_a, J_b found over plans."""

    exact: float
    J: float
    J_a: float
    J_b: float


def adjacency(graph: Graph) -> Tensor:
    """(n, n) float64."""
    return GraphBatch.collate([graph]).adjacency()[0].double()


def value(
    plan: Tensor, A: Tensor, B: Tensor, objective: Objective, divergence: Divergence = Divergence.SQUARED
) -> Tensor:
    """(b,) J, J_a or J_b of plans (b, n, n) between matrices (n, n) or (b, n, n), as a sum (not over n^2)."""
    n = plan.shape[1]
    term = EdgeTerm(A.expand_as(plan), B.expand_as(plan), divergence)
    mask = torch.ones(len(plan), n, dtype=plan.dtype)
    return n**2 * relaxed_objective(plan, term, mask, SelfLoops.INCLUDED, Relaxation(objective))


def every_permutation(n: int) -> Tensor:
    """(n!, n, n) float64."""
    return torch.eye(n, dtype=torch.float64)[torch.tensor(list(permutations(range(n))))]


def random_plans(generator: torch.Generator, count: int, n: int) -> Tensor:
    """(count, n, n) mixtures of four permutations, exact in both marginals."""
    weights = torch.rand(count, 4, generator=generator, dtype=torch.float64)
    orders = torch.rand(count, 4, n, generator=generator).argsort(2)
    shares = weights / weights.sum(1, keepdim=True)
    return (shares[:, :, None, None] * torch.eye(n, dtype=torch.float64)[orders]).sum(1)


def minima(A: Tensor, B: Tensor, seed: int) -> list[Minima]:
    """Of pairs (b, n, n): by brute force over permutations, and by solvers from several starts over plans."""
    b, n = A.shape[:2]
    every = every_permutation(n)
    exact, at = torch.stack([value(every, A[i], B[i], Objective.J) for i in range(b)]).min(1)
    problem = _problem(A, B, Objective.J)
    starts = torch.Generator().manual_seed(seed)
    tried = [
        conditional_gradient(problem, every[at]).matrix,
        multi_start(problem, conditional_gradient, STARTS, starts).matrix,
    ]
    gromov = _least(tried, A, B, Objective.J)
    flat = uniform_plan(b, n, A)
    least = {Objective.J: value(gromov, A, B, Objective.J)}
    for objective in (Objective.J_A, Objective.J_B):
        own = _problem(A, B, objective)
        found = [mirror_descent(own, start, outer=OUTER, inner=INNER).matrix for start in (flat, gromov)]
        least[objective] = value(_least([gromov, flat, *found], A, B, objective), A, B, objective)
    rows = zip(exact.tolist(), *(least[objective].tolist() for objective in Objective), strict=True)
    return [Minima(*row) for row in rows]


def _least(plans: Sequence[Tensor], A: Tensor, B: Tensor, objective: Objective) -> Tensor:
    """(b, n, n) the best of several plans (b, n, n), pair by pair."""
    costs = torch.stack([value(plan, A, B, objective) for plan in plans])
    return torch.stack(list(plans))[costs.argmin(0), torch.arange(len(A))]


def _problem(A: Tensor, B: Tensor, objective: Objective) -> MatchingProblem:
    term = EdgeTerm(A, B, Divergence.SQUARED)
    ones = torch.ones(A.shape[:2], dtype=A.dtype)
    return MatchingProblem(torch.zeros_like(A), (term,), ones, SelfLoops.INCLUDED, Relaxation(objective))


def ring_plan(positions: int, seed: int) -> Tensor:
    """(6, 6) plan of an untrained matcher for random slot states and a six-ring as the target."""
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(1, 6, STATE, dtype=torch.float64, generator=generator)
    return _matcher(positions, seed).plan(states, GraphBatch.collate([CYCLE]))[0].detach()


def equivariance_error(positions: int, seed: int, draws: int) -> float:
    """Largest difference between the plan of a permuted random target and the permuted plan."""
    generator = torch.Generator().manual_seed(seed)
    matcher, worst = _matcher(positions, seed), 0.0
    for _ in range(draws):
        edges = (torch.rand(6, 6, generator=generator) < 0.5).triu(1).nonzero()
        graph = Graph.build(6, edges.numpy())
        order = torch.randperm(6, generator=generator)
        states = torch.randn(1, 6, STATE, dtype=torch.float64, generator=generator)
        targets = (GraphBatch.collate([each]) for each in (graph, graph.permute(order.numpy())))
        plan, moved = (matcher.plan(states, target)[0].detach() for target in targets)
        worst = max(worst, float((plan[:, order] - moved).abs().max()))
    return worst


def _matcher(positions: int, seed: int) -> LearnedMatcher:
    """An untrained matcher of six slots, its weights a function of the seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = TargetEncoder(CYCLE.vocabulary, WIDTH, 3, positions, random_signs=False, dropout=0.0)
        matcher = LearnedMatcher(
            encoder,
            slots=6,
            state_width=STATE,
            target_width=WIDTH,
            dimension=8,
            embedding_plan=l1_plan,
            temperature=Temperature(6e-3),
            iterations=200,
            loss=LossSettings(),
        )
    return matcher.double().eval()
