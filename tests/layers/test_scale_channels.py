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
from keras_gdrn.layers._scale_scope import current_scales
from tests._cases import cases
from tests._gradients import DTYPE, assert_gradients_are_slopes
from tests.layers._contract import (
    CONTRACT,
    Case,
    assert_dtype_argument,
    each,
    numpy,
    randomize,
)

SHAPE = (12, 9, 3)
SCALES = (0.5, 1.0, 2.7)


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


def windowed():
    """Ends in central selection, with all other layers at each position."""
    image = keras.Input((None, None, 3))
    x = layers.BatchNormalization()(GaussDerConv(4, 1.0, name="stem")(image))
    x = GaussDerResidualBlock(3, 1.3)(layers.Dropout(0.3)(x))
    return keras.Model(image, SpatialSelection()(x))


NETWORKS = [convolution, functional, nested, sequential]


def channels(network, scales=SCALES):
    return lambda **kwargs: ScaleChannels(network(), scales, **kwargs)


CASES = {
    "layer": Case(channels(convolution), SHAPE, 5 * 3 * 4 + 4, (None, None, 3)),
    "functional": Case(
        lambda **kwargs: ScaleChannels(
            functional(shape=(None, None, 3)), SCALES, **kwargs
        ),
        SHAPE,
        # convolution, both normalizations, block with projection, dense layer
        64 + 8 + 8 + (5 * 7 * 3 + 6 + 12) + (12 + 3 + 6) + 20,
        (None, None, 3),
        ("conv1/bias", "conv2/bias", "projection/bias", "stem/bias"),
    ),
    "sequential": Case(channels(sequential, [1.0]), SHAPE, 48 * 2, (None, None, 3)),
    "windows": Case(
        lambda **kwargs: ScaleChannels(windowed(), SCALES, 1.5, **kwargs),
        SHAPE,
        64 + 8 + (5 * 7 * 3 + 6 + 12) + (12 + 3 + 6),
        (None, None, 3),
        ("conv1/bias", "conv2/bias", "projection/bias", "stem/bias"),
    ),
}
# The network has a policy of its own.
CHECKS = [check for check in CONTRACT if check is not assert_dtype_argument]


@each(CASES, on_jax=("functional", "windows"), checks=CHECKS)
def test_contract(case, check):
    check(case)


def images(batch=2):
    return np.random.default_rng(0).normal(size=(batch, *SHAPE)).astype("float32")


def built(network, scales=SCALES, **kwargs):
    # Whole maps; windows have tests of their own.
    layer = ScaleChannels(network(), scales, receptive_field=None, **kwargs)
    layer.build((None, *SHAPE))
    randomize(layer)
    return layer


def assert_channels(layer, network, scales, tolerance=1e-4):
    """Each scale channel is the network made at that scale, with the same weights."""
    x = images()
    y = numpy(layer(x))
    assert y.shape[:2] == (len(x), len(scales))
    for channel, scale in enumerate(scales):
        alone = network(scale)
        expected = alone(x)
        alone.set_weights(layer.get_weights())
        expected = numpy(alone(x))
        atol = tolerance * np.abs(expected).max()
        np.testing.assert_allclose(y[:, channel], expected, rtol=0, atol=atol)


@pytest.mark.parametrize("network", cases(NETWORKS, [sequential]))
def test_channel_is_the_network_at_its_scale_with_its_weights(network):
    layer, alone = built(network), network()
    assert_channels(layer, network, SCALES)
    alone(images())
    assert [w.shape for w in layer.weights] == [w.shape for w in alone.weights]
    assert len({id(w) for w in layer.weights}) == len(layer.weights)


@pytest.mark.parametrize(
    "scales", cases([[2.0], [2.0, 0.5], np.geomspace(6, 0.3, 7)], [[2.0, 0.5]])
)
def test_any_number_of_channels_in_any_order(scales):
    assert_channels(built(convolution, scales), convolution, scales)


def test_channel_assertion_notices_an_ignored_scale():
    def deaf(scale=1.0):
        return GaussDerConv(4, 1.2, activation="tanh")

    with pytest.raises(AssertionError):
        assert_channels(built(convolution), deaf, SCALES)


def test_without_selection_maps_come_out_at_every_scale():
    layer = built(convolution)
    assert layer(images()).shape == (2, 3, 12, 9, 4)
    assert layer(keras.Input(SHAPE)).shape == (None, 3, 12, 9, 4)


def test_changing_one_weight_changes_every_channel():
    layer = built(convolution)
    before = numpy(layer(images()))
    layer.network.kernel.assign(0.5 * layer.network.kernel)
    moved = np.abs(numpy(layer(images())) - before)
    assert np.all(moved.max(axis=(0, 2, 3, 4)) > 1e-2)


@pytest.mark.seen_on_tensorflow("weights are shared by Python")
def test_two_layers_share_one_network_that_still_works_alone():
    network = functional()
    few, many = ScaleChannels(network, [1.0]), ScaleChannels(network, SCALES)
    few.build((None, *SHAPE))
    randomize(few)
    wide, y, alone = (numpy(layer(images())) for layer in (many, few, network))
    np.testing.assert_allclose(y[:, 0], wide[:, 1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(alone, y[:, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("trainable_sigma", cases([False, True], [False]))
def test_gradients_sum_over_the_channels(trainable_sigma):
    keras.config.set_dtype_policy(DTYPE)
    options = {"activation": "tanh", "trainable_sigma": trainable_sigma}
    layer = built(lambda: GaussDerConv(3, 1.2, **options))
    assert_gradients_are_slopes(layer, images())


def test_batch_statistics_are_taken_over_all_channels():
    normalization = layers.BatchNormalization(momentum=0.0)
    layer = built(lambda: keras.Sequential([convolution(), normalization]))
    x = images()
    maps = [numpy(_alone(layer, scale)(x)) for scale in SCALES]
    layer(x, training=True)
    expected = np.mean(maps, axis=(0, 1, 2, 3))
    np.testing.assert_allclose(normalization.moving_mean, expected, atol=1e-5)


def _alone(layer, scale):
    conv = convolution(scale)
    conv.build((None, *SHAPE))
    conv.set_weights(layer.network.layers[0].get_weights())
    return conv


@pytest.mark.filterwarnings("ignore:`ScaleChannels` changes the scale")
def test_training_reaches_the_layers_inside():
    layer = ScaleChannels(layers.Dropout(0.5), SCALES)
    x = np.ones((4, 100), "float32")
    np.testing.assert_array_equal(layer(x)[:, 0], x)
    dropped = numpy(layer(x, training=True)) == 0
    assert 0.4 < dropped.mean() < 0.6
    assert np.any(dropped[:, 0] != dropped[:, 1])


def test_output_dtype_is_that_of_the_network():
    keras.config.set_dtype_policy("mixed_float16")
    network = keras.Sequential([convolution(), SpatialSelection(dtype="float32")])
    layer = ScaleChannels(network, SCALES)
    assert layer(keras.Input(SHAPE)).dtype == "float32"
    assert keras.backend.standardize_dtype(layer(images()).dtype) == "float32"


@pytest.mark.parametrize(
    ("shape", "data_format"),
    cases(
        [((9, 3), None), ((5, 4, 6, 3), None), ((3, 8, 6), "channels_first")],
        [((9, 3), None)],
    ),
)
def test_no_images_have_no_scores(shape, data_format):
    options = {"data_format": data_format}
    image = keras.Input(shape)
    x = GaussDerResidualBlock(4, 1.0, separable=True, **options)(image)
    network = keras.Model(image, SpatialSelection(**options)(x))
    layer = ScaleChannels(network, [0.5, 1.0])
    assert layer(np.zeros((0, *shape), "float32")).shape == (0, 2, 4)


def test_layers_outside_are_at_scale_one_also_after_an_error():
    assert current_scales() == (1.0,)
    with pytest.raises(ValueError, match="`sigma`"):
        built(convolution, [1.0, 99.0])
    assert current_scales() == (1.0,)
    layer = built(convolution, [1.0, 2.0])
    with pytest.raises(ValueError, match="`sigma`"):
        layer(images()[:, :1, :1])
    assert current_scales() == (1.0,)


def test_network_may_be_a_custom_layer(tmp_path):
    @keras.saving.register_keras_serializable(package="tests")
    class Twice(GaussDerConv):
        def call(self, inputs):
            return 2 * super().call(inputs)

    image = keras.Input(SHAPE)
    model = keras.Model(image, ScaleChannels(Twice(2, 1.0), SCALES)(image))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(numpy(loaded(images())), numpy(model(images())))


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
