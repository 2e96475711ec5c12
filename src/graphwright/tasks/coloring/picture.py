"""Colours, and the noisy picture of a map painted with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.special import ndtri

from graphwright.graphs import Vocabulary

RGB = {
    "blue": (0.25, 0.25, 0.75),
    "green": (0.25, 0.75, 0.25),
    "red": (0.75, 0.25, 0.25),
    "yellow": (1.0, 0.8, 0.4),
}
"""Channels in [0, 1] of every colour."""

COLORS = tuple(RGB)
VOCABULARY = Vocabulary(nodes=COLORS)

# Noise is one of 65,536 equally likely quantiles of the normal distribution (variance 0.99998): four times as
# fast as exact numbers, which would take half of the time at N = 60, and the same on every machine.
_QUANTILES = ndtri((np.arange(2**16) + 0.5) / 2**16).astype(np.float32)
_CHANNELS = np.array(list(RGB.values()), np.float32).T


def paint(
    labels: NDArray[np.intp],
    colors: NDArray[np.int64],
    noise: float,
    blur: float,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """(3, side, side) picture in [0, 1]: each region in its colour, blurred, then noisy, then clipped.

    labels: (side, side) region of each pixel. colors: (n,) colour code of each region.
    """
    image = _CHANNELS[:, colors].take(labels, axis=1)
    if blur:
        image = gaussian_filter(image, (0, blur, blur), mode="nearest")
    if noise:
        grain = standard_noise(image.size, rng)
        grain *= np.float32(noise)
        image += grain.reshape(image.shape)
    return np.clip(image, 0, 1, out=image)


def standard_noise(count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """(count,) independent standard normal numbers, to 16 bits."""
    words = rng.bit_generator.random_raw(-(-count // 4))
    return _QUANTILES.take(words.view(np.uint16)[:count])
