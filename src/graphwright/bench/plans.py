"""Solvers beside POT's, on the same problems: mirror descent and conditional gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphwright.bench.row import Row
from graphwright.bench.timing import best_milliseconds, threads
from graphwright.transport import (
    Divergence,
    EdgeTerm,
    MatchingProblem,
    SelfLoops,
    conditional_gradient,
    mirror_descent,
    project,
)
from graphwright.transport.divergences import safe_log

TAU = 0.1
STEPS = 20
"""Inner and outer iterations at most, ours and the peer's; both stop earlier when converged."""
OUTER, OUTER_WITH_LABELS = 25, 40
"""Our outer iterations: a few more than the peer's, so that the time is for an objective that is no higher."""


@dataclass(frozen=True)
class Case:
    """Noisy copies of random graphs: predictions (b, n, n) in [0, 1], targets, and label costs when fused."""

    problem: MatchingProblem
    prediction: Tensor
    target: Tensor
    labels: Tensor | None


def make_case(batch: int, n: int, fused: bool, seed: int = 0) -> Case:
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
    labels = None
    linear = torch.zeros(batch, n, n)
    if fused:
        true = torch.randint(4, (batch, n), generator=generator)
        scores = torch.nn.functional.one_hot(true, 4) + 0.5 * torch.randn(batch, n, 4, generator=generator)
        wanted = torch.nn.functional.one_hot(true.gather(1, order), 4).float()
        labels = torch.cdist(scores, wanted).square()
        linear = labels / n
    term = EdgeTerm(prediction, target, Divergence.SQUARED)
    problem = MatchingProblem(linear, (term,), torch.ones(batch, n), SelfLoops.INCLUDED)
    return Case(problem, prediction, target, labels)


def measure_plans(sizes: tuple[int, ...] = (10, 20, 32, 60), batch: int = 128, repeats: int = 5) -> Iterator[Row]:
    """Rows for every size, plain and with labels, on one thread and two."""
    try:
        import ot
    except ImportError as error:
        raise ImportError("the peer of this benchmark is POT: pip install 'graphwright[bench]'") from error
    for count in (1, 2):
        with threads(count):
            for n in sizes:
                for fused in (False, True):
                    yield from _rows(ot, make_case(batch, n, fused), count, repeats)


def _rows(ot: Any, case: Case, count: int, repeats: int) -> Iterator[Row]:
    outer = OUTER if case.labels is None else OUTER_WITH_LABELS
    suffix = "" if case.labels is None else ", labels"
    batched: Callable[[], Tensor] = lambda: _pot_batch(ot, case)  # noqa: E731
    looped: Callable[[], Tensor] = lambda: _pot_loop(ot, case)  # noqa: E731
    function = "gromov_wasserstein" if case.labels is None else "fused_gromov_wasserstein"
    yield _compare(
        f"mirror descent{suffix}",
        "ot.batch.solve_gromov_batch",
        case,
        count,
        lambda: mirror_descent(case.problem, tau=TAU, outer=outer, inner=STEPS).matrix,
        batched,
        repeats,
    )
    yield _compare(
        f"conditional gradient{suffix}",
        f"ot.gromov.{function}, loop",
        case,
        count,
        lambda: conditional_gradient(case.problem, iterations=STEPS).matrix,
        looped,
        repeats,
    )


def _compare(
    name: str,
    peer: str,
    case: Case,
    count: int,
    ours: Callable[[], Tensor],
    theirs: Callable[[], Tensor],
    repeats: int,
) -> Row:
    batch, n = case.problem.batch, case.problem.capacity
    return Row(
        name,
        n,
        batch,
        count,
        best_milliseconds(ours, repeats) / batch,
        peer,
        best_milliseconds(theirs, repeats) / batch,
        _mean_objective(case.problem, ours()),
        _mean_objective(case.problem, theirs()),
    )


def _mean_objective(problem: MatchingProblem, plan: Tensor) -> float:
    """Mean objective once the plan's marginals are exact, so that nobody gains by missing them."""
    exact = project(safe_log(plan.to(problem.linear)), 200).matrix
    return float(problem.objective(exact).mean())


def _pot_batch(ot: Any, case: Case) -> Tensor:
    """(b, n, n) unit-marginal plans of POT's batched mirror descent, at the same tau and step counts."""
    # Its gradient is that of the alpha = 1/2 mean, half of ours, hence half the regularisation.
    fused = {} if case.labels is None else {"M": case.labels, "alpha": 0.5}
    result = ot.batch.solve_gromov_batch(
        case.prediction,
        case.target,
        reg=TAU if case.labels is None else TAU / 2,
        symmetric=True,
        max_iter=STEPS,
        max_iter_inner=STEPS,
        grad="detach",
        **fused,
    )
    plan: Tensor = result.plan * case.problem.capacity
    return plan


def _pot_loop(ot: Any, case: Case) -> Tensor:
    """(b, n, n) unit-marginal plans of POT's conditional gradient, sample by sample, at the same step count."""
    first, second = case.prediction.double().numpy(), case.target.double().numpy()
    plans = []
    for at in range(len(first)):
        if case.labels is None:
            plan = ot.gromov.gromov_wasserstein(first[at], second[at], symmetric=True, max_iter=STEPS)
        else:
            costs = case.labels[at].double().numpy()
            plan = ot.gromov.fused_gromov_wasserstein(
                costs, first[at], second[at], symmetric=True, alpha=0.5, max_iter=STEPS
            )
        plans.append(torch.from_numpy(plan))
    return torch.stack(plans) * case.problem.capacity
