"""The discrete scale space: cascade, diffusion, and derivatives of polynomials."""

import functools
import itertools

import numpy as np
import pytest

from keras_gdrn.kernels import discrete_gaussian
from tests._cases import cases
from tests.theory.counter_examples import jet_without_multinomials, sampled_gaussian
from tests.theory.images import coordinates
from tests.theory.networks import array, derivative, grey_jet
from tests.theory.symmetry_assertions import (
    assert_semigroup,
    assert_solves_diffusion,
    assert_steers,
)

SIZE = 49
EXACT = {"epsilon": 1e-7}
AXES_2D = np.meshgrid(coordinates(SIZE), coordinates(SIZE), indexing="ij")


@pytest.mark.parametrize(("first", "second"), [(0.4, 0.6), (1.0, 2.0), (3.0, 4.0)])
def test_smoothing_is_a_semigroup(first, second):
    assert_semigroup(discrete_gaussian, first, second, tolerance=1e-12)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
def test_smoothing_is_diffusion(sigma):
    assert_solves_diffusion(discrete_gaussian, sigma, tolerance=1e-6)


@pytest.mark.parametrize("boundary", ["zero", "symmetric"])
def test_layers_in_cascade_smooth_as_one(boundary):
    image = np.random.default_rng(0).normal(size=(1, SIZE, SIZE, 1)).astype("float32")
    first, second, single = (
        derivative((0, 0), sigma, boundary=boundary, **EXACT)
        for sigma in (1.2, 1.6, 2.0)
    )
    inside = (0, slice(16, -16), slice(16, -16))
    cascade, expected = array(second(first(image))), array(single(image))
    np.testing.assert_allclose(cascade[inside], expected[inside], atol=1e-5)


@pytest.mark.parametrize("sigma", cases([0.7, 1.0, 2.0, 4.0], [2.0]))
@pytest.mark.parametrize("alpha", [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2)])
def test_derivatives_of_polynomials_are_exact(alpha, sigma):
    """`σ^|α| ∂_α` of `x^β / β!` is `σ^|α|` for α = β and 0 at the center elsewhere."""
    layer = derivative(alpha, sigma, boundary="zero", **EXACT)
    for beta in itertools.product(range(3), repeat=2):
        if not 1 <= sum(beta) <= 2:
            continue
        factorial = 2 if max(beta) == 2 else 1
        monomial = AXES_2D[0] ** beta[0] * AXES_2D[1] ** beta[1] / factorial
        expected = sigma ** sum(alpha) if alpha == beta else 0.0
        answer = array(layer(monomial[None, ..., None]))[0, SIZE // 2, SIZE // 2, 0]
        np.testing.assert_allclose(answer, expected, atol=2e-4 * sigma ** sum(alpha))


@pytest.mark.parametrize("dimensions", cases([1, 3], [1]))
def test_ramps_in_other_dimensions(dimensions):
    size, sigma = 33, 1.5
    for axis, slope in itertools.product(range(dimensions), repeat=2):
        alpha = tuple(int(i == axis) for i in range(dimensions))
        shape = [1] * (dimensions + 2)
        shape[slope + 1] = size
        ramp = np.zeros((1, *[size] * dimensions, 1)) + coordinates(size).reshape(shape)
        answer = array(derivative(alpha, sigma, **EXACT)(ramp))
        center = answer[(0, *[size // 2] * dimensions, 0)]
        np.testing.assert_allclose(center, sigma * (axis == slope), atol=1e-4)


@pytest.mark.parametrize(("angle", "sigma"), [(0.3, 1.0), (1.9, 2.0)])
def test_multinomials_make_directional_derivatives(angle, sigma):
    direction, image, expected = _parabola(angle, sigma)
    make = functools.partial(grey_jet, sigma=sigma, order=2, **EXACT)
    assert_steers(make, 2, image, direction, expected, tolerance=1e-3)


@pytest.mark.seen_on_tensorflow("the assertions are the same")
class TestCounterExamples:
    def test_sampled_gaussian_is_no_semigroup_and_does_not_diffuse(self):
        with pytest.raises(AssertionError, match="not a semi-group"):
            assert_semigroup(sampled_gaussian, 0.4, 0.6, tolerance=1e-2)
        with pytest.raises(AssertionError, match="not a solution"):
            assert_solves_diffusion(sampled_gaussian, 1.0, tolerance=1e-2)

    def test_jet_without_multinomials(self):
        direction, image, expected = _parabola(0.3, 1.0)
        make = functools.partial(jet_without_multinomials, sigma=1.0, order=2, **EXACT)
        with pytest.raises(AssertionError, match="not a directional"):
            assert_steers(make, 2, image, direction, expected, tolerance=0.05)


def _parabola(angle, sigma):
    """`(v·x)² / 2` and its derivative `σ² (u·∇)² = σ² (u·v)²` along u."""
    u, v = np.array([np.cos(angle), np.sin(angle)]), np.array([1.0, 0.5])
    image = (v[0] * AXES_2D[0] + v[1] * AXES_2D[1]) ** 2 / 2
    return u, image, sigma**2 * (u @ v) ** 2
