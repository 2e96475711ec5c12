"""Pictures from files and bytes, as Pillow has them: opened whole, the right side up, or refused in a sentence."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from PIL.Image import Image

LARGEST_PIXELS = 50_000_000


class PictureError(ValueError):
    """A picture that cannot be read. reason: the sort of fault, for counts."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


def pillow() -> ModuleType:
    """Pillow, or an error that says how to get it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("pictures need pillow: pip install 'graphwright[image]'") from error
    return Image


def open_picture(source: Path | BinaryIO) -> Image:
    """The picture in a file, all of it in memory; `PictureError` says what is wrong."""
    image = pillow()
    from PIL import ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Of so large a picture we have a sentence of our own.
            warnings.simplefilter("ignore", image.DecompressionBombWarning)
            opened = image.open(source)
        with opened:
            if opened.width * opened.height > LARGEST_PIXELS:
                raise PictureError("too large", f"{opened.width} x {opened.height} pixels")
            # A camera's picture says which side is up.
            turned: Image = ImageOps.exif_transpose(opened)
            turned.load()
            return turned
    except UnidentifiedImageError as error:
        raise PictureError("not a picture") from error
    except PictureError:
        raise
    except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
        raise PictureError("damaged picture", f"damaged picture ({error})") from error


def is_transparent(picture: Image) -> bool:
    """Whether some of it may be seen through."""
    return picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info


def over_white(picture: Image) -> Image:
    """A transparent picture on white, in RGB."""
    image = pillow()
    joined: Image = image.alpha_composite(image.new("RGBA", picture.size, "white"), picture.convert("RGBA"))
    return joined.convert("RGB")
