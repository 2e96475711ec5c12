"""The eight symmetries of the square, on pictures and on pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SYMMETRIES = 8
"""Number of symmetries; code = quarter turns counterclockwise + 4 if flipped left to right first."""


def turn_image(image: NDArray[np.float32], code: int) -> NDArray[np.float32]:
    """(..., side, side) picture under a symmetry."""
    flipped = image[..., ::-1] if code >= 4 else image
    return np.ascontiguousarray(np.rot90(flipped, code % 4, axes=(-2, -1)))


def turn_pixels(pixels: NDArray[np.int64], side: int, code: int) -> NDArray[np.int64]:
    """(n, 2) where the symmetry takes the pixels (row, column)."""
    row, column = pixels.T
    if code >= 4:
        column = side - 1 - column
    for _ in range(code % 4):
        row, column = side - 1 - column, row
    return np.stack((row, column), axis=1)
