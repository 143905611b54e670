"""Where scales are fine, one convolution of smoothed values gives what kernels give."""

import keras
import numpy as np
import pytest

from keras_gdrn import kernels
from keras_gdrn.layers import GaussDerConv, ScaleChannels
from keras_gdrn.layers._fine_scales import is_fine
from tests import _reference
from tests._cases import cases
from tests._gradients import gradients
from tests.layers._contract import numpy, randomize

SHAPES = cases([(40,), (33, 40), (300, 40)], [(33, 40)])


def is_applied(shape: tuple, sigma: float = 1.0, **options):
    """Whether a layer smooths images of this shape and convolves them."""
    layer = GaussDerConv(2, sigma, **options)
    layer.build((None, *shape, 3))
    given = (layer.order, layer.boundary, layer.epsilon)
    axes = [kernels.axis_factors(size, sigma, *given) for size in shape]
    kernel = layer.depthwise_kernel if layer.separable else layer.kernel
    return is_fine(axes, kernel)


@pytest.mark.parametrize("boundary", kernels.BOUNDARIES)
@pytest.mark.parametrize("sigma", [0.5, 2.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_are_scipys_and_gradients_those_of_a_linear_map(shape, sigma, boundary):
    options = {"boundary": boundary, "zero_order": True, "epsilon": 1e-5}
    assert is_applied(shape, sigma, **options)
    layer = GaussDerConv(4, sigma, use_bias=False, **options)
    layer.build((None, *shape, 3))
    randomize(layer)
    random = np.random.default_rng(0)
    x, direction = random.normal(size=(2, 2, *shape, 3))
    kernel, other = layer.kernel.numpy(), random.normal(size=layer.kernel.shape)

    def expected(x, kernel):
        return _reference.jet_layer(x, kernel, layer.indices, sigma, boundary)

    y = numpy(layer(x.astype("float32")))
    scale = np.abs(expected(x, kernel)).max()
    np.testing.assert_allclose(y, expected(x, kernel), rtol=0, atol=2e-5 * scale)
    # ⟨ȳ, L d⟩ = ⟨Lᵀ ȳ, d⟩, of what is linear in the images and in the weights.
    upstream = random.normal(size=y.shape)
    of_x, of_kernel = gradients(layer, x, upstream.astype("float32"))
    for gradient, d, along in (
        (of_x, direction, expected(direction, kernel)),
        (of_kernel, other, expected(x, other)),
    ):
        allowed = 2e-5 * np.linalg.norm(gradient) * np.linalg.norm(d)
        assert abs(np.sum(gradient * d) - np.sum(upstream * along)) < allowed


def test_where_it_is_applied():
    assert is_applied((64,)) and is_applied((64, 64)) and is_applied((300, 300))
    assert is_applied((64, 64), boundary="symmetric", zero_order=True, order=1)
    # Long kernels have better ways.
    assert is_applied((64, 64), sigma=2.4) and is_applied((300, 300), sigma=2.4)
    assert not is_applied((300, 300), sigma=2.6)
    assert not is_applied((64, 64), sigma=6.0)
    assert not is_applied((8, 64))  # narrower than the kernel
    assert not is_applied((64, 64), order=3)
    assert not is_applied((64, 64), separable=True)
    assert not is_applied((16, 16, 16))


def test_it_is_applied_in_networks_that_leave_something_out():
    """The tolerance of a network that looks anywhere changes nothing in whole maps."""
    samples = kernels.Samples(64, least_weight=0.04)
    axis = (64, 1.0, 2, "zero", 0.03)
    assert kernels.axis_factors(*axis, samples, samples).composed
    # Few coefficients are faster.
    assert not kernels.axis_factors(64, 2.4, 2, "zero", 0.03).composed
    seen = kernels.Samples(64, influence=9.0)
    assert not kernels.axis_factors(*axis, samples, seen).composed
    assert not kernels.axis_factors(*axis, samples, samples, step=0.7).composed


@pytest.mark.parametrize("packed", [True, False])
def test_scales_in_any_order_are_what_each_is_alone(packed):
    image = keras.Input((40, 40, 2))
    layer = GaussDerConv(3, 1.0)
    y = layer(image)
    if not packed:  # a layer that sees several positions takes whole maps
        y = keras.layers.AveragePooling2D(3, 1, "same")(y)
    network = keras.Model(image, y)
    randomize(layer)
    x = np.random.default_rng(0).normal(size=(2, 40, 40, 2)).astype("float32")
    scales = (1.0, 5.0, 6.0, 0.6, 0.8, 3.0)
    maps = numpy(ScaleChannels(network, scales)(x))
    for number, scale in enumerate(scales):
        alone = numpy(ScaleChannels(network, [scale])(x))[:, 0]
        np.testing.assert_allclose(maps[:, number], alone, atol=1e-5)
