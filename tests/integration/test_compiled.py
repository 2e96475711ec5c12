"""torch.compile gives what eager torch gives, forward and backward, for the loss and for Sinkhorn."""

import numpy as np
import pytest
import torch

from graphwright.losses import LossSettings, graph_loss
from graphwright.transport import sinkhorn
from graphwright.transport.native import library
from tiny import random_batch, random_prediction

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, about itself


@pytest.mark.parametrize("kernels", ["with", "without"])
def test_the_compiled_sinkhorn_is_the_eager_one(kernels, monkeypatch):
    """Without kernels, as on a GPU, the steps themselves are compiled."""
    if kernels == "without":
        monkeypatch.setattr(library, "load_kernels", lambda: None)
    torch._dynamo.reset()
    torch.manual_seed(0)
    cost = torch.rand(3, 6, 6)

    def plan_and_gradient(solve):
        own = cost.clone().requires_grad_()
        plan = solve(own)
        (plan * torch.arange(6.0)).sum().backward()
        return plan.detach(), own.grad

    def solve(cost):
        return sinkhorn(cost, epsilon=0.05, iterations=20).matrix

    compiled = plan_and_gradient(torch.compile(solve))
    for found, expected in zip(compiled, plan_and_gradient(solve), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_the_compiled_loss_is_the_eager_one():
    target = random_batch(np.random.default_rng(0), [3, 5, 4], 5)
    plan = torch.full((3, 5, 5), 0.2)

    def total(presence, edges, node_labels):
        prediction = type(given)(presence, edges, node_labels)
        return graph_loss(prediction, target, plan, settings=LossSettings()).total

    given = random_prediction(torch.Generator().manual_seed(0), 3, 5, dtype=torch.float32)
    tensors = (given.presence, given.edges, given.node_labels)

    def value_and_gradients(loss):
        own = [tensor.clone().requires_grad_() for tensor in tensors]
        value = loss(*own)
        value.sum().backward()
        return [value.detach(), *(tensor.grad for tensor in own)]

    compiled = value_and_gradients(torch.compile(total))
    for found, expected in zip(compiled, value_and_gradients(total), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
