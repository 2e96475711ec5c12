"""Pictures: colours, the noisy picture of a map painted with them, and pictures from files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.special import ndtri
from torch import Tensor

from graphwright.graphs import Vocabulary
from graphwright.tasks.likeness import EuclideanLikeness, Floats
from graphwright.tasks.pictures import PictureError, is_transparent, open_picture, over_white, pillow
from graphwright.tasks.task import Samples

if TYPE_CHECKING:
    from PIL.Image import Image

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


def read_picture(path: Path, side: int) -> Tensor:
    """(3, side, side) in [0, 1] from an image file, converted where that keeps its meaning; see `from_image`."""
    expected = _expected(side)
    if not path.is_file():
        raise ValueError(f"{path}: {'a folder, not a picture' if path.is_dir() else 'no such file'}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty, {expected}")
    try:
        picture = open_picture(path)
    except PictureError as error:
        raise ValueError(f"{path}: {error}, {expected}") from error
    return from_image(picture, side, str(path))


def from_image(picture: Image, side: int, name: str = "the picture") -> Tensor:
    """(3, side, side) in [0, 1] from a picture of Pillow.

    Palettes become colours and transparency becomes white. A square picture of another size is brought to
    `side`. A picture without colours, or not square, is refused: a graph of coloured regions is not in it.
    """
    image, expected = pillow(), _expected(side)
    if is_transparent(picture):
        picture = over_white(picture)
    elif picture.mode not in ("RGB", "P", "CMYK", "YCbCr", "HSV"):
        raise ValueError(f"{name}: mode {picture.mode} has no colours, {expected}")
    picture = picture.convert("RGB")
    if picture.width != picture.height:
        raise ValueError(f"{name}: {picture.width} x {picture.height} pixels is not square, {expected}")
    if picture.width < side // 2:
        raise ValueError(f"{name}: {picture.width} x {picture.height} pixels is too small, {expected}")
    if picture.width != side:
        # Averaging when shrinking keeps thin regions; repeating when growing keeps borders sharp.
        picture = picture.resize((side, side), image.Resampling.BOX)
    return torch.from_numpy(np.array(picture, np.float32) / 255).permute(2, 0, 1)


def picture_of(given: Any, side: int) -> Tensor:
    """(3, side, side) in [0, 1] from what a person has: a picture of Pillow, a file's bytes, or an array.

    An array has its channels first or last. Whole numbers are 0 to 255, others 0 to 1; of another size they are
    converted as a file is.
    """
    if hasattr(given, "convert") and hasattr(given, "getbands"):
        return from_image(given, side)
    if isinstance(given, bytes):
        try:
            return from_image(open_picture(io.BytesIO(given)), side)
        except PictureError as error:
            raise ValueError(f"the bytes: {error}, {_expected(side)}") from error
    if not isinstance(given, Tensor | np.ndarray):
        raise ValueError(f"expected a picture: a file, a PIL image or an array, got {type(given).__name__}")
    array = given.detach().cpu().numpy() if isinstance(given, Tensor) else given
    if array.ndim != 3 or not {array.shape[0], array.shape[-1]} & {3, 4}:
        raise ValueError(f"expected a colour picture (3, side, side) or (side, side, 3), got {array.shape}")
    if array.shape[0] not in (3, 4):
        array = array.transpose(2, 0, 1)
    if array.dtype.kind in "iu":
        if array.min() < 0 or array.max() > 255:
            raise ValueError(f"a picture of whole numbers has 0 to 255, got {array.min()} to {array.max()}")
        return from_image(pillow().fromarray(array.transpose(1, 2, 0).astype(np.uint8)), side)
    if array.dtype.kind != "f":
        raise ValueError(f"expected whole numbers, 0 to 255, or floats, 0 to 1, got {array.dtype} {array.shape}")
    if not (array.min() >= 0 and array.max() <= 1):  # NaN is neither
        raise ValueError(
            f"a picture of floats has 0 to 1, got {array.min():g} to {array.max():g}: divide 0 to 255 by 255"
        )
    if array.shape != (3, side, side):
        pixels = np.rint(255 * array).astype(np.uint8)
        return from_image(pillow().fromarray(pixels.transpose(1, 2, 0)), side)
    return torch.from_numpy(np.ascontiguousarray(array, np.float32))


def _expected(side: int) -> str:
    return f"expected a colour picture of {side} x {side} pixels"


LARGEST_SIDE = 64
"""Pictures with more pixels a side are averaged over blocks first: their noise is no part of what they show."""


@dataclass(frozen=True)
class PixelLikeness(EuclideanLikeness):
    """Pictures by their pixels."""

    name: str = "pixels"

    def features(self, samples: Samples, indices: Sequence[int]) -> Floats:
        """(m, 3 side^2), of pictures averaged over blocks where they are large."""
        return np.stack([shrunk(samples[index].image).ravel() for index in indices])


def shrunk(image: Floats) -> Floats:
    """A picture (3, side, side), averaged over blocks to at most `LARGEST_SIDE` a side; a rest is cut off."""
    channels, side, _ = image.shape
    block = -(-side // LARGEST_SIDE)
    kept = side // block
    blocks = image[:, : kept * block, : kept * block].reshape(channels, kept, block, kept, block)
    means: Floats = blocks.mean((2, 4), dtype=np.float32)
    return means
