"""Costs as the learned matcher makes them, a pass of Sinkhorn over them, and the Sinkhorn one writes first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.plans import exact_marginals
from graphwright.matching import epsilon_of
from graphwright.transport import sinkhorn


def eager_sinkhorn(cost: Tensor, epsilon: float, iterations: int) -> Tensor:
    """(b, n, n) plans of costs (b, n, n): what `transport.sinkhorn` computes, averaged last half step included."""
    kernel = -cost / epsilon
    column = torch.zeros_like(kernel[:, 0])
    for _ in range(iterations):
        row = -torch.logsumexp(kernel + column[:, None, :], 2)
        column = -torch.logsumexp(kernel + row[:, :, None], 1)
    last_row = -torch.logsumexp(kernel + column[:, None, :], 2)
    averaged = torch.logaddexp(row, last_row) - math.log(2)
    return torch.exp(kernel + averaged[:, :, None] + column[:, None, :])


TEMPERATURE = 4.5e-3
"""Coloring 10's in the paper."""
ITERATIONS = 20
WIDTH = 64
"""Width of the compared embeddings in the -cpu presets."""

Plans = Callable[[Tensor, float, int], Tensor]
"""cost (b, n, n), epsilon, iterations -> plans (b, n, n), differentiable."""


@dataclass(frozen=True, eq=False)
class SinkhornCase:
    """Costs (b, n, n) that sum to one, the gradient (b, n, n) that comes back to their plans, and epsilon."""

    cost: Tensor
    gradient: Tensor
    epsilon: float

    def pass_through(self, plans: Plans) -> tuple[Tensor, Tensor]:
        """Forward and backward: plans (b, n, n), detached, and the gradient in the costs (b, n, n)."""
        cost = self.cost.detach().requires_grad_()
        matrix = plans(cost, self.epsilon, ITERATIONS)
        (result,) = torch.autograd.grad(matrix, cost, self.gradient)
        return matrix.detach(), result

    def mean_objective(self, plan: Tensor) -> float:
        """Mean over the batch of n <C, T>, T brought to exact marginals; costs are of order one at every n."""
        n = self.cost.shape[1]
        return float((n * self.cost * exact_marginals(plan)).sum((1, 2)).mean())


def make_sinkhorn_case(batch: int, n: int, *, sharp: bool = False, seed: int = 0) -> SinkhornCase:
    """L1 distances, divided by their sum, of random embeddings: what an untrained matcher meets.

    sharp: the second embeddings are a shuffled, blurred copy of the first, as a trained matcher has them; its
    plans are permutations but for 1e-3, and most kernel entries underflow.
    """
    generator = torch.Generator().manual_seed(seed)
    slots, nodes = torch.randn(2, batch, n, WIDTH, generator=generator)
    if sharp:
        order = torch.rand(batch, n, generator=generator).argsort(1)
        nodes = nodes + slots.gather(1, order[:, :, None].expand(-1, -1, WIDTH))
    cost = torch.cdist(slots, nodes, p=1)
    gradient = torch.randn(batch, n, n, generator=generator)
    return SinkhornCase(cost / cost.sum((1, 2), keepdim=True), gradient, epsilon_of(TEMPERATURE, n, WIDTH))


def our_plans(cost: Tensor, epsilon: float, iterations: int) -> Tensor:
    """`transport.sinkhorn`, its plans alone."""
    return sinkhorn(cost, epsilon, iterations).matrix


IMPLEMENTATIONS: dict[str, Plans] = {"ours": our_plans, "eager": eager_sinkhorn}
"""What the memory benchmark runs, each in a process of its own."""
