"""Covariance under scaling and translation, as assertions.

A covariance holds up to discretization and to the border. Every assertion therefore
compares a central crop, relative to how much the expected response varies there, and
states the tolerance; it prints what it measured (`pytest -rP` shows it). What is tested
are functions of images: `maps` give feature maps, `score` `(batch, classes)`.
"""

import numpy as np
from scipy.interpolate import make_interp_spline

from tests.theory.images import coordinates, sample


def difference(actual, expected, blank=0.0):
    """`‖actual - expected‖ / ‖expected - blank‖`, `blank` what is no achievement."""
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected - blank)


def relative_error(actual, expected):
    """Of maps: biases alone can make the mean of a feature over positions large."""
    positions = tuple(range(expected.ndim - 1))
    return difference(actual, expected, expected.mean(axis=positions, keepdims=True))


def assert_close(claim, error, tolerance):
    print(f"{claim}: relative error {error:.2e}, tolerance {tolerance:.1e}")
    assert error <= tolerance, f"not {claim}: {error:.3e} > {tolerance:.1e}"


def assert_scale_covariant(
    maps, image, *, tolerance, sigma0=1.0, factor=2.0, size=111, crop=24
):
    """`F'(S x; S σ) = F(x; σ)` for `f'(S x) = f(x)`, up to `crop` from the center.

    Source: Eqs. eq-match-rel-resnet-layers-sc-transf, scale-covariance-definition.

    Args:
        maps: Function `(sigma0, images) -> feature maps`.
        sigma0: Initial scale at which f is seen; f' is seen at `factor * sigma0`.
        size: Image size of f; that of f' is `factor` times as large.
    """
    error = scale_covariance_error(maps, image, sigma0, factor, size, crop)
    claim = f"scale covariant (sigma0={sigma0:g}, factor={factor:.3g})"
    assert_close(claim, error, tolerance)


def scale_covariance_error(maps, image, sigma0, factor, size, crop):
    rescaled_size = round(factor * (size - 1)) + 1
    response = maps(sigma0, sample(image, size))[0]
    rescaled = maps(factor * sigma0, sample(image, rescaled_size, factor))[0]
    points = coordinates(size)
    points = points[np.abs(points) <= crop]
    return relative_error(
        values_at(rescaled, factor * points), values_at(response, points)
    )


def values_at(maps, points):
    """Feature maps at the grid of `points`, by cubic splines between the pixels.

    At a pixel that is its value; between pixels the error is far below the tolerances,
    because the responses vary slowly.
    """
    for axis in range(maps.ndim - 1):
        pixels = coordinates(maps.shape[axis])
        maps = make_interp_spline(pixels, maps, k=3, axis=axis)(points)
    return maps


def assert_translation_covariant(
    maps, image, *, tolerance, shift=(3, -5), size=111, crop=24
):
    """`F(f(· - t))(x) = F(f)(x - t)` for a shift t by whole pixels, in a crop."""
    moved = maps(sample(image, size, shift=shift))[0]
    expected = maps(sample(image, size))[0]
    center = (size - 1) // 2
    window = np.arange(center - crop, center + crop + 1)
    moved = moved[np.ix_(*(window + t for t in shift))]
    expected = expected[np.ix_(*(window for _ in shift))]
    claim = f"translation covariant (shift={shift})"
    assert_close(claim, relative_error(moved, expected), tolerance)


def assert_translation_invariant(score, image, *, tolerance, shift=(3, -5), size=113):
    """`Γ(f(· - t)) = Γ(f)`, relative to how far `Γ(f)` is from `Γ(0)`.

    Source: Eq. spatial-maxpooling-expression.
    """
    expected = score(sample(image, size))
    blank = score(np.zeros_like(sample(image, size)))
    moved = score(sample(image, size, shift=shift))
    error = difference(moved, expected, blank)
    assert_close(f"translation invariant (shift={shift})", error, tolerance)
