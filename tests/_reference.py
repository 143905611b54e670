"""Brute-force references in float64: SciPy correlations, nothing of the package."""

import itertools

import numpy as np
from scipy.ndimage import correlate1d
from scipy.special import ive

# Written out rather than composed, as in Lindeberg's papers.
STENCILS = (
    (1.0,),
    (-0.5, 0.0, 0.5),
    (1.0, -2.0, 1.0),
    (-0.5, 1.0, 0.0, -1.0, 0.5),
    (1.0, -4.0, 6.0, -4.0, 1.0),
)
SCIPY_MODES = {"zero": "constant", "symmetric": "reflect"}


def smoothing_kernel(sigma: float) -> np.ndarray:
    """`T(n; sigma)`, so wide that all of its mass is inside."""
    radius = int(12 * sigma) + 30
    return ive(np.abs(np.arange(-radius, radius + 1)), sigma**2)


def fourier_response(theta: np.ndarray, sigma: float, order: int) -> np.ndarray:
    """`σ^a (i sin θ)^(a mod 2) (2 cos θ - 2)^⌊a/2⌋ exp(-s (1 - cos θ))`."""
    difference = (1j * np.sin(theta)) ** (order % 2)
    difference = difference * (2 * np.cos(theta) - 2) ** (order // 2)
    return sigma**order * difference * np.exp(-(sigma**2) * (1 - np.cos(theta)))


def derivative(x, sigma: float, order: int, axis: int, boundary: str) -> np.ndarray:
    """`sigma**order δ^order T(·; sigma) * x` along one axis."""
    kernel = sigma**order * np.convolve(smoothing_kernel(sigma), STENCILS[order])
    x = np.asarray(x, dtype=np.float64)
    return correlate1d(x, kernel, axis=axis, mode=SCIPY_MODES[boundary])


def orderings(alpha: tuple[int, ...]) -> int:
    """In how many orders the derivatives of α can be taken: `m(α)`, by counting."""
    letters = "".join(axis * a for axis, a in zip("xyz", alpha, strict=False))
    return len(set(itertools.permutations(letters)))


def jet_layer(x, kernel, indices, sigma: float, boundary: str) -> np.ndarray:
    """`Σ_α m(α) C_α σ^|α| δ^α T(·; σ) * x` for `x` of `(batch, *spatial, channels)`.

    `kernel[i]` is `C_α`, channels × filters, of the i-th multi-index of `indices`.
    """
    y = 0.0
    for alpha, mix in zip(indices, np.asarray(kernel, np.float64), strict=True):
        response = x
        for axis, order in enumerate(alpha, start=1):
            response = derivative(response, sigma, order, axis, boundary)
        y = y + orderings(alpha) * response @ mix
    return y
