"""The multi-indices of a jet, their normalization and their differences."""

import functools
import itertools
import math

import numpy as np

from keras_gdrn.kernels._discrete import central_difference


def multi_indices(
    dimensions: int, order: int, zero_order: bool = False
) -> tuple[tuple[int, ...], ...]:
    """Multi-indices α of the jet, `0 or 1 <= |α| <= order`, by order.

    In two dimensions up to order 2: (1, 0), (0, 1), (2, 0), (1, 1), (0, 2).

    Args:
        dimensions: Number of spatial dimensions.
        order: Highest total order of differentiation.
        zero_order: Whether to include α = 0.

    Returns:
        The multi-indices, tuples of `dimensions` orders.
    """
    lowest = 0 if zero_order else 1
    every = itertools.product(range(order, -1, -1), repeat=dimensions)
    kept = (alpha for alpha in every if lowest <= sum(alpha) <= order)
    return tuple(sorted(kept, key=sum))


def multinomial(alpha: tuple[int, ...]) -> int:
    """`m(α) = |α|! / (α_1! … α_D!)`, the jet's normalization factor.

    Args:
        alpha: Multi-index α.

    Returns:
        The factor, at least 1.
    """
    product = math.prod(math.factorial(a) for a in alpha)
    return math.factorial(sum(alpha)) // product


def derivative_stencils(
    indices: tuple[tuple[int, ...], ...], variance=0.0
) -> np.ndarray:
    """Stencils of the differences `δ^α`, `(3, …, 3, len(indices))` up to order 2.

    Along axes of order 0, they smooth by `variance`.
    """
    along = [central_difference(a) for a in range(max(map(max, indices)) + 1)]
    if variance:
        along[0] = np.array([variance / 2, 1 - variance, variance / 2])
    size = max(map(len, along))
    along = [np.pad(stencil, (size - len(stencil)) // 2) for stencil in along]
    stencils = [
        functools.reduce(np.multiply.outer, (along[a] for a in alpha))
        for alpha in indices
    ]
    return np.stack(stencils, axis=-1)
