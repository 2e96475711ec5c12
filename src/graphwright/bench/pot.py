"""POT's solvers as peers, on the same problems and in the same convention as ours."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graphwright.bench.case import Case

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
