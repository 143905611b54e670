"""Gradients of `GaussDerConv` against differences, its own gradient's most of all."""

import keras
import numpy as np
import pytest
from hypothesis import given

from keras_gdrn.layers import GaussDerConv
from tests._cases import cases
from tests._drawn import cases as drawn_cases
from tests._drawn import examples
from tests._gradients import DTYPE, InputGradient, assert_gradients_are_slopes
from tests.layers._contract import randomize

LAYERS = {
    "fine": {"sigma": 0.7},
    "order 3, zero order": {"sigma": 1.0, "order": 3, "zero_order": True},
    "mirror": {"sigma": 3.0, "boundary": "symmetric"},
    "coarse": {"sigma": 4.0},
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


@pytest.mark.parametrize("name", cases(LAYERS, [*LAYERS][4:]))
def test_two_dimensions(name):
    conv = GaussDerConv(3, activation="tanh", dtype=DTYPE, **LAYERS[name])
    assert_gradients_are_slopes(*built(conv, 8, 12, 2))


@pytest.mark.usefixtures("float64")
@examples(15)
@given(drawn_cases(dtypes=("float64",)))
def test_any_layer(case):
    if case.options["sigma"] <= max(case.sizes):
        layer = GaussDerConv(**case.options)
        layer.build(case.shape())
        # Zero along an axis of one pixel, where nothing can be differentiated.
        assert_gradients_are_slopes(layer, case.images(), idle=-1.0)


@pytest.mark.parametrize("sigma", [0.7, 4.0])
def test_second_derivatives(sigma):
    """A penalty on the gradient in the image has a gradient in the weights."""
    conv, x = built(GaussDerConv(2, sigma, activation="tanh", dtype=DTYPE), 9, 12, 2)
    assert_gradients_are_slopes(InputGradient(conv), x)


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
    backward = jax.jit(jax.jacrev(fixed))(x)
    forward = jax.jit(jax.jacfwd(learned))(x)
    np.testing.assert_allclose(forward, backward, rtol=1e-3, atol=1e-5)

    def loss(layer):
        return lambda x: (layer(x) ** 2).sum()

    twice = jax.jit(jax.jacrev(jax.jacrev(loss(fixed))))(x)
    hessian = jax.jit(jax.hessian(loss(learned)))(x)
    np.testing.assert_allclose(hessian, twice, rtol=1e-3, atol=1e-4)
    with pytest.raises(TypeError, match="forward-mode autodiff"):
        jax.jacfwd(fixed)(x)
