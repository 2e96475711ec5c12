"""Solvers beside POT's and scipy's, on the same problems: mirror descent and conditional gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import quadratic_assignment
from torch import Tensor
from torch.nn.functional import one_hot

from benchmarks.measurement import Row, interleaved_milliseconds, peaks
from graphwright.graphs import GraphBatch, Vocabulary
from graphwright.training.processes import threads
from graphwright.transport import (
    Divergence,
    EdgeTerm,
    MatchingProblem,
    SelfLoops,
    conditional_gradient,
    mirror_descent,
    permutation_matrix,
    project,
)
from graphwright.transport.relaxations import safe_log

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


LOOP_NAMES = {False: "ot.gromov.gromov_wasserstein, loop", True: "ot.gromov.fused_gromov_wasserstein, loop"}
"""What `pot_loop` calls, without and with labels."""


def load_pot() -> Any:
    """The module `ot`, or how to get it."""
    try:
        import ot
    except ImportError as error:
        raise ImportError("the peer of this benchmark is POT: pip install 'graphwright[bench]'") from error
    return ot


def pot_batch(ot: Any, case: Case, tau: float, steps: int) -> Tensor:
    """(b, n, n) unit-marginal plans of POT's batched mirror descent, at the same tau and step counts."""
    # Its gradient is that of the alpha = 1/2 mean, half of ours, hence half the regularisation.
    fused = {} if case.labels is None else {"M": case.labels, "alpha": 0.5}
    result = ot.batch.solve_gromov_batch(
        case.prediction,
        case.target,
        reg=tau if case.labels is None else tau / 2,
        symmetric=True,
        max_iter=steps,
        max_iter_inner=steps,
        grad="detach",
        **fused,
    )
    plan: Tensor = result.plan * case.problem.capacity
    return plan


def pot_loop(ot: Any, case: Case, steps: int) -> Tensor:
    """(b, n, n) unit-marginal plans of Any2Graph's way: POT's conditional gradient with EMD, sample by sample."""
    first, second = case.prediction.double().numpy(), case.target.double().numpy()
    plans = []
    for at in range(len(first)):
        if case.labels is None:
            plan = ot.gromov.gromov_wasserstein(first[at], second[at], symmetric=True, max_iter=steps)
        else:
            costs = case.labels[at].double().numpy()
            plan = ot.gromov.fused_gromov_wasserstein(
                costs, first[at], second[at], symmetric=True, alpha=0.5, max_iter=steps
            )
        plans.append(torch.from_numpy(plan))
    return torch.stack(plans) * case.problem.capacity


def pot_sinkhorn(ot: Any, cost: Tensor, epsilon: float, iterations: int) -> Tensor:
    """(b, n, n) column-exact plans of POT's batched log-domain Sinkhorn, every step of it differentiated."""
    result = ot.batch.solve_batch(
        cost, epsilon, max_iter=iterations, tol=0.0, method="log_sinkhorn", grad="autodiff"
    )
    plan: Tensor = result.plan * cost.shape[1]
    return plan


TAU = 0.1
STEPS = 20
"""Inner and outer iterations at most, ours and the peer's; both stop earlier when converged."""
OUTER, OUTER_WITH_LABELS = 25, 40
"""Our outer iterations: a few more than the peer's, so that the time is for an objective that is no higher."""

Solve = Callable[[], Tensor]


def measure_plans(
    sizes: tuple[int, ...] = (10, 20, 32, 60),
    batch: int = 128,
    repeats: int = 5,
    thread_counts: tuple[int, ...] = (1, 2),
) -> Iterator[Row]:
    """Rows for every size, plain and with labels, on each number of threads."""
    ot = load_pot()
    for count in thread_counts:
        with threads(count):
            for n in sizes:
                for fused in (False, True):
                    case = make_case(batch, n, fused=fused)
                    for name, ours, peers in _contests(ot, case):
                        yield from _rows(name, case, count, ours, peers, repeats)


def _contests(ot: object, case: Case) -> Iterator[tuple[str, Solve, dict[str, Solve]]]:
    """Name, our solver, and its peers by name."""
    fused = case.labels is not None
    outer = OUTER_WITH_LABELS if fused else OUTER
    suffix = ", labels" if fused else ""
    yield (
        f"mirror descent{suffix}",
        lambda: mirror_descent(case.problem, tau=TAU, outer=outer, inner=STEPS).matrix,
        {"ot.batch.solve_gromov_batch": lambda: pot_batch(ot, case, TAU, STEPS)},
    )
    peers: dict[str, Solve] = {LOOP_NAMES[fused]: lambda: pot_loop(ot, case, STEPS)}
    if not fused:  # scipy's solver has no place for label costs
        peers["scipy.optimize.quadratic_assignment, loop"] = lambda: scipy_loop(case, STEPS)
    yield (
        f"conditional gradient{suffix}",
        lambda: conditional_gradient(case.problem, iterations=STEPS).matrix,
        peers,
    )


def _rows(name: str, case: Case, count: int, ours: Solve, peers: dict[str, Solve], repeats: int) -> Iterator[Row]:
    batch, n = case.problem.batch, case.problem.capacity
    own, *others = interleaved_milliseconds([ours, *peers.values()], repeats)
    reached = case.mean_objective(ours())
    for (peer, solve), time in zip(peers.items(), others, strict=True):
        theirs = case.mean_objective(solve())
        figures = (own / batch, peer, time / batch, reached, theirs)
        yield Row(name, n, batch, count, *figures, extras=peaks(ours, solve))


def scipy_loop(case: Case, steps: int) -> Tensor:
    """(b, n, n) permutations of scipy's fast approximate quadratic assignment, sample by sample.

    With unit marginals the squared Gromov-Wasserstein objective is a constant less twice <A T, T B>.
    """
    first, second = case.prediction.double().numpy(), case.target.double().numpy()
    rng = np.random.default_rng(0)  # not drawn from: the start is uniform; but scipy warns of the global one
    assigned = [
        quadratic_assignment(a, b, "faq", {"maximize": True, "maxiter": steps, "rng": rng}).col_ind
        for a, b in zip(first, second, strict=True)
    ]
    return permutation_matrix(
        torch.stack([torch.from_numpy(columns) for columns in assigned]), case.problem.linear
    )
