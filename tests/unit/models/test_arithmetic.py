"""Products by oneDNN are those of torch."""

import pytest
import torch
from torch.nn import functional

from graphwright.models import arithmetic as module
from graphwright.models.arithmetic import Conv2d, Linear, attend, half_is_fast, linear

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
    with torch.autocast("cpu", torch.float16):
        assert linear(*given).dtype is torch.float16
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


def in_half():
    return torch.autocast("cpu", torch.bfloat16)


def relative(one, other):
    return float((one - other).detach().norm() / other.detach().norm())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [*SHAPES, (5, 4, 3)])
def test_under_autocast_products_are_rounded_and_everything_else_is_single(shape, bias):
    torch.manual_seed(0)
    given = tensors(*shape, bias=bias)
    # The same of factors that bfloat16 can hold.
    rounded = [value.detach().bfloat16().float().requires_grad_() for value in given[:2]] + given[2:]
    with in_half():
        ours = linear(*given)
    theirs = functional.linear(*rounded)
    direction = torch.randn_like(theirs)
    assert ours.dtype is torch.float32
    assert 0 < relative(ours, theirs) < 4e-3  # results are rounded once
    found = torch.autograd.grad(ours, given, direction)
    expected = torch.autograd.grad(theirs, rounded, direction)
    for own, other in zip(found, expected, strict=True):
        assert own.dtype is torch.float32
        assert relative(own, other) < 1e-2
    if bias:  # a sum, no product
        torch.testing.assert_close(found[2], expected[2], atol=1e-4, rtol=1e-5)


def test_leading_dimensions_and_strides_do_not_matter_in_half():
    torch.manual_seed(0)
    rows, weight = torch.randn(50, 8, 30).transpose(0, 1).requires_grad_(), torch.randn(90, 30)
    with in_half():
        ours = linear(rows, weight)
    theirs = functional.linear(rows, weight)
    assert ours.shape == (8, 50, 90)
    assert relative(ours, theirs) < 1e-2
    direction = torch.randn(8, 90, 50).mT
    (own,), (other,) = (torch.autograd.grad(one, [rows], direction) for one in (ours, theirs))
    assert relative(own, other) < 1e-2


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 1, 1), (5, 2, 2), (2, 2, 0)])
def test_a_convolution_in_half_is_torchs_but_for_rounding(kernel, stride, padding, bias):
    torch.manual_seed(0)
    layer = Conv2d(6, 9, kernel, stride=stride, padding=padding, bias=bias)
    pictures = torch.randn(4, 6, 12, 12).contiguous(memory_format=torch.channels_last).requires_grad_()
    theirs = layer(pictures)
    with in_half():
        ours = layer(pictures)
    assert ours.dtype is torch.float32
    assert 0 < relative(ours, theirs) < 1e-2
    direction = torch.randn_like(theirs)
    wanted = [pictures, *layer.parameters()]
    found, expected = (torch.autograd.grad(one, wanted, direction) for one in (ours, theirs))
    for own, other in zip(found, expected, strict=True):
        assert own.dtype is torch.float32
        assert relative(own, other) < 1e-2


FORMS = [
    {"dilation": 2, "padding": 2},
    {"groups": 3, "padding": 1},
    {"stride": (2, 1), "padding": (0, 2), "dilation": (1, 2), "groups": 3},
    {"padding": "same"},
    {"padding": "valid"},
    {"padding": 1, "padding_mode": "circular"},
]


@pytest.mark.parametrize("shape", [(4, 6, 12, 12), (6, 12, 12)], ids=["batch", "one picture"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_of_convolution_is_torchs_in_half(form, shape):
    torch.manual_seed(0)
    layer, pictures = Conv2d(6, 9, 3, **form), torch.randn(shape, requires_grad=True)
    theirs = layer(pictures)
    with in_half():
        ours = layer(pictures)
    assert (ours.dtype, ours.shape) == (torch.float32, theirs.shape)
    assert 0 < relative(ours, theirs) < 1e-2
    direction = torch.randn_like(theirs)
    wanted = [pictures, *layer.parameters()]
    found, expected = (torch.autograd.grad(one, wanted, direction) for one in (ours, theirs))
    for own, other in zip(found, expected, strict=True):
        assert relative(own, other) < 1e-2


def test_double_precision_stays_as_it_is_under_autocast():
    torch.manual_seed(0)
    rows, weight = torch.randn(50, 30).double(), torch.randn(90, 30).double()
    layer, pictures = Conv2d(3, 9, 3).double(), torch.randn(2, 3, 8, 8).double()
    with in_half():
        assert torch.equal(linear(rows, weight), functional.linear(rows, weight))
        within = layer(pictures)
    assert torch.equal(within, layer(pictures))


def test_no_rows_are_no_results_in_half():
    rows, weight = torch.randn(3, 0, 30, requires_grad=True), torch.randn(90, 30, requires_grad=True)
    with in_half():
        result = linear(rows, weight)
    assert result.shape == (3, 0, 90)
    result.sum().backward()
    assert rows.grad.shape == rows.shape
    assert not weight.grad.any()


def test_a_second_derivative_in_half_is_refused():
    rows, weight = torch.randn(40, 30, requires_grad=True), torch.randn(90, 30)
    with in_half():
        (first,) = torch.autograd.grad(linear(rows, weight).square().sum(), rows, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_without_autocast_a_convolution_is_torchs_to_the_last_bit():
    torch.manual_seed(0)
    ours = Conv2d(3, 8, 3, padding=1)
    theirs = torch.nn.Conv2d(3, 8, 3, padding=1)
    theirs.load_state_dict(ours.state_dict())
    pictures = torch.randn(2, 3, 8, 8)
    assert torch.equal(ours(pictures), theirs(pictures))


def test_attention_stays_in_single_precision():
    torch.manual_seed(0)
    given = [torch.randn(2, 4, 7, 8) for _ in range(3)]
    plain = attend(*given, None, 0.0)
    with in_half():
        assert torch.equal(attend(*given, None, 0.0), plain)


def test_frozen_weights_and_inputs_have_no_gradient_in_half():
    rows, weight = torch.randn(40, 30), torch.randn(90, 30, requires_grad=True)
    with in_half():
        linear(rows, weight).sum().backward()
        layer = Conv2d(3, 9, 3)
        layer(torch.randn(2, 3, 8, 8)).sum().backward()
    assert weight.grad is not None
    assert layer.weight.grad is not None
    with torch.no_grad(), in_half():
        assert not linear(rows, weight).requires_grad


def test_whether_bfloat16_is_fast_is_asked_of_the_processor(monkeypatch):
    for can, fast in (
        ({}, False),
        ({"avx512_bf16": False}, False),
        ({"avx512_bf16": True}, True),
        ({"amx_bf16": True}, True),
    ):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda can=can: can)
        assert half_is_fast(torch.device("cpu")) is fast
    assert not half_is_fast(torch.device("meta"))
