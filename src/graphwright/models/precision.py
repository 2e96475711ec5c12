"""Where half precision ends: costs, plans and losses need the digits that encoders can do without."""

from __future__ import annotations

import torch
from torch import Tensor


def at_least_float32(tensor: Tensor) -> Tensor:
    """The tensor in at least float32."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def without_autocast(device: torch.device) -> torch.autocast:
    """A context in which products stay in the precision of their factors."""
    return torch.autocast(device.type, enabled=False)
