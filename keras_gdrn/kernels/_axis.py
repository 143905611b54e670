"""The kernels as matrices along one axis.

Matrices of axes shorter than `LONG_AXIS` are NumPy arrays; those of longer ones are
SciPy's sparse ones, so that a pixel costs the same however long its axis is.
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

# Up to so much, differences of smoothed values may magnify what rounding has lost.
_LITTLE_MAGNIFIED = 30

# Of the tolerance: what may be left out at the ends of kernels.
_TAIL = 0.02


class Halves(NamedTuple):
    """Kernels as two of half their variance, with few coefficients in between.

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
    """The discrete Gaussian `T(·; σ)`, from so many values to so many.

    Args:
        entering: Values of the input.
        leaving: Values of the output: as many more, or fewer, on either side.
        sigma: Standard deviation σ, in distances between values.
        boundary: What lies beyond the input, as for `axis_operator`.

    Returns:
        A read-only float64 matrix `(leaving, entering)`.
    """
    radius = support_radius(sigma)
    band = _band(discrete_gaussian(sigma, radius), leaving)
    margin = radius + (leaving - entering) // 2
    return _finished(band @ extended(entering, margin, boundary))


@functools.lru_cache(maxsize=256)
def halves(
    size: int, sigma: float, order: int, boundary: str, epsilon: float
) -> Halves | None:
    """The kernels `K_0, …, K_order` of a wide Gaussian, by few coefficients.

    A Gaussian is one of half its variance twice. After the first of them, samples that
    are some 0.6 σ apart are enough for the second, and either can have the derivatives.

    Guarantee: in the spectral norm, errors are at most `epsilon` times the sum of the
    norms of `[K_0 | K_1 | …]` and of `K_0`, `K_1`, … stacked vertically.

    Args:
        size: Number of pixels along the axis.
        sigma: Standard deviation σ in pixels.
        order: Highest order of differentiation.
        boundary: As for `axis_operator`.
        epsilon: Relative tolerance, in (0, 1).

    Returns:
        Read-only float64 matrices, or `None` where σ is so small that derivatives are
        as well taken as differences of smoothed values.
    """
    if (2 * sigma) ** max(order, 2) < _LITTLE_MAGNIFIED:
        return None
    spacing = _spacing(sigma, order, epsilon)
    half, tail = sigma / math.sqrt(2), _TAIL * epsilon
    kernels = [
        2 ** (a / 2) * gaussian_derivative(half, a, support_radius(half) + order)
        for a in range(order + 1)
    ]
    radius = max(_radius(kernel, tail) for kernel in kernels)
    kernels = [_trimmed(kernel, radius) for kernel in kernels]
    # What is seen from the edges lies up to a kernel's radius beyond them.
    count = math.ceil((size - 1 + 2 * radius) / spacing) + 1
    width = spacing * (count - 1) + 1
    margin = (width - size) // 2
    outside = extended(size, margin + radius + 1, boundary)[1 : 1 + width + 2 * radius]
    bands = [_band(kernel, width) for kernel in kernels]
    analysis = (band[::spacing] @ outside for band in bands)
    inside, samples = slice(margin, margin + size), slice(radius, radius + width)
    synthesis = [spacing * band[inside, samples][:, ::spacing] for band in bands]
    # What the samples make of a constant: one, and zero of its derivatives.
    constant = synthesis[0].sum(axis=1)
    share = scipy.sparse.diags_array(1 / constant) @ synthesis[0]
    synthesis = [
        one - scipy.sparse.diags_array(one.sum(axis=1) - (a == 0)) @ share
        for a, one in enumerate(synthesis)
    ]
    return Halves(tuple(map(_finished, analysis)), tuple(map(_finished, synthesis)))


def extended(size: int, margin: int, boundary: str) -> scipy.sparse.csr_array:
    """From `size` values to those, and `margin` more on either side, or fewer.

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
    """Correlation with a kernel, where it lies within: `(rows, rows + 2 radius)`."""
    shape = (rows, rows + len(kernel) - 1)
    diagonals = np.repeat(kernel[:, None], rows, axis=1)
    return scipy.sparse.diags_array(
        list(diagonals), offsets=np.arange(len(kernel)), shape=shape
    ).tocsr()


def _spacing(sigma: float, order: int, epsilon: float) -> int:
    """Largest distance of the samples between two Gaussians that make up one.

    Waves whose frequencies differ by multiples of `2π / spacing` are the same samples:
    the first Gaussian damps them, with its derivatives, and so does the second. What is
    left of them, in a matrix for each frequency of the samples, has to be below the two
    shares of `epsilon` that the guarantee has.
    """
    half, orders = sigma / math.sqrt(2), range(order + 1)
    theta = np.linspace(-np.pi, np.pi, 721)
    whole = [fourier_response(theta, sigma, a) for a in orders]
    # The mirror image and what is added for constants count more at higher orders.
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
        taken_for = first[:, :, None] * (1 - np.eye(len(waves)))
        folded = [taken_for * one[:, None, :] for one in (first, *others)]
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
    """Without its ends; in all it sums up to the same."""
    middle = len(kernel) // 2
    cut = kernel[middle - radius : middle + radius + 1].copy()
    cut[radius] += kernel.sum() - cut.sum()
    return cut


def _finished(matrix) -> Any:
    """As it is multiplied; read-only, since the cache hands it to every layer."""
    if max(matrix.shape) >= LONG_AXIS:
        matrix = scipy.sparse.csr_array(matrix)
        matrix.data.setflags(write=False)
        return matrix
    matrix = matrix.toarray()
    matrix.setflags(write=False)
    return matrix
