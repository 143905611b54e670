"""Sampling, interpolation and differences along one axis, of pixels and grids.

A grid has an odd number of points, one of them at the center of the image. Its step is
in units of the initial scale, so that one network serves all scale channels.
"""

import functools
import math
from typing import Any

import numpy as np

from keras_gdrn.kernels._axis import extended, read_only
from keras_gdrn.kernels._discrete import central_difference

# A value's influence on spline coefficients falls by a factor of 0.27 per pixel.
_SPLINE_REACH = 30


@functools.lru_cache(maxsize=256)
def sampling(
    pixels: int, points: int, step: float, sigma: float, boundary: str
) -> np.ndarray:
    """Matrix `(points, pixels)` that smooths an image and samples it, `step` apart.

    The image is the cubic spline through its pixels, and the Gaussian is continuous:
    `g(x_j) = ∫ G(u; σ) f(x_j + u) du`. Without σ, it is the image itself.
    """
    if not sigma:
        return read_only(_spline_at(_centered(points) * step, pixels, boundary))
    positions, nodes, values = sampling_nodes(pixels, points, step, boundary, sigma)
    return read_only(gaussian_weights(positions, nodes, sigma) @ values)


def sampling_nodes(
    pixels: int, points: int, step: float, boundary: str, sigma: float, growth=1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions of samples and of nodes around them, and `(nodes, pixels)` values.

    The nodes are close enough for `gaussian_weights` of `sigma`, and reach far enough
    for those of up to `growth` times it.
    """
    positions, spacing = _centered(points) * step, min(1, sigma) / 4
    reach = math.ceil((np.abs(positions).max() + 6 * growth * sigma) / spacing)
    nodes = np.arange(-reach, reach + 1) * spacing
    return positions, nodes, _spline_at(nodes, pixels, boundary)


def gaussian_weights(positions, nodes, sigma, module: Any = np) -> Any:
    """Weights of the integral with a Gaussian around each position.

    By the trapezoidal rule, which is exact to many digits for a Gaussian. Arguments may
    be tensors if `module` is `keras.ops`.
    """
    distance = (positions[:, None] - nodes) / sigma
    bell = module.exp(-0.5 * module.square(distance))
    return bell / module.sum(bell, axis=1, keepdims=True)


@functools.lru_cache(maxsize=16)
def spline_response(sigma: float, fineness: int) -> np.ndarray:
    """Response of the smoothed spline to a single 1, at `fineness` points per pixel.

    Its length is odd, around the 1; one more zero follows.
    """
    reach = fineness * math.ceil(6 * sigma + 12)
    line = sampling(1, 2 * reach + 1, 1 / fineness, sigma, "zero")[:, 0]
    return read_only(np.append(line, 0.0))


@functools.lru_cache(maxsize=256)
def interpolation(points: int, step: float, pixels: int) -> np.ndarray:
    """Matrix `(pixels, points)` of the cubic spline through samples, `step` apart."""
    return read_only(_spline_at(_centered(pixels) / step, points, "symmetric"))


@functools.cache
def derivative_stencils(indices: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """Stencils of the differences `δ^α`, `(3, …, 3, len(indices))` up to order 2."""
    along = [central_difference(a) for a in range(max(map(max, indices)) + 1)]
    size = max(map(len, along))
    along = [np.pad(stencil, (size - len(stencil)) // 2) for stencil in along]
    stencils = [
        functools.reduce(np.multiply.outer, (along[a] for a in alpha))
        for alpha in indices
    ]
    return read_only(np.stack(stencils, axis=-1))


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
