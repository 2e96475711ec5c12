"""Solvers beside POT's and scipy's, on the same problems: mirror descent and conditional gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from scipy.optimize import quadratic_assignment
from torch import Tensor

from graphwright.bench.case import Case, make_case
from graphwright.bench.peak_memory import peaks
from graphwright.bench.pot import LOOP_NAMES, load_pot, pot_batch, pot_loop
from graphwright.bench.row import Row
from graphwright.bench.timing import interleaved_milliseconds
from graphwright.training.threads import threads
from graphwright.transport import conditional_gradient, mirror_descent, permutation_matrix

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
    found = [
        quadratic_assignment(a, b, "faq", {"maximize": True, "maxiter": steps, "rng": rng}).col_ind
        for a, b in zip(first, second, strict=True)
    ]
    return permutation_matrix(torch.stack([torch.from_numpy(columns) for columns in found]), case.problem.linear)
