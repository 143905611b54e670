"""Kernels and matrices against SciPy, pyscsp and the discrete Fourier sum."""

import functools
import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from pyscsp import discscsp
from scipy.ndimage import correlate1d

from keras_gdrn import kernels
from keras_gdrn.kernels._axis import LONG_AXIS, Factors, low_rank_factors, smoothing
from keras_gdrn.kernels._discrete import support_radius
from tests import _reference
from tests._cases import slowly
from tests._drawn import examples

ORDERS = range(5)
each_sigma = pytest.mark.parametrize("sigma", (0.25, 0.5, 1.0, 2.5, 6.0, 15.0, 40.0))
each_order = pytest.mark.parametrize("order", ORDERS)
each_boundary = pytest.mark.parametrize("boundary", kernels.BOUNDARIES)


def spectral_norm(matrix: np.ndarray) -> float:
    return np.linalg.norm(matrix, ord=2)


def signal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


# The kernel along a line


@each_sigma
def test_discrete_gaussian_is_pyscsps_with_unit_mass_and_variance(sigma):
    expected = discscsp.make1Ddiscgaussfilter(sigma, 1e-10)
    actual = kernels.discrete_gaussian(sigma, len(expected) // 2)
    np.testing.assert_allclose(actual, expected, rtol=1e-13)
    radius = support_radius(sigma)
    kernel = kernels.discrete_gaussian(sigma, radius)
    assert kernel.sum() == pytest.approx(1, abs=1e-13)
    assert kernel @ np.arange(-radius, radius + 1) ** 2 == pytest.approx(sigma**2)
    assert kernel[0] <= 1e-17 < kernel[1]  # the smallest that reaches rounding


@each_order
@each_sigma
def test_gaussian_derivative_is_pyscsps_and_has_its_fourier_response(sigma, order):
    expected = sigma**order * discscsp.make1Ddiscgaussderfilter(order, sigma, 12)
    actual = kernels.gaussian_derivative(sigma, order, 10)
    # Theirs is the response to an impulse, ours is the mask of a correlation.
    np.testing.assert_allclose(actual, expected[2:-2][::-1], rtol=1e-9, atol=1e-14)
    radius = support_radius(sigma) + order
    theta = np.linspace(-np.pi, np.pi, 41)
    waves = np.exp(1j * np.outer(theta, np.arange(-radius, radius + 1.0)))
    actual = waves @ kernels.gaussian_derivative(sigma, order, radius)
    expected = _reference.fourier_response(theta, sigma, order)
    atol = 1e-12 * sigma**order + 1e-14
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@each_sigma
def test_truncation_radius_is_pyscsps_the_smallest_that_keeps_the_mass(
    sigma, dimensions
):
    radius = functools.partial(kernels.truncation_radius, sigma)
    length = len(discscsp.make1Ddiscgaussfilter(sigma, 5e-3, dimensions))
    assert radius(5e-3, dimensions) == length // 2
    assert radius(5e-3) == radius(5e-3, 1)
    for epsilon in (0.3, 1e-2, 1e-6, 1e-10):
        inside = kernels.discrete_gaussian(sigma, radius(epsilon, dimensions))
        assert inside.sum() ** dimensions >= 1 - epsilon
        assert len(inside) == 1 or inside[1:-1].sum() ** dimensions < 1 - epsilon
    # Below rounding too, where the mass itself is 1.
    assert sigma < 1 or radius(1e-17, dimensions) > radius(1e-16, dimensions)


# Along axes


@pytest.mark.parametrize(
    "alpha", [a for n in ORDERS for a in kernels.multi_indices(2, n, True)][-15:]
)
def test_two_axes_equal_the_jet_of_pyscsp(alpha):
    image, (down, right) = signal(17, 12), alpha
    method = discscsp.scspnormdermethodobject(epsilon=1e-13)
    name = "L" + "x" * right + "y" * down
    for sigma in (0.5, 2.5):
        # Their y points up.
        expected = (-1) ** down * discscsp.computeNjetfcn(image, name, sigma, method)
        actual = image
        for axis, order in enumerate(alpha):
            kernel = kernels.gaussian_derivative(sigma, order, 40)
            actual = correlate1d(actual, kernel, axis, mode="reflect")
        np.testing.assert_allclose(actual, expected, atol=1e-10)


@each_boundary
@pytest.mark.parametrize(("size", "outputs"), [(21, 21), (21, 25), (21, 5), (300, 302)])
def test_smoothing_is_scipys_correlation(size, outputs, boundary):
    line, reach = signal(size), 40
    mode = {"zero": "constant", "symmetric": "symmetric"}[boundary]
    wide = np.pad(line, reach, mode=mode)
    expected = _reference.derivative(wide, 1.7, 0, 0, "zero")
    first = reach - (outputs - size) // 2
    actual = smoothing(size, outputs, 1.7, boundary) @ line
    np.testing.assert_allclose(actual, expected[first : first + outputs], atol=1e-12)


# Two Gaussians of half the variance


def dense(matrix) -> np.ndarray:
    return matrix.toarray() if scipy.sparse.issparse(matrix) else matrix


def operators_of(axis) -> list[np.ndarray]:
    size, sigma, order, boundary, _ = axis
    orders = range(order + 1)
    unit = np.eye(size)
    return [_reference.derivative(unit, sigma, a, 0, boundary) for a in orders]


def relative_error(factors, operators) -> float:
    """In the spectral norm, of all orders beside one another."""
    synthesis = dense(factors.synthesis)
    found = [synthesis @ dense(matrix) for matrix in factors.analysis]
    together = np.concatenate(operators, axis=1)
    error = spectral_norm(np.concatenate(found, axis=1) - together)
    return error / spectral_norm(together)


@examples(150)
@given(st.data())
def test_few_coefficients_are_within_twice_epsilon(data):
    size, sigma = data.draw(st.integers(1, 80)), data.draw(st.floats(0.1, 40.0))
    order = data.draw(st.integers(1, 4))
    boundary = data.draw(st.sampled_from(kernels.BOUNDARIES))
    epsilon = data.draw(st.sampled_from([0.3, 1e-1, 1e-3, 1e-8]))
    axis = (size, sigma, order, boundary, epsilon)
    factors = low_rank_factors(*axis)
    if factors is None:
        assert sigma < 2.8
        return
    assert relative_error(factors, operators_of(axis)) <= 2 * epsilon + 1e-14


@pytest.mark.parametrize("sigma", [3.0, 4.0, 9.0, 60.0])
@pytest.mark.parametrize(
    ("size", "epsilon", "boundary"),
    [
        (LONG_AXIS, 1e-1, "symmetric"),
        (LONG_AXIS, 1e-3, "zero"),
        (LONG_AXIS + 45, 1e-6, "symmetric"),
    ],
)
def test_few_coefficients_of_long_axes(size, sigma, epsilon, boundary):
    axis = (size, sigma, 2, boundary, epsilon)
    factors = low_rank_factors(*axis)
    assert relative_error(factors, operators_of(axis)) <= 2 * epsilon


def test_a_constant_has_no_derivatives():
    """Whatever is left out, under the symmetric boundary."""
    factors = low_rank_factors(64, 6.0, 3, "symmetric", 0.1)
    for matrix in factors.analysis[1:]:
        response = factors.synthesis @ matrix @ np.ones(64)
        np.testing.assert_allclose(response, 0, atol=1e-12)


@each_boundary
@pytest.mark.parametrize("sigma", [6.0, 12.0, 24.0])
def test_coefficients_are_as_few_as_one_over_sigma(sigma, boundary):
    factors = low_rank_factors(400, sigma, 2, boundary, 1e-3)
    count = factors.analysis[0].shape[0]
    assert factors.synthesis.shape == (400, count)
    assert count <= 1.6 * 400 / sigma + 3 * 7  # some more for each block


def test_one_coefficient_less_passes_the_tolerance():
    axis = (64, 9.0, 2, "zero", 1e-3)
    analysis, synthesis = low_rank_factors(*axis)
    less = Factors(tuple(one[:-1] for one in analysis), synthesis[:, :-1])
    assert relative_error(less, operators_of(axis)) > 1e-3


@pytest.mark.parametrize("sigma", slowly([0.7, 3.0, 8.0, 64.0], [64.0]))
def test_long_axes_take_few_numbers_for_each_pixel(sigma):
    narrow = smoothing(4000, 4002, min(sigma, 2.7), "symmetric")
    wide = low_rank_factors(4000, sigma, 2, "symmetric", 1e-3)
    matrices = [narrow, *((*wide.analysis, wide.synthesis) if wide else ())]
    assert max(matrix.nnz for matrix in matrices) <= 200 * 4000


@pytest.mark.parametrize(("size", "sigma"), [(40, 6.0), (300, 9.0)])
def test_no_denormal_numbers(size, sigma):
    """onnxruntime takes some times as long with them."""
    factors = low_rank_factors(size, sigma, 2, "zero", 1e-3)
    for matrix in (*factors.analysis, factors.synthesis):
        values = np.abs(dense(matrix))
        assert values[values > 0].min() > 1e10 * np.finfo("float32").tiny


def test_matrices_are_read_only():
    factors = low_rank_factors(40, 6.0, 2, "zero", 1e-3)
    assert low_rank_factors(40, 6.0, 2, "zero", 1e-3) is factors
    long = smoothing(LONG_AXIS, LONG_AXIS, 1.0, "zero")
    short = smoothing(9, 9, 1.0, "zero")
    for array in (*factors.analysis, factors.synthesis, long.data, short):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# Multi-indices


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@each_order
def test_multinomials_count_the_orders_of_differentiation(order, dimensions):
    indices = kernels.multi_indices(dimensions, order, zero_order=True)
    assert len(set(indices)) == len(indices) == math.comb(order + dimensions, order)
    counts = [kernels.multinomial(alpha) for alpha in indices]
    assert counts == [_reference.orderings(alpha) for alpha in indices]


def test_multi_indices_come_by_order():
    expected = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
    assert kernels.multi_indices(2, 2) == expected
    assert kernels.multi_indices(2, 2, zero_order=True) == ((0, 0), *expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kernels.discrete_gaussian(0, 3), "^`sigma`.*sigma=0$"),
        (lambda: kernels.discrete_gaussian("1", 1), "^`sigma`.*sigma='1'$"),
        (lambda: support_radius(math.nan), "^`sigma`.*sigma=nan$"),
        (lambda: kernels.truncation_radius(1.0, 1), "^`epsilon`.*epsilon=1$"),
        (lambda: kernels.truncation_radius(1.0, True), "^`epsilon`.*epsilon=True$"),
        (lambda: kernels.truncation_radius(1.0, 0), "^`epsilon`.*epsilon=0$"),
        (lambda: kernels.central_difference(-1), "`order`.*order=-1"),
        (lambda: kernels.truncation_radius(1, 0.1, 0), "`dimensions`.*dimensions=0"),
    ],
)
def test_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
