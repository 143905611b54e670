"""The basis in which a Gaussian derivative layer learns its filters."""

import math

import numpy as np

from keras_gdrn import kernels
from keras_gdrn._checks import check_sigma


def basis_kernels(
    sigma: float, order: int = 2, radius: int | None = None
) -> dict[tuple[int, ...], np.ndarray]:
    """Scale-normalized derivatives `σ^|α| δ^α T(·; σ)` of the discrete Gaussian.

    All with `|α| <= order`, as functions of the position: the kernels of a true
    convolution, which a layer's correlation applies reflected.

    Source: Perzanowski & Lindeberg, Eq. disc-gauss+central-diff.

    Args:
        sigma: Scale in pixels.
        order: Highest order of differentiation, 0 or more.
        radius: Where the kernels are cut off; by default `4 sigma`, at least 5 pixels.

    Returns:
        For each multi-index (along y, along x) a float64 array
        `(2 radius + 1, 2 radius + 1)`, by order and from derivatives along x to those
        along y.

    Raises:
        ValueError: If `sigma` is not a positive number or `order` is negative.

    Example:

    >>> basis_kernels(1.0)[0, 2].shape
    (11, 11)
    """
    check_sigma(sigma)
    if order < 0:
        raise ValueError(f"`order` must be >= 0. Received: order={order}")
    if radius is None:
        radius = max(5, math.ceil(4 * sigma))
    along = [
        kernels.gaussian_derivative(sigma, a, radius)[::-1] for a in range(order + 1)
    ]
    indices = kernels.multi_indices(2, order, zero_order=True)
    indices = sorted(indices, key=lambda alpha: (sum(alpha), alpha))
    return {(y, x): np.outer(along[y], along[x]) for y, x in indices}
