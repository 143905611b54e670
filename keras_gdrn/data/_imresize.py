"""Bicubic resizing as MATLAB's ``imresize`` does it, as two weight matrices."""

from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np

from keras_gdrn._checks import check_factor
from keras_gdrn.data._separable import apply_matrices, as_images, image_size

# Pixels of the longer side of a result. One pixel sums 4 / factor samples, which go
# around 400 mirror images at this size: more only takes memory.
SMALLEST = 0.01
# The cubic carries values of [0, 1] to [-0.282, 1.282] at most: its negative weights
# sum to 1/8 on an axis, its positive ones to 9/8.
OVERSHOOT = 0.3


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
    processing". Departure: images of integers are not rounded and clipped.

    Args:
        images: NumPy array (or what `numpy.asarray` takes) or TensorFlow tensor of
            shape `(H, W)`, `(H, W, C)` or `(N, H, W, C)`. For a tensor in a graph,
            H and W are known and N may be unknown.
        factor: Size factor, finite and positive; 1 leaves the values as they are. The
            longer side is to become a tenth of a pixel at least.

    Returns:
        The resized images, of the same kind and rank, float32, in the range of the
        input give or take the overshoot of the cubic.

    Raises:
        TypeError: If `factor` is not a real number or the pixels are not numeric.
        ValueError: If `factor` is not finite and positive, or less than that, if the
            images have another rank, are empty, or have a size unknown to the graph.

    Guarantee: within 1e-5 of a transcription of the algorithm pixel by pixel, for
    images in [0, 1] and all nine `SIZE_FACTORS`; constants are kept.

    Example:

    >>> imresize(np.zeros((32, 32, 3)), 2 ** (1 / 4)).shape
    (39, 39, 3)
    """
    factor = check_factor(factor)
    images = as_images(images)
    height, width = image_size(images)
    check_shrunk(factor, height, width)
    rows, columns = resize_matrix(height, factor), resize_matrix(width, factor)
    return apply_matrices(images, rows, columns)


def check_shrunk(factor: float, height: int, width: int) -> None:
    """Refuses a factor that leaves next to nothing of an image."""
    side = max(height, width)
    if factor * side < SMALLEST:
        raise ValueError(
            f"`factor` must be at least {SMALLEST / side:g} for an image of "
            f"{(height, width)} pixels, so that its longer side becomes {SMALLEST} "
            f"pixels. Received: factor={factor}"
        )


@lru_cache(maxsize=256)
def resize_matrix(size: int, factor: float) -> np.ndarray:
    """Weights `(ceil(factor * size), size)` that resize an axis, float64, read-only."""
    matrix = resize_rows(size, factor, np.arange(ceil(factor * size)))
    matrix.setflags(write=False)
    return matrix


def resize_rows(size: int, factor: float, outputs: np.ndarray) -> np.ndarray:
    """The rows of `resize_matrix` for these output pixels; they sum to one."""
    position = (outputs + 0.5) / factor - 0.5
    # A kernel of support 4 takes at most 4 samples; widened, 4 / factor of them.
    shrink = min(factor, 1.0)
    reach = ceil(2.0 / shrink)
    samples = np.floor(position)[:, None] + np.arange(1 - reach, reach + 1)
    weights = cubic(shrink * (position[:, None] - samples))
    weights /= weights.sum(axis=1, keepdims=True)

    matrix = np.zeros((len(outputs), size))
    at = np.arange(len(outputs))[:, None], mirror(samples.astype(int), size)
    np.add.at(matrix, at, weights)
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
