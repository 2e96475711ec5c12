"""Weights in a quarter of their size, to hand a model on."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

SCALES = ":scales"
"""Ends the name of the scales (rows, 1) of a matrix whose rows are whole numbers."""
LARGEST = 127


def compacted(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices of single precision as whole numbers of 8 bits and a scale per row, the rest in half precision.

    A model is handed on more often than it is trained, and a weight has fewer certain digits than these.
    """
    result = {}
    for name, tensor in weights.items():
        if tensor.dtype != torch.float32:
            result[name] = tensor
        elif tensor.ndim == 2:
            scales = (tensor.abs().amax(1, keepdim=True) / LARGEST).clamp_min(torch.finfo(tensor.dtype).tiny)
            result[name] = (tensor / scales).round().to(torch.int8)
            result[name + SCALES] = scales
        else:
            result[name] = tensor.half()
    return result


def expanded(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights that were compacted; others as they are, for loading takes half precision back."""
    return {
        name: tensor * tensors[name + SCALES] if name + SCALES in tensors else tensor
        for name, tensor in tensors.items()
        if not name.endswith(SCALES)
    }
