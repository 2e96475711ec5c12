"""What moves the weights, AdamW or Muon for matrices and AdamW for the rest, and their running mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.optim.adamw import adamw

from graphwright.models import GraphPredictor
from graphwright.settings import OptimizerKind

MOMENTUM = 0.95
RMS = 0.2
"""Root mean square of an entry of a step of rate one, which is about AdamW's: one learning rate serves both."""
QUINTIC = (3.4445, -4.7750, 2.0315)
"""a, b, c of a step x <- a x + b x^3 + c x^5 on all singular values at once (Jordan et al. 2024): five steps bring
those from 0.01 to 1 into 0.7 to 1.2, which is orthogonal enough."""
STEPS = 5
SMALLEST = 8
"""A matrix with a side no longer than this, such as a last layer to one logit, is left to AdamW."""


def build_optimizer(
    kind: OptimizerKind,
    parts: Iterable[nn.Module],
    rate: float,
    decay: float,
    products: torch.dtype = torch.float32,
) -> torch.optim.Optimizer:
    """The optimiser of some modules; products: the precision in which it may multiply."""
    if kind is OptimizerKind.ADAMW:
        groups = [{"params": list(part.parameters())} for part in parts]
        return torch.optim.AdamW([group for group in groups if group["params"]], lr=rate, weight_decay=decay)
    halves: list[dict[str, Any]] = []
    for part in parts:
        matrices, others = split_parameters(part)
        halves += [{"params": matrices, "matrices": True}, {"params": others, "matrices": False}]
    return Muon([group for group in halves if group["params"]], rate, decay, products)


def split_parameters(module: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """The weights that multiply vectors (of linear layers, attention, convolutions), and all others.

    Rows of an embedding, queries, codes and biases are vectors of their own: nothing is to be orthogonal there.
    """
    matrices: list[Tensor] = []
    for layer in module.modules():
        if isinstance(layer, nn.Embedding | nn.EmbeddingBag):
            continue
        matrices += [
            value
            for name, value in layer.named_parameters(recurse=False)
            if name.endswith("weight") and value.ndim >= 2 and min(value.flatten(1).shape) > SMALLEST
        ]
    chosen = {id(value) for value in matrices}
    return matrices, [value for value in module.parameters() if id(value) not in chosen]


class Muon(torch.optim.Optimizer):
    """Momentum whose step is brought near the nearest orthogonal matrix (Jordan et al. 2024), for matrices.

    All directions of a weight then move alike, also those that few samples speak of. A convolution counts as the
    matrix (out, in * height * width). Groups that are not `matrices` get AdamW. Torch has a Muon of its own, which
    takes matrices of two dimensions only; it is the convolutions that gain the most.
    """

    def __init__(
        self,
        groups: Sequence[dict[str, Any]],
        rate: float,
        decay: float,
        products: torch.dtype = torch.float32,
    ) -> None:
        self.products = products
        super().__init__(groups, {"lr": rate, "weight_decay": decay, "matrices": True})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One update from the gradients at hand."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            parameters = [value for value in group["params"] if value.grad is not None]
            if group["matrices"]:
                self._move_matrices(parameters, group["lr"], group["weight_decay"])
            else:
                self._move_others(parameters, group["lr"], group["weight_decay"])
        return loss

    def _move_matrices(self, parameters: list[Tensor], rate: float, decay: float) -> None:
        directions = []
        for parameter in parameters:
            state = self.state[parameter]
            if not state:
                state["momentum"] = torch.zeros_like(parameter)
            momentum, gradient = state["momentum"], parameter.grad
            assert gradient is not None
            momentum.lerp_(gradient, 1 - MOMENTUM)
            directions.append(gradient.lerp(momentum, MOMENTUM).flatten(1))
        for parameter, step in zip(parameters, _orthogonal_together(directions, self.products), strict=True):
            parameter.mul_(1 - rate * decay).add_(
                step.view_as(parameter), alpha=-rate * RMS * max(step.shape) ** 0.5
            )

    def _move_others(self, parameters: list[Tensor], rate: float, decay: float) -> None:
        for parameter in parameters:
            state = self.state[parameter]
            if not state:
                state["step"] = torch.zeros((), dtype=torch.float32)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
        states = [self.state[parameter] for parameter in parameters]
        adamw(
            parameters,
            [value.grad for value in parameters if value.grad is not None],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            foreach=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=rate,
            weight_decay=decay,
            eps=1e-8,
            maximize=False,
        )


def _orthogonal_together(matrices: list[Tensor], products: torch.dtype) -> list[Tensor]:
    """`orthogonal` of each; processes, whose gradients are the same by now, share the work.

    Matrices of one shape are taken together: one by one, most of the time goes into calling products.
    """
    if not matrices:
        return []
    shared = distributed.is_available() and distributed.is_initialized()
    processes, rank = (distributed.get_world_size(), distributed.get_rank()) if shared else (1, 0)
    # Every result is one process's plus zeros, the same on all of them to the last bit.
    sizes = [matrix.numel() for matrix in matrices]
    results = matrices[0].new_zeros(sum(sizes))
    pieces = torch.split(results, sizes)
    parts = [piece.view_as(matrix) for piece, matrix in zip(pieces, matrices, strict=True)]
    by_shape = sorted(range(len(matrices)), key=lambda index: matrices[index].shape)
    for _, alike in groupby(by_shape[rank::processes], key=lambda index: matrices[index].shape):
        own = list(alike)
        steps = orthogonal(torch.stack([matrices[index] for index in own]), products)
        for index, step in zip(own, steps, strict=True):
            parts[index].copy_(step)
    if processes > 1:
        distributed.all_reduce(results)
    return parts


def orthogonal(matrices: Tensor, products: torch.dtype | None = None) -> Tensor:
    """(..., m, n) near U V' of each matrix's singular value decomposition, by Newton-Schulz steps; zero for zero.

    products: in which precision, if not the matrices' own. Singular values end anywhere between 0.7 and 1.2, so
    that bfloat16 does.
    """
    a, b, c = QUINTIC
    tall = matrices.shape[-2] > matrices.shape[-1]
    wide = (matrices.mT if tall else matrices).reshape(-1, *sorted(matrices.shape[-2:]))
    norms = wide.flatten(1).norm(dim=1).clamp_min(torch.finfo(wide.dtype).tiny ** 0.5)
    x = (wide / norms[:, None, None]).to(products or wide.dtype)
    for _ in range(STEPS):
        square = torch.bmm(x, x.mT)
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    steps = x.to(matrices.dtype)
    result: Tensor = (steps.mT if tall else steps).reshape(matrices.shape)
    return result


class WeightAverage(nn.Module):
    """theta <- decay theta + (1 - decay) weights, after every step; buffers are the predictor's last.

    At first the decay is lower, (t + 1) / (t + 10) after t steps: a fixed one would remember the random start.
    """

    def __init__(self, predictor: GraphPredictor, decay: float) -> None:
        super().__init__()
        self.predictor = deepcopy(predictor).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, predictor: GraphPredictor, step: int) -> None:
        """Take in the weights after step `step`, counted from 0."""
        share = 1 - min(self.decay, (step + 1) / (step + 10))
        means: list[Tensor] = list(self.predictor.parameters())
        weights: list[Tensor] = list(predictor.parameters())
        torch._foreach_lerp_(means, weights, share)
        for mean, value in zip(self.predictor.buffers(), predictor.buffers(), strict=True):
            mean.copy_(value)
