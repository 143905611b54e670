"""One-dimensional kernels: the discrete Gaussian and its derivatives."""

import functools
import math

import numpy as np
from scipy.ndimage import convolve1d
from scipy.special import ive

from keras_gdrn._checks import check_epsilon, check_sigma

# Gaussian tails below this are lost in float64 rounding and are not computed.
_ROUNDING = 1e-17

# Beyond so many pixels nothing is left of a value in the spline: 0.27 of it each.
_SPLINE_RADIUS = 30


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
    stencil = np.ones(1)
    if order % 2:
        stencil = np.array([-0.5, 0.0, 0.5])
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
    check_sigma(sigma)
    return ive(np.abs(np.arange(-radius, radius + 1)), float(sigma) ** 2)


def gaussian_derivative(
    sigma: float, order: int, radius: int, step: float = 1.0
) -> np.ndarray:
    """Scale-normalized 1-D kernel `sigma**order δ^order T(·; sigma)`.

    With a `step` of less than a pixel it is the kernel on a grid of this step, applied
    to the cubic spline through the signal: `k(n) = Σ_m w(m step - n) k'(m)`, where `k'`
    is the kernel of `sigma / step` and `w` that of `spline_interpolation`. So it comes
    closer to the derivative of the Gaussian where σ is less than a pixel.

    Args:
        sigma: Standard deviation σ in pixels.
        order: Order of differentiation, at least 0.
        radius: Largest distance from the center, in pixels.
        step: Step of the grid in pixels, at most 1.

    Returns:
        A float64 array of length `2 * radius + 1`, to be used as a correlation: a ramp
        that rises along the axis is answered by `+sigma` at order 1.
    """
    if step < 1:
        points = support_radius(sigma / step) + order
        fine = gaussian_derivative(sigma / step, order, points)
        return spline_interpolation(radius, points, step) @ fine
    stencil = central_difference(order)
    smooth = discrete_gaussian(sigma, radius + len(stencil) // 2)
    return sigma**order * np.convolve(smooth, stencil[::-1], mode="valid")[::-1]


@functools.lru_cache(maxsize=256)
def half_pixel_derivative(sigma: float, order: int) -> np.ndarray:
    """`gaussian_derivative` at every half pixel, as its Fourier sum continues it.

    Args:
        sigma: Standard deviation σ in pixels, at least 1: a narrower kernel oscillates
            between the pixels.
        order: Order of differentiation, at least 0.

    Returns:
        A read-only float64 array of odd length, centered: every second value, from the
        middle on, is the kernel itself.
    """
    radius = support_radius(sigma) + order
    period = 2 * radius + 1
    theta = 2 * np.pi / period * np.arange(-radius, radius + 1)
    waves = np.exp(-0.5j * theta * np.arange(-2 * radius, 2 * radius + 1)[:, None])
    kernel = np.real(waves @ fourier_response(theta, sigma, order)) / period
    kernel.setflags(write=False)
    return kernel


@functools.lru_cache(maxsize=16)
def spline_interpolation(radius: int, points: int, step: float) -> np.ndarray:
    """Weights of the pixels in the values between them, by the cubic spline.

    The spline through the values at all pixels is `Σ_n w(x - n) value(n)`, exact for
    polynomials up to order 3, with `w(x) = √3 Σ_k z^|k| B(x - k)`, where B is the cubic
    B-spline and `z = √3 - 2`.

    Source: Unser (1999), "Splines: a perfect fit for signal and image processing".

    Args:
        radius: Largest distance of a pixel from the center.
        points: Largest number of steps of a point from the center.
        step: Distance of the points, in pixels.

    Returns:
        A read-only float64 array `(2 * radius + 1, 2 * points + 1)`.
    """
    reach = _SPLINE_RADIUS
    pixel, point = (np.arange(-end, end + 1) for end in (radius + reach, points))
    x = np.abs(step * point - pixel[:, None])
    inner = 2 / 3 - x**2 + x**3 / 2
    basis = np.where(x <= 1, inner, np.maximum(2 - x, 0) ** 3 / 6)
    k = np.arange(-reach, reach + 1)
    cardinal = math.sqrt(3) * (math.sqrt(3) - 2) ** np.abs(k)
    weights = convolve1d(basis, cardinal, axis=0, mode="constant")[reach:-reach]
    weights.setflags(write=False)
    return weights


def fourier_response(theta: np.ndarray, sigma: float, order: int) -> np.ndarray:
    """Closed form of the kernel in the Fourier domain.

    `sigma**a (i sin θ)**(a mod 2) (2 cos θ - 2)**⌊a/2⌋ exp(-s (1 - cos θ))`: the factor
    by which correlation with `gaussian_derivative` (of step 1) multiplies `exp(i θ n)`.

    Args:
        theta: Angular frequencies in radians per pixel, any shape.
        sigma: Standard deviation σ in pixels.
        order: Order of differentiation, at least 0.

    Returns:
        A complex array of the shape of `theta`.
    """
    check_sigma(sigma)
    theta = np.asarray(theta, dtype=float)
    difference = (1j * np.sin(theta)) ** (order % 2)
    difference = difference * (2 * np.cos(theta) - 2) ** (order // 2)
    return sigma**order * difference * np.exp(-(sigma**2) * (1 - np.cos(theta)))


def truncation_radius(sigma: float, epsilon: float, dimensions: int = 1) -> int:
    """Smallest radius whose `(2 radius + 1)**D` window holds `1 - epsilon` of the mass.

    Source: the relative truncation error bound ε of the paper's Table 2,
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


def support_radius(sigma: float, step: float = 1.0) -> int:
    """Radius outside which `T(·; sigma)` vanishes to float64 rounding.

    Args:
        sigma: Standard deviation σ in pixels.
        step: As for `gaussian_derivative`.

    Returns:
        The radius in pixels.
    """
    check_sigma(sigma)
    if step < 1:
        return math.ceil(step * support_radius(sigma / step)) + _SPLINE_RADIUS
    radius = math.ceil(10 * sigma) + 20
    tail = ive(np.arange(radius + 1), float(sigma) ** 2)
    return int(np.count_nonzero(tail > _ROUNDING))
