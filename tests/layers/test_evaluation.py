"""However a layer is evaluated, it is the same linear map, with its own gradient.

Fine scales are smoothed and convolved, coarse ones are products in few coefficients,
and along a long axis these are products with sparse matrices, tile by tile.
"""

import gc
import weakref

import keras
import numpy as np
import pytest
import scipy.sparse
from keras import ops

from keras_gdrn import kernels
from keras_gdrn.layers import GaussDerConv, _jets
from keras_gdrn.layers._fine_scales import is_fine
from keras_gdrn.layers._spectral import spectral_operators
from keras_gdrn.layers._tiles import _tiles
from tests import _reference
from tests._cases import cases
from tests._gradients import gradients
from tests.layers._contract import assert_near, randomize


def is_applied(shape: tuple, sigma=1.0, order=2, boundary="zero", separable=False):
    """Whether a layer smooths images of this shape and convolves them."""
    axes = [kernels.axis_factors(n, sigma, order, boundary, 1e-3) for n in shape]
    return is_fine(axes, np.ones((5, 3) if separable else (5, 3, 2)))


def test_which_scales_are_fine():
    assert is_applied((64,)) and is_applied((64, 64)) and is_applied((300, 300))
    assert is_applied((64, 64), boundary="symmetric", order=1)
    # Long kernels have better ways.
    assert is_applied((64, 64), sigma=2.4) and is_applied((300, 300), sigma=2.4)
    assert not is_applied((300, 300), sigma=2.6)
    assert not is_applied((64, 64), sigma=6.0)
    assert not is_applied((8, 64))  # narrower than the kernel
    assert not is_applied((64, 64), order=3)
    assert not is_applied((64, 64), separable=True)
    assert not is_applied((16, 16, 16))


def test_which_scales_are_fine_in_networks_that_leave_something_out():
    """The tolerance of a network that looks anywhere changes nothing in whole maps."""
    samples = kernels.Samples(64, least_weight=0.04)
    axis = (64, 1.0, 2, "zero", 0.03)
    assert kernels.axis_factors(*axis, samples, samples).composed
    # Few coefficients are faster.
    assert not kernels.axis_factors(64, 2.4, 2, "zero", 0.03).composed
    seen = kernels.Samples(64, influence=9.0)
    assert not kernels.axis_factors(*axis, samples, seen).composed
    assert not kernels.axis_factors(*axis, samples, samples, step=0.7).composed


# Shape, σ, order. Beyond σ = 2.5 and order 2 nothing is fine.
MAPS = {
    "fine, line": ((40,), 0.5, 2),
    "fine": ((33, 40), 2.0, 2),
    "fine, long": ((300, 40), 0.5, 2),
    "narrow": ((14, 9), 0.6, 3),
    "coarse": ((33, 40), 6.0, 2),
    "coarse, line": ((40,), 6.0, 3),
    "volume": ((12, 5, 9), 2.0, 2),
    "long, narrow": ((257, 9), 0.8, 3),
    "narrow, long": ((9, 257), 0.8, 3),
    "long, coarse": ((288, 9), 6.0, 2),
    "coarse, long": ((9, 257), 6.0, 2),
}
ON_JAX = ["fine", "volume", "coarse", "narrow, long", "long, coarse"]


@pytest.mark.parametrize("boundary", kernels.BOUNDARIES)
@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("name", cases(MAPS, ON_JAX))
def test_values_are_scipys_and_gradients_those_of_a_linear_map(
    name, separable, boundary
):
    shape, sigma, order = MAPS[name]
    options = {"zero_order": True, "separable": separable, "use_bias": False}
    layer = GaussDerConv(4, sigma, order, boundary=boundary, epsilon=1e-5, **options)
    layer.build((None, *shape, 3))
    randomize(layer)
    random = np.random.default_rng(0)
    x = random.normal(size=(2, *shape, 3))
    weights = [weight.numpy() for weight in layer.weights]

    def expected(x, jet, mix=None):
        mix = jet if mix is None else jet[:, :, None] * mix
        return _reference.jet_layer(x, mix, layer.indices, sigma, boundary)

    y = expected(x, *weights)
    assert_near(layer(x.astype("float32")), y, 2e-5)
    # ⟨ȳ, L d⟩ = ⟨Lᵀ ȳ, d⟩, of what is linear in the images and in each weight.
    upstream, values = random.normal(size=y.shape), [x, *weights]
    found = gradients(layer, x, upstream.astype("float32"))
    for k, gradient in enumerate(found):
        d = random.normal(size=gradient.shape)
        along = expected(*values[:k], d, *values[k + 1 :])
        allowed = 2e-5 * np.linalg.norm(gradient) * np.linalg.norm(d)
        assert abs(np.sum(gradient * d) - np.sum(upstream * along)) < allowed


def test_gradient_takes_the_number_of_filters_from_the_kernel():
    """Behind a maximum, TensorFlow does not know the shape of the gradient."""
    image = keras.Input((8, 8, 2))
    maps = GaussDerConv(1, 1.0)(image)
    model = keras.Model(image, keras.layers.GlobalMaxPooling2D()(maps))
    model.compile("sgd", "mse")
    history = model.fit(np.ones((4, 8, 8, 2)), np.ones((4, 1)), verbose=0)
    assert np.isfinite(history.history["loss"][0])


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="compiled on JAX alone")
def test_only_the_bounded_cache_keeps_factors():
    """A search builds hundreds of networks: what they were evaluated by is let go."""
    axis = kernels.axis_factors(7, 1.234, 2, "zero", 0.05)
    found = weakref.ref(axis)
    indices = kernels.multi_indices(1, 2)
    x, kernel = ops.ones((7, 1, 2)), ops.ones((len(indices), 2, 3))
    assert _jets.filtered(x, kernel, ((axis,),), indices).shape == (7, 1, 3)
    del axis
    kernels.axis_factors.cache.clear()
    gc.collect()
    assert found() is not None
    _jets._compiled.cache_clear()
    gc.collect()
    assert found() is None


@pytest.mark.parametrize("boundary", kernels.BOUNDARIES)
def test_a_pixel_of_a_longer_axis_takes_as_many_products(boundary):
    def products(size):
        factors = kernels.axis_factors(size, 6.0, 2, boundary, 1e-3)
        forms = factors.jets, factors.late.jets
        return [_tiles(matrices)[1].size / size for matrices in forms]

    np.testing.assert_allclose(products(4096), products(1024), rtol=0.15)


@pytest.mark.parametrize("outputs", [64, 255, 257])  # 257 is prime
def test_tiles_leave_no_rest_where_they_need_not(outputs):
    matrix = scipy.sparse.eye_array(outputs).tocsr()
    _, tiles, rows, _ = _tiles([matrix])[1].shape
    assert 0 <= tiles * rows - outputs < rows
    assert tiles * rows == outputs or outputs == 257


# Operators that are made inside the graph

SCALES = [(64, 0.5), (65, 6.0), (192, 20.0)]


@pytest.mark.parametrize("boundary", cases(kernels.BOUNDARIES, ["symmetric"]))
@pytest.mark.parametrize(("size", "sigma"), cases(SCALES, SCALES[:1]))
def test_operators_of_the_graph_are_precise_in_float32(size, sigma, boundary):
    """Nothing is differenced after rounding: no order loses digits to cancellation."""
    graph = spectral_operators(
        *(size, ops.convert_to_tensor((sigma / 2, sigma), "float32"), 4),
        mirrored=boundary == "symmetric",
        reach=kernels.support_radius(sigma),
        dtype="float32",
    )
    for order, of_scales in enumerate(graph):
        for scale, actual in zip((sigma / 2, sigma), of_scales, strict=True):
            expected = kernels.axis_operator(size, scale, order, boundary)
            atol = 1e-5 * max(np.abs(expected).max(), 0.01)
            np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)
