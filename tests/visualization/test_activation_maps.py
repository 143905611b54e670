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
from keras_gdrn.models import gauss_der_resnet, with_input_shape, with_sigma0
from keras_gdrn.visualization import activation_maps
from tests import _reference
from tests._cases import cases
from tests.layers._contract import drawn, numpy, randomize

SIGMA0 = (0.5, 1.0, 2.0)
CLASSES = 3


def images(height=9, width=9, channels=2, count=4):
    return drawn(count, height, width, channels), np.arange(count) % CLASSES


def network(**options):
    options = {"spatial_selection": "max", "density": None, **options}
    model = gauss_der_resnet((9, 9, 2), CLASSES, [4, 4], 1.2, (1.0, 1.5), **options)
    randomize(model)
    return model


def last_convolution(shape=(None, None, 2), data_format="channels_last"):
    """A scale channel that consists of its last convolution."""
    image, options = keras.Input(shape), {"data_format": data_format}
    x = GaussDerConv(CLASSES, 1.5, name="head", **options)(image)
    channel = keras.Model(image, SpatialSelection("center", **options)(x))
    randomize(channel)
    return channel


def test_maps_of_one_layer_are_its_convolution():
    """Whatever the batches, and the form of the labels."""
    channel, (x, labels) = last_convolution(), images(11, 14)
    image = keras.Input((None, None, 2))
    model = keras.Model(image, ScaleChannels(channel, SIGMA0, density=None)(image))
    head, expected = channel.get_layer("head"), []
    for sigma in 1.5 * np.array(SIGMA0):
        of = head.get_weights()[0], head.indices
        y = _reference.jet_layer(x, *of, sigma, "zero") + numpy(head.bias)
        expected.append(y[np.arange(4), ..., labels])
    expected = np.stack(expected, axis=1)
    scale = np.abs(expected).max(axis=(0, 2, 3), keepdims=True)
    for same in (labels, labels[:, None], np.eye(CLASSES)[labels], list(labels)):
        found = activation_maps(model, x, same, SIGMA0, batch_size=3)
        assert found.shape == (4, 3, 11, 14) and found.dtype == np.float32
        np.testing.assert_allclose(found / scale, expected / scale, atol=2e-3)


@pytest.mark.parametrize(
    ("selection", "sigma0", "sizes"),
    cases(
        [
            ("max", (1.0, 1.5), (9, 9)),  # those of the model
            ("max", SIGMA0, (12, 10)),
            ("center", (1.0, 1.5), (9, 9)),
        ],
        [("max", (1.0, 1.5), (9, 9))],
    ),
)
def test_what_is_selected_is_the_score_of_each_scale_channel(selection, sigma0, sizes):
    model, (x, labels) = network(spatial_selection=selection), images(*sizes)
    found = activation_maps(model, x, labels, sigma0)
    assert found.shape == (4, len(sigma0), *sizes)
    found = found.max((2, 3)) if selection == "max" else found[:, :, 4, 4]
    like = with_input_shape(with_sigma0(model, sigma0), (*sizes, 2))
    expected = numpy(like.get_layer("scale_channels")(x))[np.arange(4), :, labels]
    assert len(np.unique(expected)) == expected.size
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.seen_on_tensorflow("models and labels are looked at by Python")
def test_layers_around_the_scale_channels_are_applied_or_left_out():
    channel, (x, labels) = last_convolution(), images(channels=1)
    image = keras.Input((9, 9, 1))
    y = keras.layers.Concatenate()([image, image])
    y = keras.layers.Rescaling(2.0, offset=0.5)(y)
    scored = keras.layers.Softmax()(channel.output)
    y = ScaleChannels(keras.Model(channel.input, scored), SIGMA0)(y)
    y = keras.layers.Dense(2)(ScalePooling()(y))
    expected = activation_maps(channel, np.repeat(2 * x + 0.5, 2, axis=-1), labels)
    found = activation_maps(keras.Model(image, y), x, labels)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.seen_on_tensorflow("models and labels are looked at by Python")
def test_the_model_may_share_its_layers():
    model, (x, labels) = network(), images()
    first = activation_maps(model, x, labels)
    wider = with_input_shape(model, (None, None, 2))
    np.testing.assert_allclose(activation_maps(wider, x, labels), first, rtol=1e-5)
    # A layer that was called a second time would have no one output.
    inner = model.get_layer("scale_channels").network.layers
    assert all(layer.output is not None for layer in [*model.layers, *inner])


def test_maps_in_bfloat16_are_returned_in_float32():
    keras.config.set_dtype_policy("mixed_bfloat16")
    found = activation_maps(network(), *images())
    assert found.dtype == np.float32 and np.all(np.isfinite(found))


@pytest.mark.seen_on_tensorflow("models and labels are looked at by Python")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((images()[0][0], [0]), r"`images` must .* shape \(9, 9, 2\)"),
        (images(channels=3), r"2 channels.* shape \(4, 9, 9, 3\)"),
        (images(count=0), "empty"),
        ((images()[0], [0] * 3), r"as many labels .* \(4, 9, 9, 2\) and \(3,\)"),
        ((images()[0], [0, 1, 2, 3]), r"the 3 classes .*\[3\b"),
        *(((*images(), sigma0), "`sigma0`") for sigma0 in ((), (1.0, -1.0), 1.0)),
    ],
)
def test_unfit_arguments(given, message):
    with pytest.raises(ValueError, match=message):
        activation_maps(last_convolution(), *given)


@pytest.mark.seen_on_tensorflow("models and labels are looked at by Python")
def test_models_of_another_kind():
    image, channel = keras.Input((9, 9, 2)), last_convolution()
    maps = keras.Model(channel.input, channel.get_layer("head").output)
    both = [ScaleChannels(channel, [scale])(image) for scale in SIGMA0[:2]]
    row = keras.Sequential([GaussDerConv(1, 1.0), keras.layers.Flatten()])
    flat = ScaleChannels(row, [1.0], density=None)(image)
    for model, message in (
        (maps, r"one `SpatialSelection`.* with 0"),
        (keras.Model(image, keras.layers.Add()(both)), "`ScaleChannels`.* with 2"),
        (keras.Model(), "must be a functional model .* of type Model"),
        (keras.Model(image, flat), "one `SpatialSelection`.* with 0"),
        (last_convolution((9, 9, 2), "channels_first"), "data_format='channels_first'"),
    ):
        with pytest.raises(ValueError, match=message):
            activation_maps(model, *images())
