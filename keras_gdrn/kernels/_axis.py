"""The kernels as matrices along one axis.

Axes shorter than `LONG_AXIS` have NumPy arrays. Longer ones have SciPy's sparse arrays,
so that the cost per pixel does not grow with the axis.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from keras_gdrn._checks import check_choice
from keras_gdrn.kernels._discrete import (
    discrete_gaussian,
    fourier_response,
    gaussian_derivative,
    support_radius,
)

BOUNDARIES = ("zero", "symmetric")

LONG_AXIS = 256

# Largest factor by which differences of smoothed values may magnify rounding errors.
_MAX_MAGNIFICATION = 30

# Share of the tolerance that the truncated tails of kernels may use.
_TAIL = 0.02


class Halves(NamedTuple):
    """Kernels factored into two of half the variance, with few coefficients between.

    `K_a ≈ synthesis[a] @ analysis[0] ≈ synthesis[0] @ analysis[a]` for each order `a`.

    Attributes:
        analysis: Matrices `(coefficients, size)`.
        synthesis: Matrices `(size, coefficients)`.
    """

    analysis: tuple[Any, ...]
    synthesis: tuple[Any, ...]


def axis_operator(size: int, sigma: float, order: int, boundary: str) -> np.ndarray:
    """Matrix `K_order` that applies the 1-D kernel along an axis of `size` pixels.

    Args:
        size: Number of pixels along the axis.
        sigma: Standard deviation σ in pixels.
        order: Order of differentiation, at least 0.
        boundary: `"zero"` (pixels outside the image are zero) or `"symmetric"`
            (half-sample mirror: `x[-1 - n] = x[n]`, repeated as often as needed).

    Returns:
        A float64 array `(size, size)`: `K @ x` is the response to the signal `x`.

    Raises:
        ValueError: If an argument is out of its range.
    """
    check_choice("boundary", boundary, BOUNDARIES)
    if size < 1:
        raise ValueError(f"`size` must be >= 1. Received: size={size}")
    radius = support_radius(sigma) + order
    kernel = gaussian_derivative(sigma, order, radius)
    return (_band(kernel, size) @ extended(size, radius, boundary)).toarray()


@functools.lru_cache(maxsize=256)
def smoothing(entering: int, leaving: int, sigma: float, boundary: str) -> Any:
    """Matrix of the discrete Gaussian `T(·; σ)`, between signals of two lengths.

    Args:
        entering: Number of input values.
        leaving: Number of output values: as many more, or fewer, on either side.
        sigma: Standard deviation σ, in steps between values.
        boundary: What lies beyond the input, as for `axis_operator`.

    Returns:
        A read-only float64 matrix `(leaving, entering)`.
    """
    radius = support_radius(sigma)
    band = _band(discrete_gaussian(sigma, radius), leaving)
    margin = radius + (leaving - entering) // 2
    return _read_only(band @ extended(entering, margin, boundary))


@functools.lru_cache(maxsize=256)
def halves(
    size: int, sigma: float, order: int, boundary: str, epsilon: float
) -> Halves | None:
    """Factors the kernels `K_0, …, K_order` of a wide Gaussian, by few coefficients.

    A Gaussian equals two of half its variance in succession. After the first, samples
    some 0.6 σ apart suffice for the second, and either can carry the derivatives.

    Guarantee: in the spectral norm, errors are at most `epsilon` times the sum of the
    norms of `[K_0 | K_1 | …]` and of `K_0`, `K_1`, … stacked vertically.

    Args:
        size: Number of pixels along the axis.
        sigma: Standard deviation σ in pixels.
        order: Highest order of differentiation.
        boundary: As for `axis_operator`.
        epsilon: Relative tolerance, in (0, 1).

    Returns:
        Read-only float64 matrices, or `None` for a σ so small that differences of
        smoothed values serve as well.
    """
    if (2 * sigma) ** max(order, 2) < _MAX_MAGNIFICATION:
        return None
    spacing = _spacing(sigma, order, epsilon)
    half, tail = sigma / math.sqrt(2), _TAIL * epsilon
    kernels = [
        2 ** (a / 2) * gaussian_derivative(half, a, support_radius(half) + order)
        for a in range(order + 1)
    ]
    radius = max(_radius(kernel, tail) for kernel in kernels)
    kernels = [_trimmed(kernel, radius) for kernel in kernels]
    # Outputs at the edges need samples up to a kernel's radius beyond them.
    count = math.ceil((size - 1 + 2 * radius) / spacing) + 1
    width = spacing * (count - 1) + 1
    margin = (width - size) // 2
    outside = extended(size, margin + radius + 1, boundary)[1 : 1 + width + 2 * radius]
    bands = [_band(kernel, width) for kernel in kernels]
    analysis = (band[::spacing] @ outside for band in bands)
    inside, samples = slice(margin, margin + size), slice(radius, radius + width)
    synthesis = [spacing * band[inside, samples][:, ::spacing] for band in bands]
    # Corrected so that a constant stays itself, and its derivatives are zero.
    constant = synthesis[0].sum(axis=1)
    share = scipy.sparse.diags_array(1 / constant) @ synthesis[0]
    synthesis = [
        one - scipy.sparse.diags_array(one.sum(axis=1) - (a == 0)) @ share
        for a, one in enumerate(synthesis)
    ]
    return Halves(tuple(map(_read_only, analysis)), tuple(map(_read_only, synthesis)))


def extended(size: int, margin: int, boundary: str) -> scipy.sparse.csr_array:
    """Extends `size` values by `margin` on either side, or crops them if negative.

    Returns:
        A sparse matrix `(size + 2 * margin, size)` of zeros and ones.
    """
    place = np.arange(-margin, size + margin)
    if boundary == "symmetric":
        place = place % (2 * size)
        place = np.minimum(place, 2 * size - 1 - place)
    row = np.flatnonzero((place >= 0) & (place < size))
    ones = np.ones(len(row))
    shape = (size + 2 * margin, size)
    return scipy.sparse.coo_array((ones, (row, place[row])), shape=shape).tocsr()


def _band(kernel: np.ndarray, rows: int) -> scipy.sparse.csr_array:
    """Correlation with a kernel, valid part only: `(rows, rows + 2 radius)`."""
    shape = (rows, rows + len(kernel) - 1)
    diagonals = np.repeat(kernel[:, None], rows, axis=1)
    return scipy.sparse.diags_array(
        list(diagonals), offsets=np.arange(len(kernel)), shape=shape
    ).tocsr()


def _spacing(sigma: float, order: int, epsilon: float) -> int:
    """Largest spacing of the samples between the two factors of a Gaussian.

    Frequencies that differ by multiples of `2π / spacing` are aliases. Both Gaussians
    damp them, derivatives included. The remaining aliasing, a matrix for each frequency
    of the samples, must stay below the two shares of `epsilon` in the guarantee.
    """
    half, orders = sigma / math.sqrt(2), range(order + 1)
    theta = np.linspace(-np.pi, np.pi, 721)
    whole = [fourier_response(theta, sigma, a) for a in orders]
    # Mirroring and the correction for constants matter more at higher orders.
    shares = 1.8 if order <= 2 else 0.7
    allowed = shares * epsilon * np.linalg.norm(whole, axis=0).max()
    for spacing in range(math.floor(sigma), 1, -1):
        reach = math.ceil(spacing / 2)
        waves = 2 * np.pi / spacing * np.arange(-reach, reach + 1)
        theta = np.linspace(0, np.pi / spacing, 33)[:, None] + waves
        first, *others = [
            (abs(theta) <= np.pi) * 2 ** (a / 2) * fourier_response(theta, half, a)
            for a in orders
        ]
        aliases = first[:, :, None] * (1 - np.eye(len(waves)))
        folded = [aliases * one[:, None, :] for one in (first, *others)]
        if np.linalg.norm(folded, axis=(2, 3)).max() <= allowed:
            return spacing
    return 1


def _radius(kernel: np.ndarray, tail: float) -> int:
    """Radius beyond which the kernel sums to no more than `tail`."""
    middle = len(kernel) // 2
    outwards = np.abs(kernel[middle:]) + np.abs(kernel[middle::-1])
    sums = np.cumsum(outwards[::-1])[::-1]
    return max(int(np.count_nonzero(sums > tail)) - 1, 0)


def _trimmed(kernel: np.ndarray, radius: int) -> np.ndarray:
    """The kernel cut to `radius`, with the same sum."""
    middle = len(kernel) // 2
    cut = kernel[middle - radius : middle + radius + 1].copy()
    cut[radius] += kernel.sum() - cut.sum()
    return cut


def _read_only(matrix) -> Any:
    """Sparse if long, else dense. The cache shares the matrix between layers."""
    if max(matrix.shape) >= LONG_AXIS:
        matrix = scipy.sparse.csr_array(matrix)
        matrix.data.setflags(write=False)
        return matrix
    matrix = matrix.toarray()
    matrix.setflags(write=False)
    return matrix
