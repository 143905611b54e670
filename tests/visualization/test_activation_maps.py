"""Activation maps: the last convolution's responses, whatever is around it."""

import keras
import numpy as np
import pytest

from keras_gdrn.layers import (
    GaussDerConv,
    ScaleChannels,
    ScalePooling,
    SpatialSelection,
)
from keras_gdrn.models import (
    gauss_der_resnet,
    scale_channel,
    with_input_shape,
    with_sigma0,
)
from keras_gdrn.visualization import activation_maps
from tests import _reference
from tests.layers._contract import numpy, randomize

SIGMA0 = (0.5, 1.0, 2.0)
CLASSES = 3


def images(height=9, width=9, channels=2, count=4):
    draw = np.random.default_rng(0).normal(size=(count, height, width, channels))
    return draw.astype("float32"), np.arange(count) % CLASSES


def network(shape=(9, 9, 2), sigma0=(1.0, 1.5), **options):
    model = gauss_der_resnet(
        shape,
        CLASSES,
        [4, 4],
        1.2,
        sigma0,
        **{"spatial_selection": "max", "tolerance": "exact"} | options,
    )
    randomize(model)
    return model


def scores(model, x, labels):
    """What `ScaleChannels` gives for the true class, `(image, scale)`."""
    channels = model.get_layer("scale_channels")
    return numpy(channels(x))[np.arange(len(x)), :, labels]


def last_convolution(activation=None):
    """A scale channel that consists of its last convolution."""
    image = keras.Input((None, None, 2))
    x = GaussDerConv(
        CLASSES, 1.5, activation=activation, data_format="channels_last", name="head"
    )(image)
    x = SpatialSelection("center", data_format="channels_last")(x)
    channel = keras.Model(image, x)
    randomize(channel)
    return channel


def test_maps_of_one_layer_are_its_convolution():
    channel, (x, labels) = last_convolution(), images(11, 14)
    found = activation_maps(channel, x, labels, SIGMA0)
    assert found.shape == (4, 3, 11, 14) and found.dtype == np.float32
    head = channel.get_layer("head")
    for index, sigma0 in enumerate(SIGMA0):
        expected = _reference.jet_layer(
            x, head.get_weights()[0], head.indices, 1.5 * sigma0, "zero"
        )
        expected = (expected + numpy(head.bias))[np.arange(4), ..., labels]
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found[:, index], expected, atol=2e-3 * scale)


@pytest.mark.parametrize("sigma0", [(1.0, 1.5), SIGMA0], ids=["the model's", "others"])
def test_their_maximum_is_the_score_of_each_scale_channel(sigma0):
    model, (x, labels) = network(), images()
    found = activation_maps(model, x, labels, sigma0)
    expected = scores(with_sigma0(model, sigma0), x, labels)
    assert len(np.unique(expected)) == expected.size
    np.testing.assert_allclose(found.max(axis=(2, 3)), expected, rtol=1e-5, atol=1e-6)


def test_their_center_is_the_score_under_central_selection():
    model, (x, labels) = network(spatial_selection="center"), images()
    found = activation_maps(model, x, labels, (1.0, 1.5))[:, :, 4, 4]
    np.testing.assert_allclose(found, scores(model, x, labels), rtol=1e-5, atol=1e-6)


def test_images_may_have_another_size():
    model, (x, labels) = network(), images(12, 10)
    found = activation_maps(model, x, labels, (1.0, 1.5))
    assert found.shape == (4, 2, 12, 10)
    expected = scores(with_input_shape(model, (12, 10, 2)), x, labels)
    np.testing.assert_allclose(found.max(axis=(2, 3)), expected, rtol=1e-5, atol=1e-6)


def test_batches_and_forms_of_labels_make_no_difference():
    channel, (x, labels) = last_convolution("relu"), images(count=5)
    expected = activation_maps(channel, x, labels)
    for same in (labels[:, None], np.eye(CLASSES)[labels], list(labels)):
        np.testing.assert_array_equal(activation_maps(channel, x, same), expected)
    found = activation_maps(channel, x, labels, batch_size=2)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_layers_around_the_scale_channels_are_applied_or_left_out():
    channel, (x, labels) = last_convolution(), images()
    image = keras.Input((9, 9, 1))
    y = keras.layers.Concatenate()([image, image])
    y = keras.layers.Rescaling(2.0, offset=0.5)(y)
    scored = keras.layers.Softmax()(channel.output)
    y = ScaleChannels(keras.Model(channel.input, scored), SIGMA0)(y)
    y = keras.layers.Dense(2)(ScalePooling()(y))
    x = x[..., :1]
    expected = activation_maps(channel, np.repeat(2 * x + 0.5, 2, axis=-1), labels)
    found = activation_maps(keras.Model(image, y), x, labels)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_model_stays_as_it_was_and_may_share_its_layers():
    model, (x, labels) = network(), images()
    before = model.get_weights()
    first = activation_maps(model, x, labels)
    wider = with_input_shape(model, (None, None, 2))
    np.testing.assert_allclose(activation_maps(wider, x, labels), first, rtol=1e-5)
    for weight, kept in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, kept)
    # A layer that was called a second time would have no one output.
    inner = model.get_layer("scale_channels").network.layers
    assert all(layer.output is not None for layer in [*model.layers, *inner])


def test_maps_in_bfloat16_are_returned_in_float32():
    keras.config.set_dtype_policy("mixed_bfloat16")
    found = activation_maps(network(), *images())
    assert found.dtype == np.float32 and np.all(np.isfinite(found))


@pytest.mark.seen_on_tensorflow("models and labels are looked at by Python")
class TestErrors:
    @pytest.mark.parametrize(
        ("x", "labels", "message"),
        [
            (images()[0][0], [0], r"`images` must .* shape \(9, 9, 2\)"),
            (images(channels=3)[0], [0] * 4, r"2 channels.* shape \(4, 9, 9, 3\)"),
            (images(count=0)[0], [], "empty"),
            (images()[0], [0] * 3, r"as many labels .* \(4, 9, 9, 2\) and \(3,\)"),
            (images()[0], [0, 1, 2, 3], r"the 3 classes .* \[3\]"),
        ],
    )
    def test_unusable_data(self, x, labels, message):
        with pytest.raises(ValueError, match=message):
            activation_maps(last_convolution(), x, labels)

    def test_scales_that_are_none(self):
        for sigma0 in ((), (1.0, -1.0), 1.0):
            with pytest.raises(ValueError, match="`sigma0`"):
                activation_maps(last_convolution(), *images(), sigma0)

    def test_model_without_spatial_selection(self):
        channel = scale_channel((9, 9, 2), CLASSES, [4], 1.2)
        maps = keras.Model(channel.input, channel.get_layer("head").output, name="maps")
        with pytest.raises(ValueError, match=r"one `SpatialSelection`.*'maps' with 0"):
            activation_maps(maps, *images())

    def test_model_with_two_sets_of_scale_channels(self):
        image = keras.Input((9, 9, 2))
        channel = last_convolution()
        both = [ScaleChannels(channel, [scale])(image) for scale in SIGMA0[:2]]
        model = keras.Model(image, keras.layers.Add()(both))
        with pytest.raises(ValueError, match=r"one `ScaleChannels`.* with 2"):
            activation_maps(model, *images())

    @pytest.mark.filterwarnings("ignore:`ScaleChannels` changes the scale")
    def test_models_without_a_graph(self):
        class Plain(keras.Model):
            def call(self, x):
                return x

        image = keras.Input((9, 9, 2))
        model = keras.Model(image, ScaleChannels(keras.layers.Flatten(), [1.0])(image))
        for unfit in (Plain(), model):
            with pytest.raises(ValueError, match=r"functional models\. Received: <"):
                activation_maps(unfit, *images())

    def test_model_of_another_data_format(self):
        image = keras.Input((9, 9, 2))
        x = GaussDerConv(9, 1.0, data_format="channels_first")(image)
        x = SpatialSelection("max", data_format="channels_first")(x)
        with pytest.raises(ValueError, match="data_format='channels_first'"):
            activation_maps(keras.Model(image, x), *images())
