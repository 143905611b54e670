"""Kernels and axis operators against SciPy, pyscsp and the discrete Fourier sum."""

import itertools
import math

import numpy as np
import pytest
from pyscsp import discscsp
from scipy.interpolate import CubicSpline

from keras_gdrn import kernels
from tests import _reference

SIGMAS = (0.25, 0.5, 1.0, 2.5, 6.0, 15.0, 40.0)
SIZES = (1, 2, 7, 16, 33)
ORDERS = range(5)

each_sigma = pytest.mark.parametrize("sigma", SIGMAS)
each_order = pytest.mark.parametrize("order", ORDERS)
each_boundary = pytest.mark.parametrize("boundary", kernels.BOUNDARIES)


def spectral_norm(matrix: np.ndarray) -> float:
    return np.linalg.norm(matrix, ord=2)


def signal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


# The kernel along a line


@each_sigma
def test_discrete_gaussian_equals_pyscsp(sigma):
    expected = discscsp.make1Ddiscgaussfilter(sigma, 1e-10)
    actual = kernels.discrete_gaussian(sigma, len(expected) // 2)
    np.testing.assert_allclose(actual, expected, rtol=1e-13)


@each_sigma
def test_discrete_gaussian_has_unit_mass_and_variance_sigma_squared(sigma):
    radius = kernels.support_radius(sigma)
    kernel = kernels.discrete_gaussian(sigma, radius)
    position = np.arange(-radius, radius + 1)
    assert kernel.sum() == pytest.approx(1, abs=1e-13)
    assert kernel @ position**2 == pytest.approx(sigma**2, rel=1e-11)


@each_sigma
def test_support_radius_is_the_smallest_that_reaches_rounding(sigma):
    radius = kernels.support_radius(sigma)
    kernel = kernels.discrete_gaussian(sigma, radius)
    assert kernel[0] <= 1e-17 < kernel[1]


@each_order
def test_central_difference_is_pyscsps_mask(order):
    mask = [[[1]], *(getattr(discscsp, f"d{'x' * n}mask")() for n in range(1, 5))]
    np.testing.assert_array_equal(kernels.central_difference(order), mask[order][0])


@each_order
@each_sigma
def test_gaussian_derivative_equals_pyscsp(sigma, order):
    expected = sigma**order * discscsp.make1Ddiscgaussderfilter(order, sigma, 12)
    actual = kernels.gaussian_derivative(sigma, order, 10)
    # Theirs is the response to an impulse, ours is the mask of a correlation.
    np.testing.assert_allclose(actual, expected[2:-2][::-1], rtol=1e-9, atol=1e-14)


@each_order
@each_sigma
def test_fourier_response_is_that_of_the_kernel(sigma, order):
    radius = kernels.support_radius(sigma) + order
    theta = np.linspace(-np.pi, np.pi, 41)
    waves = np.exp(1j * np.outer(theta, np.arange(-radius, radius + 1)))
    expected = waves @ kernels.gaussian_derivative(sigma, order, radius)
    actual = kernels.fourier_response(theta, sigma, order)
    np.testing.assert_allclose(
        actual, expected, rtol=0, atol=1e-12 * sigma**order + 1e-14
    )


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.3, 1e-2, 5e-3, 1e-6, 1e-10])
@each_sigma
def test_truncation_radius_is_the_smallest_that_keeps_the_mass(
    sigma, epsilon, dimensions
):
    radius = kernels.truncation_radius(sigma, epsilon, dimensions)
    inside = kernels.discrete_gaussian(sigma, radius)
    assert inside.sum() ** dimensions >= 1 - epsilon
    assert radius == 0 or inside[1:-1].sum() ** dimensions < 1 - epsilon


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@each_sigma
def test_truncation_radius_is_pyscsps(sigma, dimensions):
    length = len(discscsp.make1Ddiscgaussfilter(sigma, 5e-3, dimensions))
    assert kernels.truncation_radius(sigma, 5e-3, dimensions) == length // 2


def test_fourier_response_is_computed_in_float64():
    theta = np.array([0.3, 1.1], "float32")
    exact = kernels.fourier_response(theta.astype("float64"), 2.0, 2)
    assert np.array_equal(kernels.fourier_response(theta, 2.0, 2), exact)


def test_truncation_radius_is_that_of_a_line_unless_told():
    line, plane = (kernels.truncation_radius(6.0, 5e-3, d) for d in (1, 2))
    assert kernels.truncation_radius(6.0, 5e-3) == line < plane


def test_truncation_radius_of_an_error_below_rounding():
    assert kernels.truncation_radius(2.0, 1e-16) > kernels.truncation_radius(2.0, 1e-14)


# The kernel between the pixels

STEPS = (0.25, 0.5**1.5, 0.7, 0.5**0.5)
each_step = pytest.mark.parametrize("step", STEPS)


@each_order
@each_step
def test_kernel_between_pixels_is_scipys_spline_seen_on_the_finer_grid(step, order):
    values, center = signal(201), 100
    spline = CubicSpline(np.arange(201), values)
    for sigma in (step, 1.7 * step, 3.0):
        kernel = kernels.gaussian_derivative(sigma, order, 60, step)
        actual = kernel @ values[center - 60 : center + 61]
        points = center + step * np.arange(-150, 151)
        fine = _reference.derivative(spline(points), sigma / step, order, 0, "zero")
        # `Σ_m k'(m) f(m step)`, which needs no more than the values around.
        assert actual == pytest.approx(fine[150], rel=1e-9, abs=1e-12)
        on_pixels = kernels.gaussian_derivative(sigma, order, 60)
        if sigma < 1:
            assert abs(on_pixels - kernel).max() > 1e-3


@each_step
def test_between_pixels_the_bias_of_a_derivative_is_that_of_the_finer_grid(step):
    """On a cubic, of which the spline is exact, by `δ(x³) = 3x² + step²`."""
    sigma, position = 0.8, np.arange(-60, 61)
    for grid in (step, 1.0):
        kernel = kernels.gaussian_derivative(sigma, 1, 60, grid)
        expected = sigma * (3 * sigma**2 + grid**2)
        assert kernel @ position**3 == pytest.approx(expected, rel=1e-9)
        assert kernel @ position == pytest.approx(sigma, rel=1e-12)


@each_step
def test_support_between_pixels_holds_the_kernel(step):
    for sigma, order in itertools.product((step, 3.0), ORDERS):
        radius = kernels.support_radius(sigma, step) + order
        kernel = kernels.gaussian_derivative(sigma, order, radius + 20, step)
        assert abs(kernel[:20]).max() < 1e-15


@each_boundary
def test_axis_operator_between_pixels(boundary):
    size, x, step = 12, signal(12), 0.6
    mode = {"zero": "constant", "symmetric": "symmetric"}[boundary]
    surroundings = np.pad(x, 100, mode=mode)
    for order in ORDERS:
        kernel = kernels.gaussian_derivative(0.8, order, 100, step)
        expected = np.correlate(surroundings, kernel, mode="valid")
        actual = kernels.axis_operator(size, 0.8, order, boundary, step) @ x
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-13)


def test_spline_goes_through_the_pixels():
    weights = kernels.spline_interpolation(5, 10, 0.5)
    np.testing.assert_allclose(weights[:, ::2], np.eye(11), atol=1e-15)
    assert not weights.flags.writeable  # the cache hands it to all


# The operators of an axis


@each_boundary
@each_sigma
@pytest.mark.parametrize("size", SIZES)
def test_axis_operator_equals_scipy(size, sigma, boundary):
    x = signal(size)
    for order in ORDERS:
        expected = _reference.derivative(x, sigma, order, 0, boundary)
        actual = kernels.axis_operator(size, sigma, order, boundary) @ x
        # Differences of order a lose a factor of sigma**a to rounding.
        atol = 1e-12 + 1e-15 * sigma**order
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=atol)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.5, 6.0])
@pytest.mark.parametrize(
    "alpha", [a for n in ORDERS for a in kernels.multi_indices(2, n, True)][-15:]
)
def test_two_axes_equal_the_jet_of_pyscsp(alpha, sigma):
    image = signal(17, 12)
    down, right = alpha
    method = discscsp.scspnormdermethodobject(epsilon=1e-13)
    name = "L" + "x" * right + "y" * down
    # Their y points up.
    expected = (-1) ** down * discscsp.computeNjetfcn(image, name, sigma, method)
    rows, columns = (
        kernels.axis_operator(n, sigma, order, "symmetric")
        for n, order in zip(image.shape, alpha, strict=True)
    )
    np.testing.assert_allclose(rows @ image @ columns.T, expected, atol=1e-10)


@each_boundary
@each_sigma
def test_rising_ramp_answers_plus_sigma(sigma, boundary):
    size = 2 * kernels.support_radius(sigma) + 5
    ramp = np.arange(size) - size // 2
    response = kernels.axis_operator(size, sigma, 1, boundary) @ ramp
    assert response[size // 2] == pytest.approx(sigma, rel=1e-9)


@each_sigma
def test_parabola_answers_sigma_squared(sigma):
    size = 2 * kernels.support_radius(sigma) + 5
    parabola = (np.arange(size) - size // 2) ** 2 / 2
    response = kernels.axis_operator(size, sigma, 2, "zero") @ parabola
    assert response[size // 2] == pytest.approx(sigma**2, rel=1e-9)


@each_sigma
def test_mirror_leaves_a_constant_alone(sigma):
    smooth, *derivatives = (
        kernels.axis_operator(9, sigma, order, "symmetric").sum(axis=1)
        for order in ORDERS
    )
    np.testing.assert_allclose(smooth, 1, rtol=1e-12)
    np.testing.assert_allclose(derivatives, 0, atol=1e-9)


# Low rank


@each_boundary
@pytest.mark.parametrize("outputs", [24, 7, 2])
@pytest.mark.parametrize("influence", [math.inf, 6.0, 1.0])
@pytest.mark.parametrize("epsilon", [1e-1, 1e-3, 1e-8])
@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize(("size", "sigma"), [(64, 1.0), (33, 2.5), (24, 40.0)])
def test_factors_are_within_twice_epsilon(
    size, sigma, order, epsilon, influence, outputs, boundary
):
    outputs -= outputs % 2 != size % 2
    leaving = kernels.Samples(outputs, influence=influence)
    factors = kernels.axis_factors(
        size, sigma, order, boundary, epsilon, leaving=leaving
    )
    assert (factors.size, factors.outputs) == (size, outputs)
    margin = (size - outputs) // 2
    operators = [
        kernels.axis_operator(size, sigma, a, boundary)[margin : size - margin]
        for a in range(order + 1)
    ]
    distance = np.abs(np.arange(outputs) - (outputs - 1) / 2)
    weight = np.maximum(np.exp(-((distance / influence) ** 2) / 2), 0.01)[:, None]
    beside = spectral_norm(np.concatenate([weight * k for k in operators], axis=1))
    below = spectral_norm(np.concatenate([weight * k for k in operators], axis=0))
    for a, operator in enumerate(operators):
        error = weight * (operator - as_matrix(factors, a))
        assert spectral_norm(error) <= epsilon * (beside + below)


def as_matrix(factors, order):
    left = 1.0 if factors.synthesis is None else factors.synthesis
    right = np.eye(factors.size) if factors.analysis is None else factors.analysis
    return np.dot(left, factors.jets[order] @ right)


def test_less_influence_takes_fewer_coefficients():
    ranks = [
        kernels.axis_factors(
            *(64, 6.0, 2, "zero", 1e-3),
            leaving=kernels.Samples(48, influence=influence),
        ).ranks
        for influence in (math.inf, 8.0, 4.0)
    ]
    assert ranks[0] > ranks[1] > ranks[2]


def test_adjoint_factors_are_those_of_the_transposed_operators():
    leaving = kernels.Samples(20, influence=8.0)
    factors = kernels.axis_factors(40, 3.0, 2, "symmetric", 1e-3, leaving=leaving)
    assert factors.adjoint.size == 20 and factors.adjoint.outputs == 40
    for a in range(3):
        np.testing.assert_allclose(
            as_matrix(factors.adjoint, a), as_matrix(factors, a).T, atol=1e-14
        )


@each_boundary
@pytest.mark.parametrize("size", [64, 96])
@pytest.mark.parametrize("sigma", [3.0, 4.0, 8.0, 24.0])
def test_rank_falls_as_one_over_sigma(size, sigma, boundary):
    factors = kernels.axis_factors(size, sigma, 2, boundary, 1e-3)
    rank = 1.55 * size / sigma
    inputs, outputs = factors.ranks
    assert rank - 2 <= min(inputs, outputs) <= max(inputs, outputs) <= rank + 5
    assert factors.analysis.shape == (inputs, size)
    assert factors.jets.shape == (3, outputs, inputs)
    assert factors.synthesis.shape == (size, outputs)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_factors_are_the_operators_where_reduction_brings_nothing(order):
    leaving = kernels.Samples(14)
    factors = kernels.axis_factors(16, 0.5, order, "zero", 1e-3, leaving=leaving)
    assert factors.analysis is None and factors.synthesis is None
    for a, jet in enumerate(factors.jets):
        expected = kernels.axis_operator(16, 0.5, a, "zero")[1:15]
        np.testing.assert_allclose(jet, expected, rtol=0, atol=1e-19)


@each_boundary
def test_factors_have_orthonormal_bases(boundary):
    factors = kernels.axis_factors(40, 6.0, 2, boundary, 1e-3)
    identity = np.eye(len(factors.analysis))
    np.testing.assert_allclose(
        factors.analysis @ factors.analysis.T, identity, atol=1e-12
    )
    np.testing.assert_allclose(
        factors.synthesis.T @ factors.synthesis, np.eye(factors.ranks[1]), atol=1e-12
    )


# Coarse samples


@each_boundary
@pytest.mark.parametrize("pixels", [15, 16])
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_samples_at_all_pixels_are_the_operator(order, pixels, boundary):
    every = kernels.Samples(pixels)
    sampled = kernels.sampled_operator(every, every, pixels, 2.5, order, boundary)
    operator = kernels.axis_operator(pixels, 2.5, order, boundary)
    np.testing.assert_allclose(sampled, operator, rtol=0, atol=1e-15)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize(("spacing", "pixels"), [(2, 64), (2, 65), (4, 96), (4, 90)])
def test_coarse_samples_of_smooth_maps_give_what_all_pixels_give(
    spacing, pixels, order
):
    """The trapezoidal rule; a map that is not smooth is the counter-example."""
    sigma = 2.0 * spacing
    every = kernels.Samples(pixels)
    coarse = kernels.Samples(2 * math.ceil(pixels / (2 * spacing) - 0.5) + 1, spacing)
    axis = (pixels, sigma, order, "zero")
    to_pixels = kernels.sampled_operator(coarse, every, *axis)
    between = kernels.sampled_operator(every, coarse, *axis)

    def smooth(x):
        return np.exp(-((x / sigma) ** 2) / 2) * np.cos(x / sigma)

    expected = kernels.axis_operator(*axis[:1], sigma, order, "zero") @ smooth(
        every.positions
    )
    actual = to_pixels @ smooth(coarse.positions)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)
    at = np.interp(coarse.positions, every.positions, expected)
    inner = slice(1, -1)
    values = between @ smooth(every.positions)
    np.testing.assert_allclose(values[inner], at[inner], rtol=0, atol=3e-2 / spacing)
    # Of samples so far apart, this wave is taken for cos(x / sigma).
    frequency = 2 * np.pi / spacing - 1 / sigma
    taken = to_pixels @ np.cos(frequency * coarse.positions)
    error = taken - kernels.axis_operator(pixels, sigma, order, "zero") @ np.cos(
        frequency * every.positions
    )
    assert np.abs(error).max() > 0.1


@pytest.mark.parametrize("order", [0, 1, 2, 4])
@pytest.mark.parametrize("sigma", [2.5, 9.0])
def test_kernel_at_half_pixels_is_the_sum_of_its_waves(sigma, order):
    kernel = kernels.half_pixel_derivative(sigma, order)
    radius = len(kernel) // 4
    pixels = kernels.gaussian_derivative(sigma, order, radius)
    np.testing.assert_allclose(kernel[::2], pixels, rtol=0, atol=1e-11)
    theta = np.linspace(-np.pi, np.pi, 4001)[:-1]
    response = kernels.fourier_response(theta, sigma, order)
    half = [np.mean(response * np.exp(-1j * theta * x)).real for x in (0.5, 1.5, 2.5)]
    middle = len(kernel) // 2
    np.testing.assert_allclose(kernel[middle + 1 : middle + 6 : 2], half, atol=2e-6)


def test_no_denormal_numbers():
    values = np.abs(kernels.axis_factors(40, 0.5, 2, "zero", 1e-3).jets)
    assert np.abs(kernels.axis_operator(40, 0.5, 2, "zero")).min() < 1e-38
    assert values[values > 0].min() > 1e10 * np.finfo("float32").tiny


def test_factors_are_read_only():
    factors = kernels.axis_factors(40, 6.0, 2, "zero", 1e-3)
    for array in (factors.analysis, factors.jets, factors.synthesis):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_factors_are_kept_up_to_a_number_of_bytes():
    cache = kernels.axis_factors.cache
    factors = kernels.axis_factors(40, 6.0, 2, "zero", 1e-3)
    assert kernels.axis_factors(40, 6.0, 2, "zero", 1e-3) is factors
    arrays = (factors.analysis, *factors.jets, factors.synthesis)
    assert factors.nbytes == sum(array.nbytes for array in arrays)
    assert factors.nbytes <= cache.currsize <= cache.maxsize == 512 * 2**20


# Multi-indices


def test_multi_indices_come_by_order():
    expected = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
    assert kernels.multi_indices(2, 2) == expected
    assert kernels.multi_indices(2, 2, zero_order=True) == ((0, 0), *expected)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@each_order
def test_multi_indices_are_all_of_them(order, dimensions):
    indices = kernels.multi_indices(dimensions, order, zero_order=True)
    assert len(set(indices)) == len(indices) == math.comb(order + dimensions, order)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@each_order
def test_multinomials_expand_the_power_of_a_sum(order, dimensions):
    direction = np.array([0.7, -1.3, 2.1])[:dimensions]
    indices = kernels.multi_indices(dimensions, order, zero_order=True)
    terms = [
        kernels.multinomial(alpha) * np.prod(direction**alpha)
        for alpha in indices
        if sum(alpha) == order
    ]
    assert sum(terms) == pytest.approx(direction.sum() ** order)


def test_multinomial_counts_orderings():
    for alpha in itertools.product(range(4), range(3), range(2)):
        assert kernels.multinomial(alpha) == _reference.orderings(alpha)
    assert isinstance(kernels.multinomial((2, 1)), int)


# Errors


@pytest.mark.parametrize("sigma", [0, -1.0, math.nan, math.inf, True, "1", None])
def test_sigma_is_refused(sigma):
    with pytest.raises(ValueError, match=rf"^`sigma`.*Received: sigma={sigma!r}$"):
        kernels.discrete_gaussian(sigma, 3)


@pytest.mark.parametrize("epsilon", [0, 1, -1e-3, math.nan, True, "small"])
def test_epsilon_is_refused(epsilon):
    with pytest.raises(
        ValueError, match=rf"^`epsilon`.*Received: epsilon={epsilon!r}$"
    ):
        kernels.truncation_radius(1.0, epsilon)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kernels.central_difference(-1), "`order`.*order=-1"),
        (lambda: kernels.truncation_radius(1, 0.1, 0), "`dimensions`.*dimensions=0"),
        (lambda: kernels.axis_operator(0, 1, 1, "zero"), "`size`.*size=0"),
        (lambda: kernels.axis_operator(5, 1, 1, "wrap"), "`boundary`.*'wrap'"),
    ],
)
def test_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
