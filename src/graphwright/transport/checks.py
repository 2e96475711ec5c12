"""Argument checks that name the argument and the sample at fault."""

from __future__ import annotations

from numbers import Integral, Real

import torch
from torch import Tensor


class NotFiniteError(ValueError):
    """NaN or infinity in a tensor. sample: the first that holds it, None where that is not known."""

    def __init__(self, message: str, sample: int | None = None) -> None:
        super().__init__(message)
        self.sample = sample


def check_shape(name: str, tensor: Tensor, *shapes: tuple[int, ...]) -> None:
    """Raise unless it is a tensor of one of the shapes (-1: any length)."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{name} must be a tensor, got {type(tensor).__name__}")
    for shape in shapes:
        if tensor.ndim == len(shape) and all(
            want in (-1, have) for want, have in zip(shape, tensor.shape, strict=True)
        ):
            return
    expected = " or ".join(str(shape) for shape in shapes)
    raise ValueError(f"{name} must have shape {expected} (-1: any), got {tuple(tensor.shape)}")


def check_like(name: str, tensor: Tensor, reference_name: str, reference: Tensor) -> None:
    """Raise unless the tensor is floating, with the reference's dtype and device."""
    if not tensor.is_floating_point():
        raise ValueError(f"{name} must be floating point, got {tensor.dtype}")
    if tensor.dtype != reference.dtype:
        raise ValueError(f"{name} is {tensor.dtype}, {reference_name} is {reference.dtype}")
    if tensor.device != reference.device:
        raise ValueError(f"{name} is on {tensor.device}, {reference_name} is on {reference.device}")


def check_finite(name: str, tensor: Tensor) -> None:
    """Raise if a sample holds NaN or infinity."""
    sample = _first(~torch.isfinite(tensor.detach()))
    if sample is not None:
        raise NotFiniteError(f"{name} is not finite (sample {sample})", sample)


def check_interval(name: str, tensor: Tensor, low: float, high: float) -> None:
    """Raise if a sample is not finite or leaves [low, high]."""
    value = tensor.detach()
    check_finite(name, value)
    refuse(name, (value < low) | (value > high), f"leaves [{low:g}, {high:g}]")


def check_positive(name: str, value: object) -> None:
    """Raise unless a setting is a positive finite number (a tensor is none: nothing differentiates in it)."""
    if not (isinstance(value, Real) and 0 < float(value) < float("inf")):
        raise ValueError(f"{name} must be a positive number, got {value!r}")


def check_count(name: str, value: object) -> None:
    """Raise unless a setting is a whole number, at least one."""
    if not (isinstance(value, Integral) and int(value) >= 1):
        raise ValueError(f"{name} must be a whole number, at least 1, got {value!r}")


def check_plan(name: str, plan: Tensor, shape: tuple[int, ...], reference_name: str, reference: Tensor) -> None:
    """Raise unless a tensor is a non-negative finite plan of the given shape, of the reference's kind."""
    check_shape(name, plan, shape)
    check_like(name, plan, reference_name, reference)
    check_interval(name, plan, 0, float("inf"))


def refuse(name: str, wrong: Tensor, complaint: str) -> None:
    """Raise if anything is wrong, naming the first sample."""
    sample = _first(wrong)
    if sample is not None:
        raise ValueError(f"{name} {complaint} (sample {sample})")


def _first(wrong: Tensor) -> int | None:
    """The first sample of which anything is wrong."""
    if not wrong.any():
        return None
    return int(wrong.reshape(wrong.shape[0], -1).any(1).nonzero()[0])
