"""One-dimensional kernels: the discrete Gaussian and its derivatives."""

import math

import numpy as np
from scipy.special import ive

from keras_gdrn._checks import check_epsilon, check_positive

# Gaussian tails below this are lost in float64 rounding and are not computed.
ROUNDING = 1e-17


def central_difference(order: int) -> np.ndarray:
    """Stencil of the composed central difference `δ^order`, as a correlation.

    `δ_x = (-1/2, 0, 1/2)` and `δ_xx = (1, -2, 1)`, composed: `δ_xx^j` for
    `order = 2j`, `δ_x δ_xx^j` for `order = 2j + 1`.

    Source: Eqs. central-difference-operators and disc-gauss+central-diff.

    Args:
        order: Order of differentiation, at least 0.

    Returns:
        A float64 array of odd length `2 * ceil(order / 2) + 1`, centered.

    Raises:
        ValueError: If `order` is negative.
    """
    if order < 0:
        raise ValueError(f"`order` must be >= 0. Received: order={order}")
    stencil = np.array([-0.5, 0.0, 0.5] if order % 2 else [1.0])
    for _ in range(order // 2):
        stencil = np.convolve(stencil, [1.0, -2.0, 1.0])
    return stencil


def discrete_gaussian(sigma: float, radius: int) -> np.ndarray:
    """Discrete analogue of the Gaussian, `T(n; sigma)` for `|n| <= radius`.

    Source: Lindeberg 1990; Eq. discrete-gaussian-kernel.

    Args:
        sigma: Standard deviation σ in pixels.
        radius: Largest distance from the center, in pixels.

    Returns:
        A float64 array of length `2 * radius + 1`.
    """
    check_positive("sigma", sigma)
    return ive(np.abs(np.arange(-radius, radius + 1)), float(sigma) ** 2)


def gaussian_derivative(sigma: float, order: int, radius: int) -> np.ndarray:
    """Scale-normalized 1-D kernel `sigma**order δ^order T(·; sigma)`.

    Args:
        sigma: Standard deviation σ in pixels.
        order: Order of differentiation, at least 0.
        radius: Largest distance from the center, in pixels.

    Returns:
        A float64 array of length `2 * radius + 1`, to be used as a correlation: at
        order 1, its response to a ramp of slope 1 along the axis is `+sigma`.
    """
    stencil = central_difference(order)
    smooth = discrete_gaussian(sigma, radius + len(stencil) // 2)
    return sigma**order * np.convolve(smooth, stencil[::-1], mode="valid")[::-1]


def truncation_radius(sigma: float, epsilon: float, dimensions: int = 1) -> int:
    """Smallest radius whose `(2 radius + 1)**D` window holds `1 - epsilon` of the mass.

    Source: the relative truncation error bound ε of the paper's Table 1,
    `1 - (Σ_{|n| <= radius} T(n; sigma))**D <= epsilon`.

    Args:
        sigma: Standard deviation σ in pixels.
        epsilon: Largest share of the mass outside, in (0, 1).
        dimensions: Number D of spatial dimensions.

    Returns:
        The radius in pixels.

    Raises:
        ValueError: If an argument is out of its range.
    """
    check_epsilon(epsilon)
    if dimensions < 1:
        raise ValueError(
            f"`dimensions` must be >= 1. Received: dimensions={dimensions}"
        )
    half = discrete_gaussian(sigma, support_radius(sigma))
    half = half[len(half) // 2 :]
    # Sum the tails, smallest first: 1 - (sum) would lose every epsilon below 1e-16.
    tails = 2 * np.append(np.cumsum(half[:0:-1])[::-1], 0.0)
    return int(np.argmax(-np.expm1(dimensions * np.log1p(-tails)) <= epsilon))


def support_radius(sigma: float) -> int:
    """Radius outside which `T(·; sigma)` vanishes to float64 rounding."""
    check_positive("sigma", sigma)
    radius = math.ceil(10 * sigma) + 20
    tail = ive(np.arange(radius + 1), float(sigma) ** 2)
    return int(np.count_nonzero(tail > ROUNDING))
