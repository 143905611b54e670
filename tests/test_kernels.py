"""Kernels and axis operators against SciPy, pyscsp and the discrete Fourier sum."""

import functools
import itertools
import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from pyscsp import discscsp
from scipy.interpolate import CubicSpline
from scipy.ndimage import correlate1d

from keras_gdrn import kernels
from keras_gdrn.kernels import _factors
from tests import _reference
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
    radius = kernels.support_radius(sigma)
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
    radius = kernels.support_radius(sigma) + order
    theta = np.linspace(-np.pi, np.pi, 41, dtype="float32")
    waves = np.exp(1j * np.outer(theta, np.arange(-radius, radius + 1.0)))
    expected = waves @ kernels.gaussian_derivative(sigma, order, radius)
    actual = kernels.fourier_response(theta, sigma, order)
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


# The kernel between the pixels

each_step = pytest.mark.parametrize("step", (0.25, 0.5**1.5, 0.7, 0.5**0.5))


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
        radius = kernels.support_radius(sigma, step) + order
        kernel = kernels.gaussian_derivative(sigma, order, radius + 20, step)
        assert abs(kernel[:20]).max() < 1e-15


# The operators of an axis


@each_boundary
@each_sigma
def test_axis_operator_equals_scipy(sigma, boundary):
    mode = {"zero": "constant", "symmetric": "symmetric"}[boundary]
    for size, order in itertools.product((1, 2, 7, 16, 33), ORDERS):
        x = signal(size)
        expected = _reference.derivative(x, sigma, order, 0, boundary)
        actual = kernels.axis_operator(size, sigma, order, boundary) @ x
        # Differences of order a lose a factor of sigma**a to rounding.
        atol = 1e-12 + 1e-15 * sigma**order
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=atol)
        if sigma == 1.0:  # between the pixels
            kernel = kernels.gaussian_derivative(sigma, order, 100, 0.6)
            expected = np.correlate(np.pad(x, 100, mode=mode), kernel, mode="valid")
            actual = kernels.axis_operator(size, sigma, order, boundary, 0.6) @ x
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-13)


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
        rows, columns = (
            kernels.axis_operator(n, sigma, order, "symmetric")
            for n, order in zip(image.shape, alpha, strict=True)
        )
        np.testing.assert_allclose(rows @ image @ columns.T, expected, atol=1e-10)


# Low rank


def as_matrix(factors, order: int) -> np.ndarray:
    matrices = (factors.synthesis, factors.jets[order], factors.analysis)
    return functools.reduce(np.matmul, [dense(m) for m in matrices if m is not None])


def dense(matrix) -> np.ndarray:
    return matrix.toarray() if scipy.sparse.issparse(matrix) else matrix


def assert_within_twice_epsilon(factors, operators, epsilon, weight=1.0):
    """In all forms, relative to the operators beside and below one another."""
    weighted = [weight * operator for operator in operators]
    allowed = sum(spectral_norm(np.concatenate(weighted, axis)) for axis in (0, 1))
    for order, operator in enumerate(operators):
        for form in (factors, factors.late or factors):
            error = weight * (operator - as_matrix(form, order))
            assert spectral_norm(error) <= epsilon * allowed + 1e-14


@examples(150)
@given(st.data())
def test_factors_are_within_twice_epsilon(data):
    """And their adjoints are of the transposed operators."""
    size, sigma = data.draw(st.integers(1, 80)), data.draw(st.floats(0.1, 40.0))
    order = data.draw(st.integers(1, 4))
    boundary = data.draw(st.sampled_from(kernels.BOUNDARIES))
    epsilon = data.draw(st.sampled_from([0.3, 1e-1, 1e-3, 1e-8]))
    influence = data.draw(st.sampled_from([math.inf, 6.0, 1.0]))
    margin = data.draw(st.sampled_from([0, size // 3, (size - 1) // 2]))
    outputs = size - 2 * margin
    factors = kernels.axis_factors(
        *(size, sigma, order, boundary, epsilon),
        leaving=kernels.Samples(outputs, influence=influence),
    )
    operators = [
        kernels.axis_operator(size, sigma, a, boundary)[margin : size - margin]
        for a in range(order + 1)
    ]
    distance = np.abs(np.arange(outputs) - (outputs - 1) / 2)
    weight = np.maximum(np.exp(-((distance / influence) ** 2) / 2), 0.01)[:, None]
    assert_within_twice_epsilon(factors, operators, epsilon, weight)
    for a in range(order + 1):
        transposed = as_matrix(factors, a).T
        actual = as_matrix(factors.adjoint, a)
        np.testing.assert_allclose(actual, transposed, atol=1e-14 * sigma**a + 1e-14)


def test_less_influence_takes_fewer_coefficients():
    ranks = [
        kernels.axis_factors(
            *(64, 6.0, 2, "zero", 1e-3),
            leaving=kernels.Samples(48, influence=influence),
        ).ranks
        for influence in (math.inf, 8.0, 4.0)
    ]
    assert ranks[0] > ranks[1] > ranks[2]


@each_boundary
@pytest.mark.parametrize(
    ("size", "sigma"), [(64, 3.0), (96, 4.0), (64, 8.0), (96, 24.0)]
)
def test_rank_falls_as_one_over_sigma(size, sigma, boundary):
    factors = kernels.axis_factors(size, sigma, 2, boundary, 1e-3)
    rank = 1.55 * size / sigma
    inputs, outputs = factors.ranks
    assert rank - 2 <= min(inputs, outputs) <= max(inputs, outputs) <= rank + 5
    assert factors.analysis.shape == (inputs, size)
    assert factors.jets.shape == (3, outputs, inputs)
    assert factors.synthesis.shape == (size, outputs)
    for basis in (factors.analysis, factors.synthesis.T):  # orthonormal
        np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-12)


def test_factors_are_the_operators_where_reduction_brings_nothing():
    leaving = kernels.Samples(14)
    factors = kernels.axis_factors(16, 0.5, 4, "zero", 1e-3, leaving=leaving)
    assert factors.analysis is None and factors.synthesis is None
    for a, jet in enumerate(factors.jets):
        expected = kernels.axis_operator(16, 0.5, a, "zero")[1:15]
        np.testing.assert_allclose(jet, expected, rtol=0, atol=1e-19)


@pytest.mark.parametrize(("size", "sigma"), [(40, 6.0), (16, 0.5), (300, 9.0)])
def test_no_denormal_numbers(size, sigma):
    """onnxruntime takes some times as long with them."""
    factors = kernels.axis_factors(size, sigma, 2, "zero", 1e-3)
    matrices = [factors.analysis, *factors.jets, factors.synthesis]
    for matrix in matrices:
        values = np.abs(dense(1.0 if matrix is None else matrix))
        assert values[values > 0].min() > 1e10 * np.finfo("float32").tiny


def test_factors_are_read_only_and_kept_up_to_a_number_of_bytes():
    cache = kernels.axis_factors.cache
    factors = kernels.axis_factors(40, 6.0, 2, "zero", 1e-3)
    assert kernels.axis_factors(40, 6.0, 2, "zero", 1e-3) is factors
    arrays = (factors.analysis, factors.jets, factors.synthesis)
    cached = kernels.spline_interpolation(5, 10, 0.5)
    for array in (*arrays, cached, kernels.half_pixel_derivative(2.0, 1)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert factors.nbytes == sum(array.nbytes for array in arrays)
    assert factors.nbytes <= cache.currsize <= cache.maxsize == 512 * 2**20
    # A sparse matrix has an index beside each value, and where each row begins.
    sparse = kernels.axis_factors(kernels.LONG_AXIS, 0.5, 2, "zero", 1e-3)
    values = sum(jet.nnz for jet in sparse.jets)
    rows = 3 * (kernels.LONG_AXIS + 1)
    index = sparse.jets[0].indices.itemsize
    assert sparse.nbytes == 8 * values + index * (values + rows)


@pytest.mark.parametrize("sigma", [0.5, 1.2, 2.5, 4.0, 9.0, 60.0])
@pytest.mark.parametrize(
    ("size", "epsilon", "boundary"),
    [
        (kernels.LONG_AXIS, 1e-1, "symmetric"),
        (kernels.LONG_AXIS, 1e-3, "zero"),
        (301, 1e-6, "symmetric"),
    ],
)
def test_factors_of_long_axes_are_within_twice_epsilon(size, sigma, epsilon, boundary):
    factors = kernels.axis_factors(size, sigma, 2, boundary, epsilon)
    operators = [kernels.axis_operator(size, sigma, a, boundary) for a in range(3)]
    assert_within_twice_epsilon(factors, operators, epsilon)


@pytest.mark.parametrize("sigma", [0.7, 2.0, 8.0, 64.0])
def test_long_axes_take_few_numbers_for_each_pixel(sigma, monkeypatch):
    """And no singular values, whose cost is cubic in the length."""

    def refused(*arguments, **options):
        raise AssertionError("cubic in the length")

    monkeypatch.setattr(np.linalg, "svd", refused)
    factors = kernels.axis_factors(16_000, sigma, 2, "symmetric", 1e-3)
    for form in (factors, factors.late or factors):
        matrices = [form.analysis, *form.jets, form.synthesis]
        sizes = [matrix.size for matrix in matrices if matrix is not None]
        assert max(sizes) <= 40 * 16_000
        if sigma >= 8:
            assert min(form.ranks) <= 2.1 * 16_000 / sigma
    kernels.axis_factors(256, sigma, 2, "symmetric", 1.2e-3)
    with pytest.raises(AssertionError, match="cubic"):
        kernels.axis_factors(255, sigma, 2, "symmetric", 1.2e-3)


def test_samples_between_two_gaussians_are_as_far_apart_as_they_may(monkeypatch):
    """One pixel more, and the waves that they are taken for pass the tolerance."""
    axis = (300, 9.0, 2, "zero", 1e-3)
    operators = [kernels.axis_operator(*axis[:2], a, axis[3]) for a in range(3)]
    assert_within_twice_epsilon(kernels.axis_factors(*axis), operators, 1e-3)
    spacing = _factors._spacing_between(9.0, 2, 1e-3)
    monkeypatch.setattr(_factors, "_spacing_between", lambda *_: spacing + 1)
    beyond = _factors.axis_factors.__wrapped__(*axis)
    with pytest.raises(AssertionError):
        assert_within_twice_epsilon(beyond, operators, 1e-3)


# Stencils


@pytest.mark.parametrize("lacking", [(0, 0), (1, 2), (3, 0)])
@pytest.mark.parametrize(("mirrored", "mode"), [(False, "constant"), (True, "reflect")])
def test_stencil_is_scipys_correlation_and_can_be_transposed(mirrored, mode, lacking):
    entering, leaving = lacking
    kernel, x = signal(9) + signal(9)[::-1], signal(20)
    x[:entering] = x[20 - entering :] = 0
    stencil = kernels.Stencil(kernel, 20, mirrored, *lacking)
    matrix = stencil.matrix().toarray()
    assert stencil.shape == matrix.shape == (20 - 2 * leaving, 20 - 2 * entering)
    expected = correlate1d(x, kernel, mode=mode)[leaving : 20 - leaving]
    actual = matrix @ x[entering : 20 - entering]
    np.testing.assert_allclose(actual, expected, atol=1e-12)
    np.testing.assert_allclose(stencil.T.matrix().toarray(), matrix.T, atol=1e-15)


@each_boundary
@pytest.mark.parametrize("tail", [1e-2, 1e-4])
def test_stencils_leave_out_no_more_than_the_tail(tail, boundary):
    axis = (64, 64, 1.3, 3, boundary)
    for cut, whole in zip(
        kernels.stencils(*axis, tail=tail), kernels.stencils(*axis), strict=True
    ):
        assert cut.radius < whole.radius
        # What is left out, and its sum on the diagonal.
        lost = (cut.matrix() - whole.matrix()).toarray()
        assert np.abs(lost).sum(1).max() <= 2 * tail
        assert cut.kernel.sum() == pytest.approx(whole.kernel.sum(), abs=1e-15)


# Coarse samples


@each_boundary
@pytest.mark.parametrize("pixels", [15, 16])
def test_samples_at_all_pixels_are_the_operator(pixels, boundary):
    every = kernels.Samples(pixels)
    for order in range(4):
        sampled = kernels.sampled_operator(every, every, pixels, 2.5, order, boundary)
        operator = kernels.axis_operator(pixels, 2.5, order, boundary)
        np.testing.assert_allclose(sampled.toarray(), operator, rtol=0, atol=1e-15)


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
    operator = kernels.axis_operator(*axis)
    to_pixels = kernels.sampled_operator(coarse, every, *axis)
    between = kernels.sampled_operator(every, coarse, *axis)

    def smooth(x):
        return np.exp(-((x / sigma) ** 2) / 2) * np.cos(x / sigma)

    expected = operator @ smooth(every.positions)
    actual = to_pixels @ smooth(coarse.positions)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)
    at = np.interp(coarse.positions, every.positions, expected)[1:-1]
    values = (between @ smooth(every.positions))[1:-1]
    np.testing.assert_allclose(values, at, rtol=0, atol=3e-2 / spacing)
    # Of samples so far apart, this wave is taken for cos(x / sigma).
    frequency = 2 * np.pi / spacing - 1 / sigma
    taken = to_pixels @ np.cos(frequency * coarse.positions)
    error = taken - operator @ np.cos(frequency * every.positions)
    assert np.abs(error).max() > 0.1


@pytest.mark.parametrize("order", [0, 1, 2, 4])
@pytest.mark.parametrize("sigma", [2.5, 9.0])
def test_kernel_at_half_pixels_is_the_sum_of_its_waves(sigma, order):
    kernel = kernels.half_pixel_derivative(sigma, order)
    pixels = kernels.gaussian_derivative(sigma, order, len(kernel) // 4)
    np.testing.assert_allclose(kernel[::2], pixels, rtol=0, atol=1e-11)
    theta = np.linspace(-np.pi, np.pi, 4001)[:-1]
    response = kernels.fourier_response(theta, sigma, order)
    half = [np.mean(response * np.exp(-1j * theta * x)).real for x in (0.5, 1.5, 2.5)]
    middle = len(kernel) // 2
    np.testing.assert_allclose(kernel[middle + 1 : middle + 6 : 2], half, atol=2e-6)


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


FIVE = kernels.Samples(5), kernels.Samples(5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kernels.discrete_gaussian(0, 3), "^`sigma`.*sigma=0$"),
        (lambda: kernels.fourier_response(0.1, "1", 1), "^`sigma`.*sigma='1'$"),
        (lambda: kernels.support_radius(math.nan), "^`sigma`.*sigma=nan$"),
        (lambda: kernels.truncation_radius(1.0, 1), "^`epsilon`.*epsilon=1$"),
        (lambda: kernels.truncation_radius(1.0, True), "^`epsilon`.*epsilon=True$"),
        (lambda: kernels.truncation_radius(1.0, 0), "^`epsilon`.*epsilon=0$"),
        (lambda: kernels.central_difference(-1), "`order`.*order=-1"),
        (lambda: kernels.truncation_radius(1, 0.1, 0), "`dimensions`.*dimensions=0"),
        (lambda: kernels.axis_operator(0, 1, 1, "zero"), "`size`.*size=0"),
        (lambda: kernels.axis_operator(5, 1, 1, "wrap"), "`boundary`.*'wrap'"),
        (lambda: kernels.stencils(5, 5, 1, 1, "edge"), "`boundary`.*'edge'"),
        (lambda: kernels.sampled_operator(*FIVE, 5, 1, 1, "odd"), "`boundary`.*'odd'"),
    ],
)
def test_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
