"""The pixels of image files and of images in memory."""

import io
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from keras_gdrn._checks import check_choice
from keras_gdrn._pixels import WHITE, white

MODES = {1: "L", 3: "RGB"}
# Largest ratio of sides: resized by its shorter side, a longer image would be huge.
LONGEST = 32


def read_image(image: Any, channels: int = 3) -> np.ndarray:
    """Read the pixels of an image file, a Pillow image or an array.

    The EXIF orientation is applied, transparent pixels are drawn over white, and an
    animation gives its first frame.

    Args:
        image: Path of a JPEG, PNG, BMP or GIF file, its bytes, or the file opened in
            binary mode; a `PIL.Image.Image`; or an array `(height, width)` or
            `(height, width, channel)` with 1, 3 or 4 channels and values from 0 to 255
            or from 0 to 1.
        channels: 1 for gray, 3 for red, green and blue.

    Returns:
        `(height, width, channels)`, uint8.

    Raises:
        ValueError: If a file has another format, is damaged or exceeds Pillow's limit
            against decompression bombs (89 million pixels); if the sides of an image
            differ more than 32-fold; or if an array has another shape or other values.
            The error names the file.

    Example:

    >>> read_image("photo.jpg").shape
    (1080, 1920, 3)
    """
    check_choice("channels", channels, tuple(MODES))
    if isinstance(image, (bytes, bytearray, memoryview)):
        image = io.BytesIO(image)
    if not (isinstance(image, (str, os.PathLike)) or hasattr(image, "read")):
        return _as_pixels(image, channels)
    path = Path(image) if isinstance(image, (str, os.PathLike)) else image
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=("BMP", "GIF", "JPEG", "PNG")) as opened:
                return _as_pixels(opened, channels)
    except Exception as error:  # damage can raise any error in Pillow
        what = path if isinstance(path, Path) else "The opened file"
        raise ValueError(f"{what} cannot be read as an image: {error}") from error


def _as_pixels(image: Any, channels: int) -> np.ndarray:
    if not isinstance(image, Image.Image):
        image = Image.fromarray(_as_bytes(np.asarray(image)))
    _check_shape(*image.size)
    image = ImageOps.exif_transpose(image)
    if image.mode[0] in "IF":  # more than 8 bits, which Pillow would cut off at 255
        pixels = np.asarray(image)
        if image.mode.startswith("I;16") or (image.mode == "I" and pixels.max() > 255):
            pixels = (pixels // 257).clip(0, 255).astype("uint8")
        else:
            pixels = _as_bytes(pixels)
        image = Image.fromarray(pixels)
    if image.mode.endswith("A") or "transparency" in image.info:
        image = image.convert("RGBA")
        background = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(background, image)
    pixels = np.array(image.convert(MODES[channels]))
    return pixels.reshape(*pixels.shape[:2], channels)


def _as_bytes(pixels: np.ndarray) -> np.ndarray:
    if pixels.ndim == 3 and pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    try:
        brightness = WHITE / white(pixels)
    except ValueError as error:
        raise ValueError(
            "An image must be the path of a file, its bytes, a file opened in binary "
            f"mode, a Pillow image or an array, whose {error}"
        ) from None
    if not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[-1] in (3, 4))):
        raise ValueError(
            "An array of an image must be (height, width) or (height, width, channel), "
            f"with 1, 3 or 4 channels. Received: an array of shape {pixels.shape}"
        )
    if pixels.dtype == "uint8" and brightness == 1:
        return pixels
    pixels = np.multiply(pixels, brightness, dtype="float32")
    return np.rint(pixels).clip(0, 255).astype("uint8")


def _check_shape(width: int, height: int) -> None:
    if not 0 < max(width, height) <= LONGEST * min(width, height):
        raise ValueError(
            f"the sides of an image must not differ more than {LONGEST}-fold. "
            f"Received: {width}x{height} pixels"
        )
