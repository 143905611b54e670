"""Sampling, interpolation and differences along one axis, of pixels and grids.

A grid has an odd number of points, one of them at the center of the image. Its step is
in units of the initial scale, so that one network serves all scale channels.
"""

import functools
import math
from typing import Any

import numpy as np

from keras_gdrn.kernels._axis import extended
from keras_gdrn.kernels._discrete import central_difference

# A value's influence on spline coefficients falls by a factor of 0.27 per pixel.
_SPLINE_REACH = 30


@functools.lru_cache(maxsize=256)
def sampling(
    pixels: int, points: int, step: float, sigma: float, boundary: str
) -> np.ndarray:
    """Matrix that smooths an image by a Gaussian and samples it, `step` apart.

    The image is the cubic spline through its pixels, and the Gaussian is continuous:
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
    return _frozen(_at_positions(_centered(points) * step, pixels, sigma, boundary))


def sampling_nodes(
    pixels: int, points: int, step: float, widest: float, boundary: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The parts of `sampling`, for a σ that is not known yet.

    Args:
        pixels, points, step, boundary: As for `sampling`.
        widest: Largest σ, in pixels.

    Returns:
        Four arrays: nodes of the Gaussian in units of σ, their weights, distances of
        samples from basis functions of the spline, `(points, functions)`, and their
        coefficients, `(functions, pixels)`: `Σ_v w_v B(distance + σ v) @ coefficients`.
    """
    positions = _centered(points) * step
    reach = np.abs(positions).max() + 6 * widest
    pixel, values = _spline(reach, pixels, boundary)
    return *_gaussian_nodes(widest), positions[:, None] - pixel, values


def cubic_spline(x, module: Any = np) -> Any:
    """The cubic B-spline at `x`.

    Args:
        x: Distances from its center, an array, or a tensor for `keras.ops`.
        module: Module with `abs` and `maximum`, such as `numpy` or `keras.ops`.

    Returns:
        An array or a tensor like `x`; zero from distance 2 on.
    """
    outer, inner = (module.maximum(end - module.abs(x), 0) ** 3 for end in (2, 1))
    return (outer - 4 * inner) / 6


@functools.lru_cache(maxsize=16)
def spline_response(sigma: float, fineness: int) -> np.ndarray:
    """Impulse response of the smoothed spline: a single 1 among zeros.

    Args:
        sigma: Standard deviation σ of the smoothing, in pixels.
        fineness: Points per pixel.

    Returns:
        A read-only float64 array of odd length around the 1, followed by a zero.
    """
    reach = fineness * math.ceil(6 * sigma + 12)
    positions = np.arange(-reach, reach + 1) / fineness
    line = _at_positions(positions, 1, sigma, "zero")[:, 0]
    return _frozen(np.append(line, 0.0))


@functools.lru_cache(maxsize=256)
def interpolation(points: int, step: float, pixels: int) -> np.ndarray:
    """Matrix that interpolates samples at the pixels, by a cubic spline.

    Args:
        points: Number of samples, around the center of the image.
        step: Distance of the samples, in pixels.
        pixels: Length of the axis.

    Returns:
        A read-only float64 array `(pixels, points)`.
    """
    return _frozen(_at_positions(_centered(pixels) / step, points, 0.0, "symmetric"))


def derivative_stencils(indices: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """Stencils of the central differences `δ^α`, one for each multi-index.

    Args:
        indices: Multi-indices α.

    Returns:
        A float64 array, `(3, …, 3, len(indices))` up to order 2.
    """
    radius = stencil_radius(indices)
    return np.stack([_stencil(alpha, radius) for alpha in indices], axis=-1)


def stencil_radius(indices: tuple[tuple[int, ...], ...]) -> int:
    """Radius of the stencils of these multi-indices, in steps.

    Args:
        indices: Multi-indices α.

    Returns:
        The radius, 1 up to order 2.
    """
    return math.ceil(max(max(alpha) for alpha in indices) / 2)


def _stencil(alpha: tuple[int, ...], radius: int) -> np.ndarray:
    product = np.ones(())
    for order in alpha:
        difference = central_difference(order)
        along = np.pad(difference, radius - len(difference) // 2)
        product = np.multiply.outer(product, along)
    return product


def _at_positions(positions, size: int, sigma: float, boundary: str) -> np.ndarray:
    """The smoothed spline through `size` centered values, at positions."""
    spread, weights = _gaussian_nodes(sigma)
    pixel, values = _spline(np.abs(positions).max() + 6 * sigma, size, boundary)
    basis = np.zeros((len(positions), len(pixel)))
    for offset, weight in zip(sigma * spread, weights, strict=True):
        basis += weight * cubic_spline(positions[:, None] + offset - pixel)
    return basis @ values


def _gaussian_nodes(widest: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes, in units of σ, and weights of integrals with a Gaussian of σ ≤ `widest`.

    By the trapezoidal rule, which is exact to many digits for a Gaussian.
    """
    if not widest:
        return np.zeros(1), np.ones(1)
    spacing = min(1 / 8, 1 / (4 * widest))
    reach = math.ceil(6 / spacing)
    spread = np.arange(-reach, reach + 1) * spacing
    bell = np.exp(-0.5 * spread**2)
    return spread, bell / bell.sum()


def _spline(reach: float, size: int, boundary: str) -> tuple[np.ndarray, np.ndarray]:
    """The cubic spline through `size` centered values, extended beyond them.

    Returns:
        Positions of the basis functions that values up to `reach` need, and their
        coefficients, `(functions, size)`.
    """
    margin = math.ceil(max(reach - size / 2, 0)) + 2 + _SPLINE_REACH
    distance = np.abs(np.subtract.outer(*[np.arange(size + 2 * margin)] * 2))
    coefficients = math.sqrt(3) * (math.sqrt(3) - 2) ** distance
    return _centered(size + 2 * margin), coefficients @ extended(size, margin, boundary)


def _centered(count: int) -> np.ndarray:
    return np.arange(count) - (count - 1) / 2


def _frozen(array: np.ndarray) -> np.ndarray:
    # The cache hands the same array to every layer.
    array = np.asarray(array)
    array.setflags(write=False)
    return array
