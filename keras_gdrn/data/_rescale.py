"""Resized images centered on a canvas of fixed size."""

from functools import lru_cache
from math import ceil
from typing import Any, Literal, get_args

import numpy as np

from keras_gdrn._checks import check_canvas, check_factor
from keras_gdrn.data._imresize import check_shrunk, mirror, resize_rows
from keras_gdrn.data._separable import apply_matrices, as_images, image_size

Extension = Literal["zero", "mirror"]


def rescale(
    images: Any,
    factor: float,
    canvas: int | tuple[int, int],
    extension: Extension,
) -> Any:
    """Resize images by `imresize` and center them on a canvas.

    Where the canvas is larger, it is filled by zeros or by the mirror images of the
    resized image, repeated as often as needed; where it is smaller, the center is
    cut out. Where the sizes differ by an odd number, the image sits half a pixel below
    and to the right of the center: `imresize` rounds sizes up, and what is too much
    lies below and to the right. So the object is centered to half a pixel, always.

    Resizing, extending and cropping are linear along each axis, so one matrix per
    axis does all three, and pixels outside the canvas are never computed.

    Source: the rescaled data sets of Perzanowski and Lindeberg (2025), Sec. 4.1 of
    "Scale-invariant Gaussian derivative residual networks". Where the odd pixel
    goes is not stated there.

    Args:
        images: As for `imresize`: `(H, W)`, `(H, W, C)` or `(N, H, W, C)`.
        factor: Size factor, as for `imresize`.
        canvas: Height and width of the result in pixels, or one number for both.
        extension: `"zero"` or `"mirror"` (half-sample symmetric).

    Returns:
        `(height, width)`, `(height, width, C)` or `(N, height, width, C)`, of the
        same kind as `images`, float32.

    Raises:
        TypeError, ValueError: As `imresize`, and if `canvas` or `extension` is
            unusable.

    Guarantee: equals `imresize` followed by `numpy.pad(mode="symmetric")` or zeros,
    or by cropping, to float32 rounding.

    Example:

    >>> rescale(np.zeros((32, 32, 3)), 2 ** (1 / 4), 64, "mirror").shape
    (64, 64, 3)
    """
    factor = check_factor(factor)
    canvas_height, canvas_width = check_canvas(canvas)
    if extension not in get_args(Extension):
        raise ValueError(
            f"`extension` must be 'zero' or 'mirror'. Received: extension={extension!r}"
        )
    images = as_images(images)
    height, width = image_size(images)
    check_shrunk(factor, height, width)
    rows = canvas_matrix(height, factor, canvas_height, extension)
    columns = canvas_matrix(width, factor, canvas_width, extension)
    return apply_matrices(images, rows, columns)


@lru_cache(maxsize=256)
def canvas_matrix(
    size: int, factor: float, canvas: int, extension: Extension
) -> np.ndarray:
    """Weights `(canvas, size)` that resize one axis and center it, float64."""
    resized = ceil(factor * size)
    index = np.arange(canvas) - (canvas - resized + 1) // 2
    # Only the rows on the canvas: all of them may be far more than it has.
    matrix = resize_rows(size, factor, mirror(index, resized))
    if extension == "zero":
        matrix[(index < 0) | (index >= resized)] = 0.0
    matrix.setflags(write=False)
    return matrix
