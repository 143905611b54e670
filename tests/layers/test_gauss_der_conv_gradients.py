"""Gradients of `GaussDerConv` in float64, against differences; exact where linear."""

import keras
import numpy as np
import pytest

from keras_gdrn.layers import GaussDerConv, ScaleChannels
from tests._gradients import InputGradient, directional_differences, gradients
from tests.layers._contract import randomize

pytestmark = pytest.mark.usefixtures("float64")

LAYERS = {
    "fine": {"sigma": 0.7},
    "coarse": {"sigma": 4.0},
    "order 3, zero order": {"sigma": 1.0, "order": 3, "zero_order": True},
    "mirror": {"sigma": 3.0, "boundary": "symmetric"},
    "separable": {"sigma": 4.0, "separable": True},
    "channels first": {"sigma": 1.0, "data_format": "channels_first"},
    "trainable sigma": {"sigma": 1.3, "trainable_sigma": True},
    "trainable sigma, mirror": {
        "sigma": 4.0,
        "trainable_sigma": True,
        "boundary": "symmetric",
        "separable": True,
    },
}
each_layer = pytest.mark.parametrize("options", LAYERS.values(), ids=LAYERS)


def assert_gradients_are_slopes(layer, shape, tolerance=1e-7):
    rng = np.random.default_rng(2)
    layer.build((None, *shape))
    randomize(layer)
    x = rng.normal(size=(2, *shape))
    upstream = rng.normal(size=layer.compute_output_shape(x.shape))
    directions, slopes = directional_differences(layer, x, upstream)
    computed = gradients(layer, x, upstream)
    assert len(computed) == len(directions)
    for gradient, direction, slope in zip(computed, directions, slopes, strict=True):
        assert gradient.shape == direction.shape
        assert np.sum(gradient * direction) == pytest.approx(slope, rel=tolerance)


@each_layer
def test_two_dimensions(options):
    conv = GaussDerConv(3, activation="tanh", dtype="float64", **options)
    assert_gradients_are_slopes(conv, (8, 12, 2))


@pytest.mark.parametrize("shape", [(16, 2), (4, 6, 5, 2)])
@pytest.mark.parametrize("separable", [False, True])
def test_other_dimensions(separable, shape):
    conv = GaussDerConv(3, 1.5, separable=separable, dtype="float64")
    assert_gradients_are_slopes(conv, shape)


@pytest.mark.parametrize("trainable_sigma", [False, True])
def test_scale_channels(trainable_sigma):
    conv = GaussDerConv(3, 1.0, trainable_sigma=trainable_sigma, dtype="float64")
    channels = ScaleChannels(conv, [0.5, 1.0, 4.0], dtype="float64")
    assert_gradients_are_slopes(channels, (12, 8, 2))


@each_layer
def test_every_pixel_and_every_weight(options):
    """Not along a direction only: the layer is linear, so unit steps are exact."""
    conv = GaussDerConv(2, use_bias=False, dtype="float64", **options)
    if conv.separable or conv.trainable_sigma:
        pytest.skip("not linear in its weights")
    shape = (2, 5, 4) if conv.data_format == "channels_first" else (5, 4, 2)
    conv.build((None, *shape))
    randomize(conv)
    rng = np.random.default_rng(2)
    x = rng.normal(size=(1, *shape))
    upstream = rng.normal(size=conv.compute_output_shape(x.shape))
    x_bar, kernel_bar = gradients(conv, x, upstream)

    def total(pixels):
        return np.sum(upstream * keras.ops.convert_to_numpy(conv(pixels)), (1, 2, 3))

    units = np.eye(x.size).reshape(x.size, *shape)
    np.testing.assert_allclose(x_bar.ravel(), total(units), atol=1e-11)
    for position in np.ndindex(kernel_bar.shape):
        unit = np.zeros(kernel_bar.shape)
        unit[position] = 1
        conv.kernel.assign(unit)
        assert kernel_bar[position] == pytest.approx(total(x)[0], abs=1e-11)


@pytest.mark.parametrize("sigma", [0.7, 4.0])
def test_second_derivatives(sigma):
    """A penalty on the gradient in the image has a gradient in the weights."""
    conv = GaussDerConv(2, sigma, activation="tanh", dtype="float64")
    conv.build((None, 9, 12, 2))
    assert_gradients_are_slopes(InputGradient(conv), (9, 12, 2))


def test_slopes_notice_a_wrong_gradient():
    @keras.saving.register_keras_serializable(package="tests")
    class Wrong(keras.layers.Dense):
        def call(self, inputs):
            kernel = keras.ops.stop_gradient(self.kernel)
            return super().call(inputs) + keras.ops.matmul(inputs, kernel)

    with pytest.raises(AssertionError):
        assert_gradients_are_slopes(Wrong(3, dtype="float64"), (4,))
