"""Products by oneDNN are those of torch."""

import pytest
import torch
from torch.nn import functional

from graphwright.models import arithmetic as module
from graphwright.models.arithmetic import Linear, linear

SHAPES = [(3000, 24, 40), (1, 1000, 1200), (70_000, 16, 1), (40, 160, 160)]


@pytest.fixture
def products(monkeypatch):
    """How many products oneDNN was given."""
    counted = []
    product = module._product
    monkeypatch.setattr(module, "_product", lambda *given: counted.append(1) or product(*given))
    return counted


def tensors(rows, k, n, *, bias=True, dtype=torch.float32):
    made = [torch.randn(rows, k, dtype=dtype), torch.randn(n, k, dtype=dtype)]
    return [value.requires_grad_() for value in [*made, *([torch.randn(n, dtype=dtype)] if bias else [])]]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients_are_torchs(shape, bias, products):
    torch.manual_seed(0)
    given = tensors(*shape, bias=bias)
    ours, theirs = linear(*given), functional.linear(*given)
    direction = torch.randn_like(ours)
    scale = shape[0] ** 0.5
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    for own, other in zip(
        torch.autograd.grad(ours, given, direction), torch.autograd.grad(theirs, given, direction), strict=True
    ):
        torch.testing.assert_close(own, other, atol=1e-4 * scale, rtol=1e-4)
    assert len(products) == (3 if torch._C._get_mkldnn_enabled() else 0)


def test_leading_dimensions_and_strides_do_not_matter(products):
    rows, weight = torch.randn(50, 8, 30).transpose(0, 1), torch.randn(90, 30)
    torch.testing.assert_close(linear(rows, weight), functional.linear(rows, weight), atol=1e-4, rtol=1e-4)
    rows.requires_grad_()
    ours, theirs = linear(rows, weight), functional.linear(rows, weight)
    direction = torch.randn(8, 90, 50).mT
    for one in (ours, theirs):
        assert one.shape == (8, 50, 90)
    (own,), (other,) = (torch.autograd.grad(one, [rows], direction) for one in (ours, theirs))
    torch.testing.assert_close(own, other, atol=1e-4, rtol=1e-4)
    assert products


def test_a_frozen_weight_and_an_input_without_gradient_cost_nothing(products):
    rows, weight = torch.randn(4000, 30), torch.randn(90, 30, requires_grad=True)
    linear(rows, weight).sum().backward()
    assert weight.grad is not None
    assert len(products) == 2


def test_what_onednn_is_not_for_is_left_to_torch(products):
    assert torch.autograd.gradcheck(linear, tensors(5, 4, 3, dtype=torch.float64))
    large = tensors(3000, 24, 40, dtype=torch.float64)
    assert torch.equal(linear(*large), functional.linear(*large))
    small = tensors(5, 4, 3)
    assert torch.equal(linear(*small), functional.linear(*small))
    given = tensors(3000, 24, 40)
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(*given).dtype is torch.bfloat16
    assert linear(*(value.to("meta") for value in given)).shape == (3000, 40)
    assert not products


def test_a_layer_has_torchs_parameters():
    torch.manual_seed(0)
    ours = Linear(3, 4)
    torch.manual_seed(0)
    theirs = torch.nn.Linear(3, 4)
    assert {name: value.tolist() for name, value in ours.state_dict().items()} == {
        name: value.tolist() for name, value in theirs.state_dict().items()
    }
