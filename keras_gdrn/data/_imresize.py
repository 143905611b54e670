"""Bicubic resizing as MATLAB's ``imresize`` does it, also onto a canvas."""

from functools import lru_cache
from math import ceil
from typing import Any, Literal, get_args

import numpy as np

from keras_gdrn._checks import check_canvas, check_choice, check_positive
from keras_gdrn.data._separable import apply_matrices, as_images

Extension = Literal["zero", "mirror"]


def imresize(images: Any, factor: float) -> Any:
    """Resize images as MATLAB's ``imresize(images, factor)`` does.

    Each axis of N pixels becomes `ceil(factor * N)` pixels,

        output(n) = sum_m w(m - u(n)) input(m),    u(n) = (n + 1/2) / factor - 1/2,

    with `w` the cubic of Keys at a = -1/2, widened by `1 / factor` where
    `factor < 1` (antialiasing), its samples normalized to sum one. Outside the
    image the samples are those of its half-sample symmetric mirror extension.
    The position `u` takes the nominal factor also where `factor * N` is not an integer,
    so that a pattern is scaled by exactly that factor. Stock resizes (TensorFlow,
    Keras, JAX, Pillow) drop the outside samples and use the quotient of the sizes.

    The sums are taken in float64, so that graph and eager execution, and every
    device, agree to the rounding of the output.

    Source: The MathWorks' documentation of `imresize` (since R2007a), with the
    kernel of Keys (1981), "Cubic convolution interpolation for digital image
    processing". Departure: integer images are not rounded and clipped.

    Args:
        images: NumPy array (or what `numpy.asarray` takes) or TensorFlow tensor of
            shape `(H, W)`, `(H, W, C)` or `(N, H, W, C)`. For a tensor in a graph,
            H and W are known and N may be unknown.
        factor: Size factor, finite and positive; 1 leaves the values as they are.

    Returns:
        The resized images, of the same kind and rank, float32, in the range of the
        input apart from the overshoot of the cubic.

    Raises:
        ValueError: If `factor` is not finite and positive, or the images have another
            rank, are empty, are not real numbers, or have a size unknown to the graph.

    Guarantee: within 1e-5 of a transcription of the algorithm pixel by pixel, for
    images in [0, 1] and all nine `SIZE_FACTORS`; constants are kept.

    Example:

    >>> imresize(np.zeros((32, 32, 3)), 2 ** (1 / 4)).shape
    (39, 39, 3)
    """
    return _resized(images, factor, None, "zero")


def rescale(
    images: Any,
    factor: float,
    canvas: int | tuple[int, int],
    extension: Extension,
) -> Any:
    """Resize images by `imresize` and center them on a canvas.

    A larger canvas is filled with zeros or with mirror images of the resized image,
    repeated as often as needed; a smaller one keeps the center. If the sizes differ by
    an odd number, the image sits half a pixel below and to the right of the center. As
    `imresize` rounds sizes up, with the surplus below and to the right, the object is
    always centered to within half a pixel.

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
        ValueError: As `imresize`, and if `canvas` or `extension` is invalid.

    Guarantee: equals `imresize` followed by `numpy.pad(mode="symmetric")` or zeros,
    or by cropping, to float32 rounding.

    Example:

    >>> rescale(np.zeros((32, 32, 3)), 2 ** (1 / 4), 64, "mirror").shape
    (64, 64, 3)
    """
    check_choice("extension", extension, get_args(Extension))
    return _resized(images, factor, check_canvas(canvas), extension)


def _resized(
    images: Any, factor: float, canvas: tuple[int, int] | None, extension: Extension
) -> Any:
    """Images resized, onto a canvas if there is one."""
    factor = check_positive("factor", factor)
    images = as_images(images)
    sizes = images.shape[1:3] if len(images.shape) == 4 else images.shape[:2]
    sides = canvas or [ceil(factor * size) for size in sizes]
    pairs = zip(sizes, sides, strict=True)
    matrices = [canvas_matrix(n, side, factor, extension) for n, side in pairs]
    return apply_matrices(images, *matrices)


@lru_cache(maxsize=32)  # a photograph may need one of megabytes
def canvas_matrix(
    size: int, canvas: int, factor: float, extension: Extension
) -> np.ndarray:
    """Weights `(canvas, size)` that resize an axis and center it, float64, read-only.

    The weights of a pixel sum to one, unless it is filled by zero.
    """
    resized = ceil(factor * size)
    index = np.arange(canvas) - (canvas - resized + 1) // 2
    # Only the pixels on the canvas: the resized image may have far more.
    position = (mirror(index, resized) + 0.5) / factor - 0.5
    # A kernel of support 4 takes at most 4 samples; widened, 4 / factor of them.
    shrink = min(factor, 1.0)
    reach = ceil(2.0 / shrink)
    samples = np.floor(position)[:, None] + np.arange(1 - reach, reach + 1)
    weights = cubic(shrink * (position[:, None] - samples))
    weights /= weights.sum(axis=1, keepdims=True)
    if extension == "zero":
        weights[(index < 0) | (index >= resized)] = 0.0

    matrix = np.zeros((canvas, size))
    at = np.arange(canvas)[:, None], mirror(samples.astype(int), size)
    np.add.at(matrix, at, weights)
    matrix.setflags(write=False)
    return matrix


def cubic(x: np.ndarray) -> np.ndarray:
    """The cubic convolution kernel of Keys (1981) at a = -1/2, zero from |x| = 2."""
    x = np.abs(x)
    inner = (1.5 * x - 2.5) * x**2 + 1.0
    outer = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x <= 1, inner, np.where(x < 2, outer, 0.0))


def mirror(index: np.ndarray, size: int) -> np.ndarray:
    """Indices of the repeated half-sample symmetric extension: …1 0 | 0 1 2 | 2 1…"""
    index = index % (2 * size)
    return np.where(index < size, index, 2 * size - 1 - index)
