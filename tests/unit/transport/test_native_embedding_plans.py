"""The fused kernel of the learned plan beside torch: the same numbers, on easy and on adversarial input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from graphwright.transport import l1_plan
from graphwright.transport.native import library
from graphwright.transport.native.library import load_kernels
from tiny import embeddings, further_costs

pytestmark = pytest.mark.skipif(load_kernels() is None, reason="no compiled kernels here")


def plan_and_gradients(slots, nodes, counts, padding, weight, epsilon, further=None) -> tuple[Tensor, ...]:
    variables = [tensor.clone().requires_grad_() for tensor in (slots, nodes, padding)]
    plan = l1_plan(variables[0], variables[1], torch.tensor(counts), variables[2], epsilon, 20, further)
    return plan.detach(), *torch.autograd.grad((plan * weight).sum(), variables)


def steepness(slots: Tensor, epsilon: float) -> float:
    """How much a plan may change with a distance; where it hardly does, rounding errors times this remain."""
    total = torch.cdist(slots, slots, p=1).sum((1, 2)).amin().clamp_min(1e-6)
    return 1 / (epsilon * float(total))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 10, 20, 33, 60])
@pytest.mark.parametrize("d", [1, 8, 19, 64])
@pytest.mark.parametrize("temperature", [1.0, 4.5e-3])
@pytest.mark.parametrize("with_further", [False, True])
def test_the_fused_kernel_is_as_exact_as_double_precision_torch(monkeypatch, n, d, temperature, with_further):
    counts = np.random.default_rng(n).integers(0, n + 1, 5).tolist()
    slots, nodes, padding = embeddings(counts, n, d, n, torch.float32)
    weight = torch.randn(5, n, n, generator=torch.Generator().manual_seed(1))
    epsilon = temperature / n**2
    further = further_costs(counts, n, n, torch.float32) if with_further else None
    ours = plan_and_gradients(slots, nodes, counts, padding, weight, epsilon, further)
    monkeypatch.setattr(library, "load_kernels", lambda: None)
    double = (tensor.double() for tensor in (slots, nodes))
    further = None if further is None else further.double()
    exact = plan_and_gradients(*double, counts, padding.double(), weight.double(), epsilon, further)
    assert (ours[0] - exact[0]).abs().max() < 5e-5
    scale = max(gradient.norm() for gradient in exact[1:])
    for found, expected in zip(ours[1:], exact[1:], strict=True):
        assert (found - expected).norm() <= 2e-5 * scale + 1e-6 * steepness(slots, epsilon)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ties_have_no_slope_on_either_path(monkeypatch, dtype):
    generator = torch.Generator().manual_seed(0)
    counts = [3, 5, 6]
    slots = torch.randint(-2, 3, (3, 6, 19), generator=generator).to(dtype)
    nodes, padding = torch.randint(-2, 3, (14, 19), generator=generator).to(dtype), torch.zeros(19, dtype=dtype)
    weight = torch.randn(3, 6, 6, generator=generator, dtype=dtype)
    given = (slots, nodes, counts, padding, weight, 1e-3)
    ours = plan_and_gradients(*given)
    monkeypatch.setattr(library, "load_kernels", lambda: None)
    for found, expected in zip(ours, plan_and_gradients(*given), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


ADVERSARIAL = [
    *[(scale, epsilon) for scale in (1e-6, 1.0, 1e6, 0.0) for epsilon in (1e-8, 1.0)],
    (1e-9, 1e-2),  # so near that their sum is held at its least
    (1e-9, 1e-3),
]


def adversarial(scale: float, counts: list[int]) -> tuple[list[Tensor], Tensor]:
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(len(counts), 7, 7, generator=generator, dtype=torch.float64)
    return [scale * tensor for tensor in embeddings(counts, 7, 6, 3)], weight


@pytest.mark.parametrize(("scale", "epsilon"), ADVERSARIAL)
@pytest.mark.parametrize("with_further", [False, True])
def test_on_adversarial_embeddings_both_paths_agree(monkeypatch, scale, epsilon, with_further):
    counts = [0, 1, 5, 7]
    (slots, nodes, padding), weight = adversarial(scale, counts)
    further = scale * further_costs(counts, 7) if with_further else None
    given = (slots, nodes, counts, padding, weight, epsilon, further)
    ours = plan_and_gradients(*given)
    monkeypatch.setattr(library, "load_kernels", lambda: None)
    expected = plan_and_gradients(*given)
    assert all(tensor.isfinite().all() for tensor in ours)
    torch.testing.assert_close(ours[0], expected[0], rtol=1e-6, atol=1e-8)
    largest = max(steepness(slots, epsilon), *(float(gradient.abs().max()) for gradient in expected[1:]))
    for found, wanted in zip(ours[1:], expected[1:], strict=True):
        torch.testing.assert_close(found / largest, wanted / largest, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("scale", "epsilon"), ADVERSARIAL)
def test_in_single_precision_the_kernel_is_about_as_exact_as_torch(monkeypatch, scale, epsilon):
    counts = [0, 1, 5, 7]
    (slots, nodes, padding), weight = adversarial(scale, counts)
    single = [tensor.float() for tensor in (slots, nodes, padding, weight)]
    given = (single[0], single[1], counts, single[2], single[3], epsilon)
    ours = plan_and_gradients(*given)
    monkeypatch.setattr(library, "load_kernels", lambda: None)
    theirs = plan_and_gradients(*given)
    exact = plan_and_gradients(*(each.double() if isinstance(each, Tensor) else each for each in given))
    assert all(tensor.isfinite().all() for tensor in ours)
    rounding = 1e-5 * steepness(slots, epsilon)
    for at, (found, peer, truth) in enumerate(zip(ours, theirs, exact, strict=True)):
        least = 1e-5 if at == 0 else rounding
        assert (found - truth).abs().max() <= 5 * (peer - truth).abs().max() + least


def test_a_single_slot_has_nothing_to_choose():
    for count in (0, 1):
        slots, nodes, padding = embeddings([count], 1, 5, dtype=torch.float32)
        plan, *gradients = plan_and_gradients(slots, nodes, [count], padding, torch.ones(1, 1, 1), 1e-3)
        assert plan.item() == 1
        assert not any(gradient.any() for gradient in gradients)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads):
    counts = [30 - at % 7 for at in range(64)]
    slots, nodes, padding = embeddings(counts, 30, 32, dtype=torch.float32)
    further = further_costs(counts, 30, dtype=torch.float32)
    weight = torch.randn(64, 30, 30, generator=torch.Generator().manual_seed(1))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = plan_and_gradients(slots, nodes, counts, padding, weight, 5e-6, further)
        torch.set_num_threads(threads)
        together = plan_and_gradients(slots, nodes, counts, padding, weight, 5e-6, further)
    finally:
        torch.set_num_threads(before)
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one, other)
