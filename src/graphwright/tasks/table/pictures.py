"""Pictures of any size and mode, from files, bytes, Pillow or arrays, brought to squares of one side."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from graphwright.tasks.pictures import PictureError, is_transparent, open_picture, over_white, pillow
from graphwright.tasks.table.file import RowError

if TYPE_CHECKING:
    from PIL.Image import Image

PICTURE_FILES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
"""How the names of files end that are taken for pictures."""
SMALLEST_SIDE, LARGEST_SIDE, STEP = 16, 96, 4
"""Sides to choose from; an encoder shrinks a picture to a quarter. Larger ones: `task.side`."""
LOOKED_AT = 200
Pixels = NDArray[np.uint8]


def is_picture_cell(value: Any) -> bool:
    """Whether a cell holds a picture: its path, its bytes, or both as Hugging Face writes them."""
    if isinstance(value, Mapping):
        return isinstance(value.get("bytes"), bytes) or is_picture_cell(value.get("path"))
    if isinstance(value, str | Path):
        return str(value).lower().endswith(PICTURE_FILES)
    return isinstance(value, bytes)


def read_pixels(value: Any, name: str, side: int, beside: Path | None) -> Pixels:
    """(3, side, side) of a cell, a Pillow image or an array; `RowError` says what is wrong.

    beside: the folder that a relative path begins in; None: paths are not followed, as they are a stranger's.
    """
    return letterboxed(_in_colours(_opened(value, name, beside)), side)


def usual_side(values: Iterable[Any], beside: Path | None) -> int:
    """What half of the first few pictures are larger than, in steps and between bounds."""
    sizes = []
    for value, _ in zip(values, range(LOOKED_AT), strict=False):
        try:
            sizes.append(max(_opened(value, "", beside).size))
        except RowError:
            continue
    side = STEP * round(float(np.median(sizes)) / STEP) if sizes else LARGEST_SIDE
    return int(min(max(side, SMALLEST_SIDE), LARGEST_SIDE))


def letterboxed(picture: Image, side: int) -> Pixels:
    """(3, side, side): as large as it fits, in the middle, and around it the usual colour of its border."""
    from PIL import Image

    share = side / max(picture.size)
    width, height = (max(1, round(share * length)) for length in picture.size)
    if (width, height) != picture.size:
        # Averaging when shrinking keeps thin lines; so does interpolating when growing.
        how = Image.Resampling.BOX if share < 1 else Image.Resampling.BILINEAR
        picture = picture.resize((width, height), how)
    pixels = np.asarray(picture, np.uint8)
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    whole = np.empty((side, side, 3), np.uint8)
    whole[:] = np.median(border, axis=0).astype(np.uint8)
    top, left = (side - height) // 2, (side - width) // 2
    whole[top : top + height, left : left + width] = pixels
    return np.ascontiguousarray(whole.transpose(2, 0, 1))


def _opened(value: Any, name: str, beside: Path | None) -> Image:
    if isinstance(value, Mapping):
        value = value["bytes"] if value.get("bytes") is not None else value.get("path")
    if hasattr(value, "convert") and hasattr(value, "getbands"):
        opened: Image = value
        return opened
    if isinstance(value, np.ndarray):
        return _of_array(value, name)
    if isinstance(value, bytes):
        return _read(io.BytesIO(value), name, "the bytes")
    if not isinstance(value, str | Path) or not str(value).strip():
        raise RowError("not a picture", name, f"expected a picture's path or bytes, got {str(value)[:40]!r}")
    if beside is None:
        raise RowError("a path", name, "give the picture itself: paths are not followed here")
    path = beside / Path(value)
    if not path.is_file():
        path = beside / str(value).replace("\\", "/")  # a table that was written on Windows
    if not path.is_file():
        raise RowError("no such picture", name, f"there is no file {path}")
    return _read(path, name, str(path))


def _read(source: Path | BinaryIO, name: str, said: str) -> Image:
    try:
        return open_picture(source)
    except PictureError as error:
        raise RowError(error.reason, name, f"{said}: {error}") from error


def _of_array(array: NDArray[Any], name: str) -> Image:
    """From an array (h, w), (h, w, 1 to 4) or (1 to 4, h, w): whole numbers are 0 to 255, others 0 to 1."""
    if array.ndim == 3 and array.shape[2] > 4 and array.shape[0] <= 4:
        array = array.transpose(1, 2, 0)
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] > 4) or not array.size:
        raise RowError("not a picture", name, f"expected an array (h, w) or (h, w, 3), got {array.shape}")
    if array.dtype.kind == "f":
        if not (array.min() >= 0 and array.max() <= 1):  # NaN is neither
            raise RowError("not a picture", name, f"floats must be 0 to 1, got {array.min():g} to {array.max():g}")
        array = np.rint(255 * array)
    if array.min() < 0 or array.max() > 255:
        range_given = f"{array.min()} to {array.max()}"
        raise RowError("not a picture", name, f"whole numbers must be 0 to 255, got {range_given}")
    plain = array.astype(np.uint8)
    made: Image = pillow().fromarray(plain[:, :, 0] if plain.ndim == 3 and plain.shape[2] == 1 else plain)
    return made


def _in_colours(picture: Image) -> Image:
    """In RGB: transparency over white, sixteen bits as eight, other numbers from the darkest to the brightest."""
    if is_transparent(picture):
        return over_white(picture)
    if picture.mode.startswith("I") or picture.mode == "F":
        numbers = np.nan_to_num(np.asarray(picture, np.float64))
        sixteen = picture.mode.startswith("I;16")
        low, high = (0.0, 65535.0) if sixteen else (float(numbers.min()), float(numbers.max()))
        shares = (numbers - low) / (high - low) if high > low else np.zeros_like(numbers)
        plain: Image = pillow().fromarray(np.rint(255 * shares).astype(np.uint8))
        return plain.convert("RGB")
    return picture.convert("RGB")
