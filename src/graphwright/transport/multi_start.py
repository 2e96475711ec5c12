"""Several starts of a solver, the best result kept sample by sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import torch
from torch import Tensor

from graphwright.transport.checks import check_count
from graphwright.transport.conditional_gradient import conditional_gradient
from graphwright.transport.problem import MatchingProblem, Plan, uniform_plan
from graphwright.transport.relaxations import SelfLoops
from graphwright.transport.sinkhorn import sinkhorn

Solver = Callable[[MatchingProblem, Tensor], Plan]
"""A problem and a start (b, n, n) to a plan: `mirror_descent`, `conditional_gradient`, or a partial of them."""


@torch.no_grad()
def multi_start(problem: MatchingProblem, solver: Solver, starts: int, generator: torch.Generator) -> Plan:
    """Run a solver from the uniform plan and from `starts - 1` random ones; keep each sample's lowest objective.

    The random starts are bistochastic and centred on the uniform plan, and the same for every sample, so that no
    sample depends on the others of its batch. `generator` makes them reproducible.
    """
    check_count("starts", starts)
    uniform = uniform_plan(problem.batch, problem.capacity, problem.linear)
    best = solver(problem, uniform)
    for _ in range(starts - 1):
        noise = torch.randn(
            1, *uniform.shape[1:], generator=generator, dtype=uniform.dtype, device=generator.device
        )
        start = sinkhorn(noise.to(uniform.device), epsilon=1.0, iterations=20).matrix
        best = _better(best, solver(problem, start.expand_as(uniform).contiguous()))
    return best


@torch.no_grad()
def aligning_plan(problem: MatchingProblem, starts: int = 1) -> Plan:
    """A plan that is to be rounded: conditional gradient on J from the best of a few starts.

    The starts are followed without self-loops, which agrees on permutations and lets a plan stay spread until it
    must decide: with them four starts lose half of the hexagons on 24 slots that are predicted exactly.
    """
    lenient = replace(problem, self_loops=SelfLoops.EXCLUDED)
    generator = torch.Generator().manual_seed(0)
    return conditional_gradient(problem, multi_start(lenient, conditional_gradient, starts, generator).matrix)


def _better(first: Plan, second: Plan) -> Plan:
    wins = second.objective < first.objective
    chosen = {}
    for field in fields(Plan):
        old, new = getattr(first, field.name), getattr(second, field.name)
        chosen[field.name] = torch.where(wins.view(-1, *[1] * (old.ndim - 1)), new, old)
    return replace(first, **chosen)
