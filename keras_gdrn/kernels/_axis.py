"""The kernels as matrices along one axis.

Axes shorter than `LONG_AXIS` have NumPy arrays. Longer ones have SciPy's sparse arrays,
so that the cost per pixel does not grow with the axis.
"""

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from keras_gdrn.kernels._discrete import (
    central_difference,
    discrete_gaussian,
    support_radius,
    truncation_radius,
)

BOUNDARIES = ("zero", "symmetric")

LONG_AXIS = 512

# Pixels of a long axis that share coefficients.
_BLOCK = 256

# Largest factor by which differences of smoothed values may magnify rounding errors.
_MAX_MAGNIFICATION = 30


class Factors(NamedTuple):
    """`K_a ≈ synthesis @ analysis[a]`, for each order `a`."""

    analysis: tuple[Any, ...]
    synthesis: Any


@functools.lru_cache(maxsize=256)
def smoothing(inputs: int, outputs: int, sigma: float, boundary: str) -> Any:
    """Matrix `(outputs, inputs)` of the discrete Gaussian `T(·; σ)`, both centered."""
    kernel = discrete_gaussian(sigma, support_radius(sigma))
    return cacheable(_correlation(kernel, inputs, outputs, boundary))


@functools.lru_cache(maxsize=256)
def low_rank_factors(
    size: int, sigma: float, order: int, boundary: str, epsilon: float
) -> Factors | None:
    """Factors the kernels `K_0, …, K_order` of a wide Gaussian.

    Their responses on a block of pixels are smooth, so they are nearly combinations of
    a few: of the left singular vectors of `[K_0 | K_1 | …]`. A short axis is one block.

    In the spectral norm, the error of `[K_0 | K_1 | …]` is at most `2 epsilon` times
    its norm.

    Args:
        size: Number of pixels along the axis.
        sigma: Standard deviation σ in pixels.
        order: Highest order of differentiation.
        boundary: What lies beyond: `"zero"`, or `"symmetric"` for the mirror image.
        epsilon: Relative tolerance, in (0, 1).

    Returns:
        Factors `(analysis, synthesis)` with `K_a ≈ synthesis @ analysis[a]`, or `None`
        for a σ so small that differences of smoothed values serve as well.
    """
    if (2 * sigma) ** max(order, 2) < _MAX_MAGNIFICATION:
        return None
    # Without tails, whose differences are small against `epsilon`.
    tail = 0.01 * epsilon / max(sigma, 1) ** max(order - 1, 0)
    smooth = discrete_gaussian(sigma, truncation_radius(sigma, tail))
    smooth /= smooth.sum()
    operators = [
        _correlation(
            sigma**a * np.convolve(smooth, central_difference(a)), size, size, boundary
        )
        for a in range(order + 1)
    ]
    count = 1 if size < LONG_AXIS else math.ceil(size / _BLOCK)
    bounds = np.linspace(0, size, count + 1).astype(int)
    rows = scipy.sparse.hstack(operators).tocsr()
    blocks = itertools.pairwise(bounds)
    bases = [_singular_vectors(rows[start:stop]) for start, stop in blocks]
    largest = max(values[0] for _, values in bases)
    rank = max(np.count_nonzero(v > epsilon * largest) for _, v in bases)
    synthesis = scipy.sparse.block_diag([basis[:, :rank] for basis, _ in bases], "csr")
    analysis = (cacheable(synthesis.T @ operator) for operator in operators)
    return Factors(tuple(analysis), cacheable(synthesis))


def _singular_vectors(rows) -> tuple[np.ndarray, np.ndarray]:
    dense = rows[:, np.unique(rows.indices)].toarray()
    return np.linalg.svd(dense, full_matrices=False)[:2]


def padding_matrix(size: int, margin: int, boundary: str) -> scipy.sparse.csr_array:
    """Sparse matrix that pads by `margin` on either side; crops if it is negative."""
    place = np.arange(-margin, size + margin)
    if boundary == "symmetric":
        place = place % (2 * size)
        place = np.minimum(place, 2 * size - 1 - place)
    row = np.flatnonzero((place >= 0) & (place < size))
    entries, shape = (np.ones(len(row)), (row, place[row])), (len(place), size)
    return scipy.sparse.coo_array(entries, shape=shape).tocsr()


def _correlation(kernel, inputs: int, outputs: int, boundary: str) -> Any:
    """Correlation with a kernel as a sparse matrix, between signals of two lengths."""
    margin = len(kernel) // 2 + (outputs - inputs) // 2
    shape = (outputs, outputs + len(kernel) - 1)
    offsets = np.arange(len(kernel))
    band = scipy.sparse.diags_array(kernel, offsets=offsets, shape=shape)
    return band.tocsr() @ padding_matrix(inputs, margin, boundary)


def cacheable(matrix) -> Any:
    """Makes a matrix read-only, for a cache, and dense if its axis is short."""
    if scipy.sparse.issparse(matrix) and max(matrix.shape) < LONG_AXIS:
        matrix = matrix.toarray()
    values = matrix.data if scipy.sparse.issparse(matrix) else matrix
    values.setflags(write=False)
    return matrix
