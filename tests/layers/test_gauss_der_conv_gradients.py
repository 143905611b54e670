"""Gradients of `GaussDerConv` against differences, its own gradient's most of all."""

import keras
import numpy as np
import pytest

from keras_gdrn.layers import GaussDerConv
from tests._gradients import (
    DTYPE,
    InputGradient,
    assert_gradients_are_slopes,
    gradients,
)
from tests.layers._contract import randomize

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


def built(layer, *shape: int):
    layer.build((None, *shape))
    randomize(layer)
    return layer, np.random.default_rng(0).normal(size=(2, *shape))


@pytest.mark.parametrize("options", LAYERS.values(), ids=LAYERS)
def test_two_dimensions(options):
    conv = GaussDerConv(3, activation="tanh", dtype=DTYPE, **options)
    assert_gradients_are_slopes(*built(conv, 8, 12, 2))


@pytest.mark.parametrize("shape", [(16, 2), (4, 6, 5, 2)])
@pytest.mark.parametrize("separable", [False, True])
def test_other_dimensions(separable, shape):
    conv = GaussDerConv(3, 1.5, separable=separable, dtype=DTYPE)
    assert_gradients_are_slopes(*built(conv, *shape))


@pytest.mark.parametrize("sigma", [0.7, 4.0])
def test_second_derivatives(sigma):
    """A penalty on the gradient in the image has a gradient in the weights."""
    conv, x = built(GaussDerConv(2, sigma, activation="tanh", dtype=DTYPE), 9, 12, 2)
    assert_gradients_are_slopes(InputGradient(conv), x)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("options", list(LAYERS.values())[:4], ids=list(LAYERS)[:4])
def test_every_pixel_and_every_weight(options):
    """Not along a direction only: the layer is linear, so unit steps are exact."""
    conv, x = built(
        GaussDerConv(2, use_bias=False, dtype="float64", **options), 5, 4, 2
    )
    upstream = np.random.default_rng(2).normal(size=x.shape)
    x_bar, kernel_bar = gradients(conv, x, upstream)

    def totals(images):
        y = keras.ops.convert_to_numpy(conv(images)).reshape(-1, *x.shape)
        return np.sum(upstream * y, axis=(1, 2, 3, 4))

    units = np.eye(x.size).reshape(-1, *x.shape[1:])
    np.testing.assert_allclose(x_bar.ravel(), totals(units), atol=1e-11)
    for position in np.ndindex(kernel_bar.shape):
        unit = np.zeros(kernel_bar.shape)
        unit[position] = 1
        conv.kernel.assign(unit)
        assert kernel_bar[position] == pytest.approx(totals(x)[0], abs=1e-11)


def test_slopes_notice_a_wrong_gradient():
    class Wrong(keras.layers.Dense):
        def call(self, inputs):
            kernel = keras.ops.stop_gradient(self.kernel)
            return super().call(inputs) + keras.ops.matmul(inputs, kernel)

    with pytest.raises(AssertionError):
        assert_gradients_are_slopes(*built(Wrong(3, dtype=DTYPE), 4))
