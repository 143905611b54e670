"""From pixels to a grid, from grid to grid and back, along one axis.

A grid has an odd number of points, one of them at the center of the image. Its step is
in units of the initial scale, so that one network serves all scale channels.
"""

import functools
import math

import numpy as np
import scipy.sparse

from keras_gdrn.kernels._discrete import (
    central_difference,
    discrete_gaussian,
    support_radius,
)
from keras_gdrn.kernels._jet import multinomial

# A value's share in the coefficients of the spline falls by a factor of 0.27 a pixel.
_SPLINE_REACH = 30


@functools.lru_cache(maxsize=256)
def sampling(
    pixels: int, points: int, step: float, sigma: float, boundary: str
) -> np.ndarray:
    """Samples of an image that a Gaussian has smoothed, `step` apart.

    The image is the cubic spline through its pixels, the Gaussian a continuous one:
    `g(x_j) = ∫ G(u; σ) f(x_j + u) du`.

    Args:
        pixels: Length of the axis.
        points: Number of samples, around the center of the image.
        step: Distance of the samples, in pixels.
        sigma: Standard deviation σ in pixels; 0 for the image itself.
        boundary: What lies beyond the image: `"zero"`, or `"symmetric"` for its mirror
            image.

    Returns:
        A read-only float64 array `(points, pixels)`.
    """
    return _frozen(_at(_centered(points) * step, pixels, sigma, boundary))


@functools.lru_cache(maxsize=256)
def interpolation(points: int, step: float, pixels: int) -> np.ndarray:
    """Values at the pixels, by the cubic spline through samples.

    Args:
        points: Number of samples, around the center of the image.
        step: Distance of the samples, in pixels.
        pixels: Length of the axis.

    Returns:
        A read-only float64 array `(pixels, points)`.
    """
    return _frozen(_at(_centered(pixels) / step, points, 0.0, "symmetric"))


@functools.lru_cache(maxsize=256)
def smoothing(entering: int, leaving: int, sigma: float) -> np.ndarray:
    """The discrete Gaussian `T(·; σ)` from a grid to one of the same step and center.

    Args:
        entering: Points of the input. Beyond them lies their mirror image.
        leaving: Points of the output, as many more or fewer on either side.
        sigma: Standard deviation σ in steps.

    Returns:
        A read-only float64 array `(leaving, entering)`.
    """
    radius = support_radius(sigma)
    width = leaving + 2 * radius
    line = scipy.sparse.diags(
        discrete_gaussian(sigma, radius),
        np.arange(2 * radius + 1),
        shape=(leaving, width),
    )
    beyond = _extended(entering, (width - entering) / 2, "symmetric")
    return _frozen(line @ beyond if width >= entering else _cropped(line, entering))


def derivative_stencils(
    indices: tuple[tuple[int, ...], ...], sigma: float
) -> np.ndarray:
    """`m(α) σ^|α| δ^α` for each multi-index.

    Args:
        indices: Multi-indices α.
        sigma: Standard deviation σ in steps.

    Returns:
        A float64 array, `(3, …, 3, len(indices))` up to order 2.
    """
    radius = stencil_radius(indices)
    return np.stack([_stencil(alpha, sigma, radius) for alpha in indices], axis=-1)


def stencil_radius(indices: tuple[tuple[int, ...], ...]) -> int:
    """How many steps from the center the differences of these orders look.

    Args:
        indices: Multi-indices α.

    Returns:
        The number of steps, 1 up to order 2.
    """
    return math.ceil(max(max(alpha) for alpha in indices) / 2)


def _stencil(alpha: tuple[int, ...], sigma: float, radius: int) -> np.ndarray:
    product = np.array(multinomial(alpha) * sigma ** sum(alpha))
    for order in alpha:
        difference = central_difference(order)
        along = np.pad(difference, radius - len(difference) // 2)
        product = np.multiply.outer(product, along)
    return product


def _at(positions: np.ndarray, size: int, sigma: float, boundary: str) -> np.ndarray:
    """The smoothed spline through `size` centered values, at positions."""
    # Gauss' bell by the trapezoidal rule, which is exact to many digits for it.
    spacing = min(max(sigma / 8, 1 / 16), 1 / 4)
    reach = math.ceil(6 * sigma / spacing)
    u = np.arange(-reach, reach + 1) * spacing
    bell = np.exp(-0.5 * (u / sigma) ** 2) if sigma else np.ones(1)
    margin = math.ceil(max(np.abs(positions).max() - size / 2, 0) + 6 * sigma) + 2
    margin += _SPLINE_REACH
    pixel = np.arange(size + 2 * margin) - margin - (size - 1) / 2
    basis = np.zeros((len(positions), len(pixel)))
    for offset, weight in zip(u, bell / bell.sum(), strict=True):
        basis += weight * _cubic(positions[:, None] + offset - pixel)
    distance = np.abs(np.subtract.outer(pixel, pixel))
    coefficients = math.sqrt(3) * (math.sqrt(3) - 2) ** distance
    return basis @ coefficients @ _extended(size, margin, boundary)


def _cubic(x: np.ndarray) -> np.ndarray:
    """The cubic B-spline."""
    x = np.abs(x)
    inner = 2 / 3 - x**2 + x**3 / 2
    return np.where(x <= 1, inner, np.maximum(2 - x, 0) ** 3 / 6)


def _extended(size: int, margin: float, boundary: str) -> np.ndarray:
    """From `size` values to those, and `margin` on either side: `(…, size)`."""
    place = np.arange(size + round(2 * margin)) - round(margin)
    inside = (place >= 0) & (place < size)
    place = place % (2 * size)
    place = np.minimum(place, 2 * size - 1 - place)
    matrix = np.zeros((len(place), size))
    matrix[np.arange(len(place)), place] = 1
    return matrix if boundary == "symmetric" else matrix * inside[:, None]


def _cropped(line, entering: int) -> np.ndarray:
    """Of a narrow kernel: the inputs beyond its reach count nothing."""
    margin = (entering - line.shape[1]) // 2
    return np.pad(line.toarray(), [(0, 0), (margin, margin)])


def _centered(count: int) -> np.ndarray:
    return np.arange(count) - (count - 1) / 2


def _frozen(array: np.ndarray) -> np.ndarray:
    # The cache hands the same array to every layer.
    array = np.asarray(array)
    array.setflags(write=False)
    return array
