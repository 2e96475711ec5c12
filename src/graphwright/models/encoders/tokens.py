"""What every encoder makes of its inputs."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Tokens(NamedTuple):
    """values (b, k, width); mask (b, k), true at real tokens, or None where all of them are."""

    values: Tensor
    mask: Tensor | None = None
