"""Smoothing and sampling along one axis, of pixels and grids.

A grid has an odd number of points, one of them at the center of the image. Its step is
in units of the initial scale, so that one network serves all scale channels.
"""

import functools
import math
from typing import Any

import numpy as np
import scipy.sparse

from keras_gdrn.kernels._axis import cacheable, padding_matrix
from keras_gdrn.kernels._discrete import ROUNDING

# A value's influence on spline coefficients falls by a factor of 0.27 per pixel.
_SPLINE_REACH = 30

# Standard deviations from which on a Gaussian is below rounding.
_GAUSSIAN_REACH = 9


@functools.lru_cache(maxsize=256)
def sampling(
    pixels: int, points: int, step: float, sigma: float, boundary: str
) -> np.ndarray:
    """Matrix `(points, pixels)` that smooths an image and samples it, `step` apart.

    The image is the cubic spline through its pixels, and the Gaussian is continuous:
    `g(x_j) = ∫ G(u; σ) f(x_j + u) du`. Without σ, it is the image itself.
    """
    if not sigma:
        return cacheable(_spline_at(_centered(points) * step, pixels, boundary))
    spacing, count = nodes(points, step, sigma)
    smooth = resampling(count, points, step / spacing, sigma / spacing, "zero")
    return cacheable(smooth @ _spline_at(_centered(count) * spacing, pixels, boundary))


@functools.lru_cache(maxsize=256)
def resampling(size: int, points: int, step: float, sigma: float, boundary: str) -> Any:
    """Matrix `(points, size)` that smooths a map and samples it, `step` apart.

    `g(x_j) = Σ_i G(x_j - i; σ) f(i)`: the Gaussian is continuous, and the map has its
    values at integers `i` around its center.
    """
    positions = _centered(points) * step
    beyond = positions[-1] + _GAUSSIAN_REACH * sigma - (size - 1) / 2
    margin = max(math.ceil(beyond), 0)
    weights = gaussian(positions[:, None] - _centered(size + 2 * margin), sigma)
    weights[weights < ROUNDING] = 0
    weights = scipy.sparse.csr_array(weights)
    return cacheable(weights @ padding_matrix(size, margin, boundary))


def nodes(points: int, step: float, sigma: float, growth=1.0) -> tuple[float, int]:
    """Spacing and number of the nodes of a Gaussian integral around each point.

    By the trapezoidal rule, which is exact to many digits for a Gaussian. The nodes are
    close enough for `sigma`, and reach far enough for up to `growth` times it.
    """
    spacing = min(1, sigma) / 4
    reach = (points - 1) / 2 * step + _GAUSSIAN_REACH * growth * sigma
    return spacing, 2 * math.ceil(reach / spacing) + 1


def gaussian(x, sigma, module: Any = np) -> Any:
    """`exp(-x² / (2 σ²)) / (√(2π) σ)`; of tensors if `module` is `keras.ops`."""
    peak = 1 / (math.sqrt(2 * math.pi) * sigma)
    return peak * module.exp(-0.5 * module.square(x / sigma))


@functools.lru_cache(maxsize=16)
def spline_response(sigma: float, fineness: int) -> np.ndarray:
    """Response of the smoothed spline to a single 1, at `fineness` points per pixel.

    Its length is odd, around the 1; one more zero follows.
    """
    reach = fineness * math.ceil(6 * sigma + 12)
    line = sampling(1, 2 * reach + 1, 1 / fineness, sigma, "zero")[:, 0]
    return cacheable(np.append(line, 0.0))


def _spline_at(positions, size: int, boundary: str) -> np.ndarray:
    """The cubic spline through `size` centered values, at positions."""
    beyond = max(np.abs(positions).max() - size / 2, 0)
    margin = math.ceil(beyond) + 2 + _SPLINE_REACH
    pixel = _centered(size + 2 * margin)
    coefficients = math.sqrt(3) * (math.sqrt(3) - 2) ** abs(pixel[:, None] - pixel)
    basis = _cubic_spline(positions[:, None] - pixel)
    return basis @ (coefficients @ padding_matrix(size, margin, boundary))


def _cubic_spline(x: np.ndarray) -> np.ndarray:
    """The cubic B-spline at distances `x` from its center; zero from 2 on."""
    outer, inner = (np.maximum(end - np.abs(x), 0) ** 3 for end in (2, 1))
    return (outer - 4 * inner) / 6


def _centered(count: int) -> np.ndarray:
    return np.arange(count) - (count - 1) / 2
