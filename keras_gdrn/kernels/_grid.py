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
    if not sigma:
        return _frozen(_spline_at(_centered(points) * step, pixels, boundary))
    positions, nodes, values = sampling_nodes(pixels, points, step, boundary, sigma)
    return _frozen(gaussian_weights(positions, nodes, sigma) @ values)


def sampling_nodes(
    pixels: int,
    points: int,
    step: float,
    boundary: str,
    sigma: float,
    growth: float = 1,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The parts of `sampling` for σ that is still to come.

    Args:
        pixels, points, step, boundary: As for `sampling`.
        sigma: About the standard deviation, in pixels.
        growth: Up to which multiple of it there are enough nodes.

    Returns:
        Positions of the samples and of nodes around them, and the spline's values at
        the nodes, `(nodes, pixels)`.
    """
    positions, spacing = _centered(points) * step, min(1, sigma) / 4
    reach = math.ceil((np.abs(positions).max() + 6 * growth * sigma) / spacing)
    nodes = np.arange(-reach, reach + 1) * spacing
    return positions, nodes, _spline_at(nodes, pixels, boundary)


def gaussian_weights(positions, nodes, sigma, module: Any = np) -> Any:
    """Weights of the integral with a Gaussian around each position.

    By the trapezoidal rule, which is exact to many digits for a Gaussian.

    Args:
        positions, nodes: Arrays, or tensors for `keras.ops`.
        sigma: Standard deviation σ, a number or a tensor.
        module: `numpy` or `keras.ops`.

    Returns:
        An array or a tensor `(positions, nodes)`.
    """
    distance = (positions[:, None] - nodes) / sigma
    bell = module.exp(-0.5 * module.square(distance))
    return bell / module.sum(bell, axis=1, keepdims=True)


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
    line = sampling(1, 2 * reach + 1, 1 / fineness, sigma, "zero")[:, 0]
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
    return _frozen(_spline_at(_centered(pixels) / step, points, "symmetric"))


@functools.cache
def derivative_stencils(indices: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """Stencils of the central differences `δ^α`, one for each multi-index.

    Args:
        indices: Multi-indices α.

    Returns:
        A float64 array, `(3, …, 3, len(indices))` up to order 2.
    """
    along = [central_difference(a) for a in range(max(map(max, indices)) + 1)]
    size = max(map(len, along))
    along = [np.pad(stencil, (size - len(stencil)) // 2) for stencil in along]
    stencils = [
        functools.reduce(np.multiply.outer, (along[a] for a in alpha))
        for alpha in indices
    ]
    return _frozen(np.stack(stencils, axis=-1))


def _spline_at(positions, size: int, boundary: str) -> np.ndarray:
    """The cubic spline through `size` centered values, at positions."""
    beyond = max(np.abs(positions).max() - size / 2, 0)
    margin = math.ceil(beyond) + 2 + _SPLINE_REACH
    pixel = _centered(size + 2 * margin)
    coefficients = math.sqrt(3) * (math.sqrt(3) - 2) ** abs(pixel[:, None] - pixel)
    basis = _cubic_spline(positions[:, None] - pixel)
    return basis @ (coefficients @ extended(size, margin, boundary))


def _cubic_spline(x: np.ndarray) -> np.ndarray:
    """The cubic B-spline at distances `x` from its center; zero from 2 on."""
    outer, inner = (np.maximum(end - np.abs(x), 0) ** 3 for end in (2, 1))
    return (outer - 4 * inner) / 6


def _centered(count: int) -> np.ndarray:
    return np.arange(count) - (count - 1) / 2


def _frozen(array: np.ndarray) -> np.ndarray:
    # The cache hands the same array to every layer.
    array = np.asarray(array)
    array.setflags(write=False)
    return array
