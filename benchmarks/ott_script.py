"""ott-jax's Sinkhorn on given costs, run by the Python of its own environment, without graphwright and torch.

`python -I ott_script.py FOLDER EPSILON ITERATIONS THREADS REPEATS` reads cost.npy and gradient.npy, (b, n, n)
float32, writes plan.npy and cost_gradient.npy, and prints the milliseconds of every repeat as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np


def passes(epsilon: float, iterations: int) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Compiled: costs and the plans' gradient to unit-marginal plans and the costs' gradient."""
    import jax  # type: ignore[import-not-found, unused-ignore]
    from ott.geometry.geometry import Geometry  # type: ignore[import-not-found, unused-ignore]
    from ott.problems.linear.linear_problem import (  # type: ignore[import-not-found, unused-ignore]
        LinearProblem,
    )
    from ott.solvers.linear.sinkhorn import Sinkhorn  # type: ignore[import-not-found, unused-ignore]

    # As many steps as ours, none skipped, unrolled: it differentiates the same number of steps.
    solver = Sinkhorn(
        threshold=0.0,
        inner_iterations=iterations,
        min_iterations=iterations,
        max_iterations=iterations,
        implicit_diff=None,
        use_danskin=False,
    )

    def plan(cost: Any) -> Any:
        return solver(LinearProblem(Geometry(cost_matrix=cost, epsilon=epsilon))).matrix * cost.shape[0]

    def both(cost: Any, gradient: Any) -> tuple[Any, Any]:
        plans, backward = jax.vjp(jax.vmap(plan), cost)
        return plans, backward(gradient)[0]

    compiled: Callable[[Any, Any], tuple[Any, Any]] = jax.jit(both)
    return compiled


def main(folder: Path, epsilon: float, iterations: int, threads: int, repeats: int) -> None:
    """Measure after a call that compiles."""
    if hasattr(os, "sched_setaffinity"):  # jax has no dependable setting for this
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    run = passes(epsilon, iterations)
    cost, gradient = np.load(folder / "cost.npy"), np.load(folder / "gradient.npy")
    plans, cost_gradient = run(cost, gradient)
    np.save(folder / "plan.npy", np.asarray(plans))
    np.save(folder / "cost_gradient.npy", np.asarray(cost_gradient))
    times = []
    for _ in range(repeats):
        start = perf_counter()
        for result in run(cost, gradient):
            result.block_until_ready()
        times.append(1000 * (perf_counter() - start))
    print(json.dumps(times))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
