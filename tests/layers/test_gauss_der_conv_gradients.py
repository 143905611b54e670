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


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="of JAX")
def test_forward_mode_and_second_derivatives():
    """As docs/how_a_layer_is_evaluated.md says: the one by a learned scale."""
    import jax

    fixed, x = built(GaussDerConv(3, 1.5, epsilon=1e-6, activation="tanh"), 6, 5, 2)
    learned = GaussDerConv(3, 1.5, activation="tanh", trainable_sigma=True)
    learned.build((None, 6, 5, 2))
    learned.set_weights([*fixed.get_weights(), *learned.get_weights()[2:]])
    x = x[:1].astype("float32")
    backward, forward = jax.jacrev(fixed)(x), jax.jacfwd(learned)(x)
    np.testing.assert_allclose(forward, backward, rtol=1e-3, atol=1e-5)

    def loss(layer):
        return lambda x: (layer(x) ** 2).sum()

    twice = jax.jacrev(jax.jacrev(loss(fixed)))(x)
    np.testing.assert_allclose(
        jax.hessian(loss(learned))(x), twice, rtol=1e-3, atol=1e-4
    )
    with pytest.raises(TypeError, match="forward-mode autodiff"):
        jax.jacfwd(fixed)(x)
