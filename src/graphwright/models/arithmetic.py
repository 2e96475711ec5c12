"""The arithmetic of all networks: products by oneDNN, in single precision or bfloat16, and sums of rows.

Torch gives the products of linear layers to MKL and convolutions to oneDNN. On processors that are not Intel's
MKL takes a path of half the speed: an AMD EPYC (Zen 5) does 100 to 110 GFLOP/s a core with it, with oneDNN 200 to
260 forward and 110 to 200 for the gradient of the weights.

Under autocast to bfloat16 a processor multiplies in bfloat16, at up to twice that, and does all else in single
precision. Torch's own autocast hands bfloat16 on to attention and normalisation, whose kernels for it are five
times slower than those for single precision, and so loses all that the products gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.nn.functional import embedding_bag


def at_least_float32(tensor: Tensor) -> Tensor:
    """The tensor in at least float32."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def without_autocast(device: torch.device) -> torch.autocast:
    """A context in which products stay in the precision of their factors."""
    return torch.autocast(device.type, enabled=False)


Sizes = tuple[int, ...]

WORTH_IT = 1_000_000
"""Multiplications below which a product is over before the detour has begun."""
_THERE = hasattr(torch.ops.mkldnn, "_linear_pointwise")
"""Whether this build of torch has the operation, which torch's compiler uses and which has no public name."""


def half_is_fast(device: torch.device) -> bool:
    """Whether the device has instructions for products in bfloat16."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    can = torch.cpu.get_capabilities() if device.type == "cpu" else {}
    return bool(can.get("avx512_bf16") or can.get("amx_bf16"))


def multiplies_in_half(tensor: Tensor) -> bool:
    """Whether autocast asks a processor for products in bfloat16; double precision it leaves alone."""
    return (
        tensor.device.type == "cpu"
        and tensor.dtype is not torch.float64
        and torch.is_autocast_enabled("cpu")
        and torch.get_autocast_dtype("cpu") is torch.bfloat16
        and not torch.compiler.is_compiling()
    )


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """rows (..., k) times weight (n, k) transposed plus bias (n,): (..., n)."""
    if multiplies_in_half(rows):
        half: Tensor = _Product.apply(rows, weight, bias, torch.bfloat16)  # type: ignore[no-untyped-call]
        return half
    if not _onednn_can(rows, weight):
        return functional.linear(rows, weight, bias)
    if torch.is_grad_enabled():
        result: Tensor = _Product.apply(rows, weight, bias, rows.dtype)  # type: ignore[no-untyped-call]
        return result
    return _product(rows, weight, bias)


class Linear(nn.Linear):
    """`nn.Linear`, the products as above."""

    def forward(self, input: Tensor) -> Tensor:
        """(..., k) -> (..., n)."""
        return linear(input, self.weight, self.bias)


class Conv2d(nn.Conv2d):
    """`nn.Conv2d`, the products as above."""

    def forward(self, input: Tensor) -> Tensor:
        """(b, channels, height, width) -> (b, channels, height, width)."""
        if not multiplies_in_half(input):
            return super().forward(input)
        if isinstance(self.padding, str) or self.padding_mode != "zeros" or input.ndim != 4:
            return at_least_float32(super().forward(input))
        form = (self.stride, self.padding, self.dilation, self.groups)
        result: Tensor = _HalfConvolution.apply(input, self.weight, self.bias, *form)  # type: ignore[no-untyped-call]
        return result


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """Scaled dot-product attention, on a processor in the precision that its arguments have."""
    if not multiplies_in_half(queries):
        return functional.scaled_dot_product_attention(queries, keys, values, mask, dropout)
    with without_autocast(queries.device):
        return functional.scaled_dot_product_attention(queries, keys, values, mask, dropout)


def _onednn_can(rows: Tensor, weight: Tensor) -> bool:
    return (
        _THERE
        and rows.device.type == "cpu"
        and rows.dtype is weight.dtype is torch.float32
        and rows.numel() * len(weight) >= WORTH_IT
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
        and torch._C._get_mkldnn_enabled()
    )


def _product(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """rows (..., k) times weight (n, k) transposed plus bias (n,): (..., n) in single precision.

    Of factors in bfloat16 the product is rounded once more before the bias is added.
    """
    if rows.dtype is torch.bfloat16:
        with without_autocast(rows.device):
            half = torch.matmul(rows, weight.t()).float()
        return half if bias is None else half.add_(bias)
    result: Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return result


class _Product(torch.autograd.Function):
    """`_product`, both ways, of factors in the given precision."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None, products: torch.dtype) -> Tensor:
        rows, weight = rows.to(products), weight.to(products)
        ctx.save_for_backward(rows, weight)
        ctx.biased = bias is not None
        return _product(rows, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        rows, weight = ctx.saved_tensors
        of_rows, of_weight, of_bias, _ = ctx.needs_input_grad
        flat = gradient.reshape(-1, gradient.shape[-1])
        factor = flat.to(rows.dtype)
        return (
            _product(factor.contiguous(), weight.t().contiguous(), None).view(rows.shape) if of_rows else None,
            _product(factor.t(), rows.reshape(-1, rows.shape[-1]).t(), None) if of_weight else None,
            flat.sum(0) if of_bias and ctx.biased else None,
            None,
        )


class _HalfConvolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: Sizes,
        padding: Sizes,
        dilation: Sizes,
        groups: int,
    ) -> Tensor:
        features, weight = features.bfloat16(), weight.bfloat16()
        ctx.save_for_backward(features, weight)
        ctx.form = (stride, padding, dilation, groups)
        ctx.biased = bias is not None
        with without_autocast(features.device):
            result = functional.conv2d(features, weight, None, *ctx.form).float()
        return result if bias is None else result.add_(bias[:, None, None])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        features, weight = ctx.saved_tensors
        stride, padding, dilation, groups = ctx.form
        of_features, of_weight, of_bias = ctx.needs_input_grad[:3]
        with without_autocast(features.device):
            by_features, by_weight, _ = torch.ops.aten.convolution_backward(
                gradient.bfloat16(),
                features,
                weight,
                None,
                stride,
                padding,
                dilation,
                False,
                (0, 0),
                groups,
                (of_features, of_weight, False),
            )
        return (
            by_features.float() if of_features else None,
            by_weight.float() if of_weight else None,
            gradient.sum((0, 2, 3)) if of_bias and ctx.biased else None,
            *(None for _ in ctx.form),
        )


@dataclass(frozen=True, eq=False)
class Bags:
    """Rows to be added up: bag i is rows[starts[i]] up to the next start; all are below `height`."""

    rows: Tensor
    starts: Tensor
    height: int

    @classmethod
    def of(cls, keys: Tensor, rows: Tensor, bags: int, height: int) -> Bags:
        """rows (e,) by the bag of each, keys (e,) in ascending order, below `bags`."""
        counts = torch.bincount(keys, minlength=bags)
        return cls(rows, counts.cumsum(0) - counts, height)

    @classmethod
    def single(cls, bags: int) -> Bags:
        return cls(torch.arange(bags), torch.arange(bags), bags)

    def sums(self, values: Tensor) -> Tensor:
        """(bags, width) of values (height, width)."""
        return embedding_bag(self.rows, values, self.starts, mode="sum")

    def counts(self) -> Tensor:
        """(bags,) how many rows each has."""
        return torch.diff(self.starts, append=self.starts.new_tensor([len(self.rows)]))
