"""Matrices between pixels and grids, against closed forms and SciPy."""

import numpy as np
import pytest
from scipy.ndimage import convolve1d

from keras_gdrn import kernels
from keras_gdrn.kernels import _spline
from keras_gdrn.kernels._axis import smoothing
from keras_gdrn.kernels._discrete import support_radius
from keras_gdrn.kernels._jet import derivative_stencils


def bell(x, width):
    return np.exp(-0.5 * (x / width) ** 2) / width


def centered(count):
    return np.arange(count) - (count - 1) / 2


@pytest.mark.parametrize("size", (60, 61))
@pytest.mark.parametrize("sigma", (0.0, 0.35, 1.0, 2.8))
def test_sampling_smooths_a_gaussian(size, sigma):
    """A Gaussian of a Gaussian is one of the summed variances."""
    matrix = _spline.sampling(size, 15, 0.7, sigma, "zero")
    smoothed = matrix @ bell(centered(size) - 0.3, 4.0)
    expected = bell(centered(15) * 0.7 - 0.3, np.hypot(4.0, sigma))
    np.testing.assert_allclose(smoothed, expected, atol=2e-5)


@pytest.mark.parametrize("sigma", (0.0, 0.35, 2.0))
def test_sampling_keeps_constants_beyond_the_edge(sigma):
    matrix = _spline.sampling(10, 31, 1.5, sigma, "symmetric")
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    zero = _spline.sampling(10, 31, 1.5, sigma, "zero")
    assert abs(zero.sum(axis=1)[0]) < 1e-6


def test_mirror_image_lies_beyond_the_edge():
    matrix = _spline.sampling(8, 33, 1.0, 0.0, "symmetric")
    # 33 points around the center of 8 pixels lie between them: half a pixel apart.
    twice = _spline.sampling(8, 65, 0.5, 0.0, "symmetric")
    line = np.random.default_rng(0).normal(size=8)
    mirrored = np.pad(line, 13, mode="symmetric")
    np.testing.assert_allclose((twice @ line)[1::2], mirrored[1:-1], atol=1e-9)
    np.testing.assert_allclose(matrix @ line, (twice @ line)[::2], atol=1e-9)


@pytest.mark.parametrize("leaving", (5, 21, 35))
@pytest.mark.parametrize("sigma", (0.6, 1.0, 1.9))
def test_smoothing_is_a_correlation(leaving, sigma):
    line = np.random.default_rng(0).normal(size=21)
    radius = support_radius(sigma)
    kernel = kernels.discrete_gaussian(sigma, radius)
    wide = np.pad(line, 40, mode="symmetric")
    expected = convolve1d(wide, kernel, mode="constant")
    start = (len(wide) - leaving) // 2
    result = smoothing(21, leaving, sigma, "symmetric") @ line
    np.testing.assert_allclose(result, expected[start : start + leaving], atol=1e-12)


def test_stencils_are_differences():
    indices = kernels.multi_indices(2, 2)
    taps = derivative_stencils(indices)
    y, x = np.meshgrid(*[np.arange(-1, 2)] * 2, indexing="ij")
    for k, function in enumerate((y, x, y**2 / 2, x * y, x**2 / 2)):
        answers = np.einsum("yxk,yx->k", taps, function)
        np.testing.assert_allclose(answers, np.eye(5)[k], atol=1e-12)


def test_splines_take_samples_back_to_the_pixels():
    matrix = _spline.sampling(41, 20, 2.0, 0.0, "symmetric")
    samples = bell(centered(41) * 0.5, 3.0)
    np.testing.assert_allclose(matrix @ samples, bell(centered(20), 3.0), atol=1e-4)


@pytest.mark.parametrize("step", (0.5, 1.0, 1.37))
@pytest.mark.parametrize("sigma", (1.0, 2.8))
def test_resampling_smooths_a_gaussian(step, sigma):
    matrix = _spline.resampling(61, 15, step, sigma, "zero")
    smoothed = matrix @ bell(centered(61) - 0.3, 4.0)
    expected = bell(centered(15) * step - 0.3, np.hypot(4.0, sigma))
    np.testing.assert_allclose(smoothed, expected, atol=1e-8)


@pytest.mark.parametrize(("sigma", "error"), [(1.0, 1e-8), (0.7, 2e-4)])
def test_resampling_keeps_constants(sigma, error):
    """The closer the samples, the better: at less than one per σ they do not."""
    matrix = _spline.resampling(300, 411, 1.37, sigma, "symmetric")
    worst = np.abs(matrix.sum(axis=1) - 1).max()
    assert error / 10 < worst < error
    zero = _spline.resampling(10, 31, 1.5, sigma, "zero")
    assert abs(zero.sum(axis=1)[0]) < 1e-6
