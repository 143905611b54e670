"""The scale reaches the layers however they are called, or this is refused."""

import functools

import keras
import numpy as np
import pytest

from keras_gdrn.layers import (
    GaussDerConv,
    GaussDerResidualBlock,
    ScaleChannels,
    SpatialSelection,
)
from keras_gdrn.models import with_sigma0
from tests._cases import cases
from tests._gradients import gradients
from tests.layers._contract import numpy

SHAPE, SCALES = (16, 16, 1), (1.0, 2.0)
BACKEND = keras.backend.backend()


def channel(mode=None, selection="center", inner=()):
    keras.utils.set_random_seed(0)
    names = ["conv", "block", "select"]
    scope = {"mode": mode, "layer_names": names} if mode else {"mode": None}
    with keras.RematScope(**scope):
        x = image = keras.Input(SHAPE)
        x = GaussDerConv(3, 1.0, activation="tanh", name="conv")(x)
        x = GaussDerResidualBlock(3, 1.3, name="block")(x)
        for layer in inner:
            x = layer(x)
        x = SpatialSelection(selection, name="select")(x)
    return keras.Model(image, x)


@pytest.mark.skipif(BACKEND == "torch", reason="no rematerialization there")
@pytest.mark.parametrize(
    ("kind", "scales"),
    cases(
        [("windows", SCALES), ("whole maps", (2.0,)), ("folded", SCALES)],
        [("windows", SCALES)],
    ),
)
def test_rematerialized_layers_have_the_same_gradients(kind, scales):
    """They are called again when the scope of `ScaleChannels` has been left."""
    inner = [keras.layers.Conv2D(3, 3, padding="same")] if kind == "folded" else []
    images = np.random.default_rng(0).random((2, *SHAPE), dtype="float32")
    found = []
    for mode in (None, "list_of_layers"):
        selection = "center" if kind == "windows" else "max"
        layer = ScaleChannels(channel(mode, selection, inner), scales)
        y = numpy(layer(images))
        found.append([y, *gradients(layer, images, np.ones(y.shape))])
    for plain, again in zip(*found, strict=True):
        np.testing.assert_allclose(again, plain, rtol=1e-4, atol=1e-5)


class Compiled(GaussDerConv):
    """What a user may write for speed."""

    @functools.cached_property
    def function(self):
        if BACKEND == "tensorflow":
            import tensorflow as tf

            return tf.function(super().call)
        import jax

        return jax.jit(super().call)

    def call(self, inputs):
        return self.function(inputs)


@pytest.mark.skipif(BACKEND == "torch", reason="nothing is compiled there")
def test_a_layer_in_a_compiled_function_of_its_own_is_refused():
    """It would keep the scales of its first call."""
    network = keras.Sequential([Compiled(3, 1.5), SpatialSelection()])
    with pytest.raises(ValueError, match=r"compiled.*sigma0=\(1.0, 2.0\)"):
        ScaleChannels(network, SCALES)(keras.Input(SHAPE))
    # Alone, or in a model that is compiled as a whole, there is nothing to mix up.
    images = np.ones((2, *SHAPE), "float32")
    assert Compiled(3, 1.5)(images).shape == (2, 16, 16, 3)


@pytest.mark.skipif(BACKEND == "torch", reason="nothing is compiled there")
def test_a_compiled_model_has_the_scales_that_it_is_given():
    image = keras.Input(SHAPE)
    model = keras.Model(image, ScaleChannels(channel(), SCALES)(image))
    images = np.random.default_rng(0).random((2, *SHAPE), dtype="float32")
    for scales in (SCALES, (2.0, 4.0)):
        other = with_sigma0(model, scales)
        expected = numpy(other(images))
        actual = other.predict(images, verbose=0)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
