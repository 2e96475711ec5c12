"""Pictures from files, as the task's inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

LARGEST_PIXELS = 50_000_000


def read_picture(path: Path, side: int) -> Tensor:
    """(3, side, side) in [0, 1] from an image file, converted where that keeps its meaning.

    Palettes become colours and transparency becomes white. A square picture of another size is brought to
    `side`. A picture without colours, or not square, is refused: a graph of coloured regions is not in it.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ImportError("pictures need pillow: pip install 'graphwright[image]'") from error
    expected = f"expected a colour picture of {side} x {side} pixels"
    if not path.exists():
        raise ValueError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty, {expected}")
    try:
        with Image.open(path) as opened:
            if opened.width * opened.height > LARGEST_PIXELS:
                raise ValueError(f"{path}: {opened.width} x {opened.height} pixels, {expected}")
            opened.load()
            picture = opened.copy()
    except UnidentifiedImageError as error:
        raise ValueError(f"{path}: not a picture, {expected}") from error
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path}: damaged picture ({error}), {expected}") from error
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture.convert("RGBA"))
    elif picture.mode not in ("RGB", "P", "CMYK", "YCbCr", "HSV"):
        raise ValueError(f"{path}: mode {picture.mode} has no colours, {expected}")
    picture = picture.convert("RGB")
    if picture.width != picture.height:
        raise ValueError(f"{path}: {picture.width} x {picture.height} pixels is not square, {expected}")
    if picture.width < side // 2:
        raise ValueError(f"{path}: {picture.width} x {picture.height} pixels is too small, {expected}")
    if picture.width != side:
        # Averaging when shrinking keeps thin regions; repeating when growing keeps borders sharp.
        picture = picture.resize((side, side), Image.Resampling.BOX)
    return torch.from_numpy(np.array(picture, np.float32) / 255).permute(2, 0, 1)
