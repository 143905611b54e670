"""However a layer is evaluated, it is the same linear map, with its own gradient.

Maps are smoothed and convolved, or mixed in few coefficients; along a long axis
matrices are sparse, and multiplied tile by tile.
"""

import keras
import numpy as np
import pytest
from keras import ops

from keras_gdrn.kernels import BOUNDARIES, _axis, _spline
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.layers._matrices import sampling, smoothing
from keras_gdrn.layers._products import _tiles
from tests import _reference
from tests._cases import cases
from tests._gradients import gradients
from tests.layers._contract import assert_near, randomize

# Shape, σ, order.
MAPS = {
    "fine, line": ((40,), 0.5, 2),
    "fine": ((33, 40), 2.0, 2),
    "fine, long": ((530, 20), 0.5, 2),
    "narrow": ((14, 9), 0.6, 3),
    "coarse": ((33, 40), 6.0, 2),
    "coarse, line": ((40,), 6.0, 3),
    "volume": ((12, 5, 9), 2.0, 2),
    "long, narrow": ((513, 9), 0.8, 3),
    "narrow, long": ((9, 513), 0.8, 3),
    "long, coarse": ((544, 9), 6.0, 2),
    "coarse, long": ((9, 513), 6.0, 2),
}
ON_JAX = ["fine", "volume", "coarse", "narrow, long", "long, coarse"]


@pytest.mark.parametrize("boundary", BOUNDARIES)
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


def test_which_layers_have_few_coefficients():
    def have(size, sigma):
        return _axis.low_rank_factors(size, sigma, 2, "zero", 1e-3) is not None

    assert have(64, 6.0) and have(300, 4.0) and have(4096, 3.0)
    assert not have(64, 2.7) and not have(8, 1.0)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_pixel_of_a_longer_axis_takes_as_many_products(boundary):
    def products(size):
        factors = _axis.low_rank_factors(size, 6.0, 2, boundary, 1e-3)
        narrow = _axis.smoothing(size, size + 2, 1.0, boundary)
        kinds = [*factors.analysis, factors.synthesis, narrow]
        return [_tiles(matrix)[0].size / size for matrix in kinds]

    np.testing.assert_allclose(products(8192), products(2048), rtol=0.15)


# Matrices that are made inside the graph

SCALES = [(64, 0.5), (65, 6.0), (192, 20.0)]


@pytest.mark.parametrize("boundary", cases(BOUNDARIES, ["symmetric"]))
@pytest.mark.parametrize(("size", "sigma"), cases(SCALES, SCALES[:1]))
def test_smoothing_of_the_graph_is_precise_in_float32(size, sigma, boundary):
    learned = ops.convert_to_tensor(sigma, "float32")
    actual = smoothing(size, size + 2, learned, "float32", boundary, sigma)
    expected = _axis.smoothing(size, size + 2, sigma, boundary)
    atol = 1e-5 * max(np.abs(expected).max(), 0.01)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("boundary", cases(BOUNDARIES, ["symmetric"]))
@pytest.mark.parametrize("sigma", [0.4, 2.0])
def test_sampling_of_the_graph_is_that_of_kernels(sigma, boundary):
    expected = _spline.sampling(40, 33, 0.7, sigma, boundary)
    learned = ops.convert_to_tensor(sigma, "float32")
    actual = sampling(40, 33, 0.7, learned, boundary, sigma / 2)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)
    pixels = ops.convert_to_tensor(40)  # as if only the graph knew
    actual = sampling(pixels, 33, 0.7, sigma, boundary)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=3e-5)
