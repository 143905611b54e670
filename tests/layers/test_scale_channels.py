"""`ScaleChannels`: contract, and the network made at each scale as the reference."""

import h5py
import keras
import numpy as np
import pytest
from keras import layers

from keras_gdrn.layers import (
    GaussDerConv,
    GaussDerResidualBlock,
    ScaleChannels,
    SpatialSelection,
)
from tests._cases import cases
from tests._gradients import DTYPE, assert_gradients_are_slopes
from tests.layers._contract import (
    CONTRACT,
    Case,
    assert_arguments_of_any_layer,
    assert_near,
    drawn,
    each,
    numpy,
    randomize,
)

SHAPE = (20, 16, 3)
# Fine and coarse ones, which are evaluated differently, in any order.
SCALES = (1.0, 5.0, 0.6, 0.7, 2.7)
IMAGES = drawn(2, *SHAPE)


def convolution(scale=1.0):
    return GaussDerConv(4, 1.2 * scale, activation="tanh")


def functional(scale=1.0, shape=SHAPE):
    """With ordinary Keras layers inside, after the selection too."""
    image = keras.Input(shape)
    x = GaussDerConv(4, 1.0 * scale, name="stem")(image)
    x = layers.BatchNormalization()(x)
    x = layers.Dropout(0.3)(layers.LayerNormalization()(x))
    x = GaussDerResidualBlock(3, 1.3 * scale)(x)
    x = SpatialSelection("max")(x)
    return keras.Model(image, layers.Dense(5)(x))


def nested(scale=1.0, shape=SHAPE):
    """Functional models within a functional model."""
    image = keras.Input(shape)
    x = GaussDerConv(3, 0.8 * scale, activation="tanh")(image)
    return keras.Model(image, functional(scale, shape)(layers.Conv2D(3, 1)(x)))


def sequential(scale=1.0):
    convolutions = [GaussDerConv(3, 1.1**k * scale, activation="tanh") for k in (0, 1)]
    return keras.Sequential([*convolutions, SpatialSelection()])


class Twice(GaussDerConv):
    """A layer of one's own."""

    def call(self, inputs, sigma0=(1.0,)):
        return 2 * super().call(inputs, sigma0)


def own(scale=1.0):
    return Twice(4, 1.2 * scale)


def windowed():
    """Ends in central selection, with all other layers at each position."""
    image = keras.Input((None, None, 3))
    x = layers.BatchNormalization()(GaussDerConv(4, 1.0, name="stem")(image))
    x = GaussDerResidualBlock(3, 1.3)(layers.Dropout(0.3)(x))
    return keras.Model(image, SpatialSelection()(x))


NETWORKS = [convolution, nested, sequential, own]


def channels(network, **options):
    return lambda **kw: ScaleChannels(network(), (0.5, 2.7), **options, **kw)


BIASES = ("conv1/bias", "conv2/bias", "projection/bias", "stem/bias")
CASES = {
    "layer": Case(channels(convolution), SHAPE, 5 * 3 * 4 + 4),
    "as the paper": Case(channels(convolution, density=None), SHAPE, 5 * 3 * 4 + 4),
    "functional": Case(
        channels(lambda: functional(shape=(None, None, 3))),
        SHAPE,
        # convolution, both normalizations, block with projection, dense layer
        64 + 8 + 8 + (5 * 7 * 3 + 6 + 12) + (12 + 3 + 6) + 20,
        without_gradient=BIASES,
    ),
    "windows": Case(
        channels(windowed, density=1.5, receptive_field=2.0),
        SHAPE,
        64 + 8 + (5 * 7 * 3 + 6 + 12) + (12 + 3 + 6),
        without_gradient=BIASES,
    ),
}
# The network has a policy of its own.
CHECKS = [check for check in CONTRACT if check is not assert_arguments_of_any_layer]


@each(CASES, on_jax=("functional", "windows"), checks=CHECKS)
def test_contract(case, check):
    check(case)


def built(network, scales=SCALES):
    layer = ScaleChannels(network(), scales, density=None)
    layer.build((None, *SHAPE))
    randomize(layer)
    return layer


@pytest.mark.parametrize("network", cases(NETWORKS, [sequential]))
def test_channel_is_the_network_at_its_scale_with_its_weights(network):
    """And the network still works alone."""
    layer = built(network)
    y = numpy(layer(IMAGES))
    assert y.shape[:2] == (len(IMAGES), len(SCALES))
    for channel, scale in zip(np.moveaxis(y, 1, 0), SCALES, strict=True):
        alone = network(scale)
        alone(IMAGES)
        alone.set_weights(layer.get_weights())
        assert_near(channel, numpy(alone(IMAGES)), 1e-4)
        if scale == 1:
            assert_near(layer.network(IMAGES), channel, 1e-4)


@pytest.mark.parametrize("kind", ["pixels", "whole maps", "learned", "windows"])
def test_gradients_sum_over_the_channels(kind):
    keras.config.set_dtype_policy(DTYPE)
    options = {"activation": "tanh", "trainable_sigma": kind == "learned"}
    network = GaussDerConv(3, 1.2, **options)
    if kind == "windows":
        second = GaussDerConv(2, 1.5)
        network = keras.Sequential([network, second, SpatialSelection()])
    density = None if kind == "pixels" else 1.0
    layer = ScaleChannels(network, (0.5, 1.0, 2.7), density)
    layer.build((None, *SHAPE))
    randomize(layer)
    assert_gradients_are_slopes(layer, IMAGES)


class OwnDropout(layers.Dropout):
    def call(self, inputs, sigma0=(1.0,), training=None):
        return super().call(inputs, training=training)


def test_training_reaches_the_layers_inside():
    layer = ScaleChannels(OwnDropout(0.5), SCALES, density=None)
    x = np.ones((4, 100), "float32")
    np.testing.assert_array_equal(layer(x)[:, 0], x)
    dropped = numpy(layer(x, training=True)) == 0
    assert 0.4 < dropped.mean() < 0.6


def test_a_model_inside_is_in_the_mode_that_it_is_called_in():
    """Of dropout that always acts (Monte Carlo); the call outside may name a mode."""
    image, inside = keras.Input(SHAPE), keras.Input(SHAPE)
    base = keras.Model(inside, layers.Dropout(0.5)(convolution()(inside)))
    row = keras.Sequential([base, layers.Dropout(0.5)])
    for of in (base, row):
        for mode in (True, None):
            x = SpatialSelection()(of(image, training=mode))
            layer = ScaleChannels(keras.Model(image, x), SCALES)
            assert layer(keras.Input(SHAPE), training=False).shape[1] == len(SCALES)
            first, second = numpy(layer(IMAGES)), numpy(layer(IMAGES))
            assert np.array_equal(first, second) == (mode is None)


def test_output_dtype_is_that_of_the_network():
    keras.config.set_dtype_policy("mixed_float16")
    network = keras.Sequential([convolution(), SpatialSelection(dtype="float32")])
    layer = ScaleChannels(network, SCALES)
    assert layer(keras.Input(SHAPE)).dtype == "float32"
    assert keras.backend.standardize_dtype(layer(IMAGES).dtype) == "float32"


def test_summary_shows_the_layers_inside(capsys, tmp_path):
    network = keras.Sequential([GaussDerConv(3, 1.0, name="inside")])
    image = keras.Input((8, 8, 3))
    model = keras.Model(image, ScaleChannels(network, SCALES)(image))
    model.summary(expand_nested=True)
    assert "inside" in capsys.readouterr().out
    # Of them Keras saves the weights once, where they have always been.
    model.save_weights(tmp_path / "a.weights.h5")
    with h5py.File(tmp_path / "a.weights.h5") as file:
        assert list(file["layers/scale_channels"]) == ["network", "vars"]


@pytest.mark.seen_on_tensorflow("configurations are the same")
def test_a_network_of_another_evaluation_is_refused():
    config = ScaleChannels(convolution(), SCALES).get_config()
    del config["density"]
    for old in (config, {**config, "density": None, "subpixel": True}):
        with pytest.raises(ValueError, match="weights belong to another evaluation"):
            ScaleChannels.from_config(dict(old))


def test_one_network_in_several_scale_channels(tmp_path):
    """Is one network again when it is loaded, with its weights in the file once."""
    network = keras.Sequential([GaussDerConv(3, 1.0), SpatialSelection()])
    images = [keras.Input((8, 8, 3)) for _ in range(2)]
    pairs = zip(images, ([0.7, 1.0], [2.0]), strict=True)
    scores = [ScaleChannels(network, sigma0)(image) for image, sigma0 in pairs]
    model = keras.Model(images, scores)
    model.save(tmp_path / "shared.keras")
    loaded = keras.saving.load_model(tmp_path / "shared.keras")
    near, far = [x for x in loaded.layers if isinstance(x, ScaleChannels)]
    assert near.network is far.network
    assert near.network is not network
    x = [drawn(2, 8, 8, 3, seed=seed) for seed in range(2)]
    for actual, expected in zip(loaded(x), model(x), strict=True):
        np.testing.assert_allclose(
            keras.ops.convert_to_numpy(actual),
            keras.ops.convert_to_numpy(expected),
            rtol=1e-6,
        )
