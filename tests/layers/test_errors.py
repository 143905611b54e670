"""What the layers refuse: the message names the argument and the value received."""

import math
import re
import warnings

import keras
import numpy as np
import pytest

from keras_gdrn.layers import (
    GaussDerConv,
    GaussDerResidualBlock,
    ScaleChannels,
    ScalePooling,
    SpatialSelection,
)

convolutions = pytest.mark.parametrize("layer", [GaussDerConv, GaussDerResidualBlock])


def refuses(message: str):
    return pytest.raises(ValueError, match=message)


def assert_refused(layer, argument: str, value, **valid):
    with refuses(rf"`{argument}` must.*Received: {argument}={re.escape(repr(value))}"):
        layer(**{**valid, argument: value})


def zeros(*shape: int):
    return np.zeros(shape, "float32")


# Arguments of the convolutions

CONVOLUTION = {"filters": 3, "sigma": 1.0}


@convolutions
@pytest.mark.parametrize(
    "sigma", [0, -0.5, math.nan, math.inf, -math.inf, True, "1", None, [1.0]]
)
def test_sigma(layer, sigma):
    assert_refused(layer, "sigma", sigma, **CONVOLUTION)


@convolutions
@pytest.mark.parametrize("value", [0, -3, 2.0, 2.5, "3", None, True])
@pytest.mark.parametrize("argument", ["filters", "order"])
def test_counts(layer, argument, value):
    assert_refused(layer, argument, value, **CONVOLUTION)


@convolutions
@pytest.mark.parametrize("epsilon", [0, 1, 1.5, -1e-3, math.nan, True, None, "1e-3"])
def test_epsilon(layer, epsilon):
    assert_refused(layer, "epsilon", epsilon, **CONVOLUTION)


@convolutions
@pytest.mark.parametrize("boundary", ["same", "reflect", None, 0])
def test_boundary(layer, boundary):
    assert_refused(layer, "boundary", boundary, **CONVOLUTION)


@pytest.mark.parametrize(
    "layer", [GaussDerConv, GaussDerResidualBlock, SpatialSelection]
)
@pytest.mark.parametrize("data_format", ["NHWC", "channels", 1])
def test_data_format(layer, data_format):
    valid = {} if layer is SpatialSelection else CONVOLUTION
    assert_refused(layer, "data_format", data_format, **valid)


@convolutions
@pytest.mark.parametrize("dtype", ["int32", "int8_from_float32"])
def test_dtype(layer, dtype):
    with refuses(rf"floating point dtype\. Received: dtype='{dtype}'"):
        layer(**CONVOLUTION, dtype=dtype)


def test_quantization():
    x = image = keras.Input((8, 8, 3))
    x = GaussDerConv(**CONVOLUTION, name="first")(x)
    model = keras.Model(image, keras.layers.Dense(2)(x))
    with pytest.raises(NotImplementedError, match=r"'first' stays .* mode='int8'"):
        model.get_layer("first").quantize("int8")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model.quantize("int8")
    assert any("`GaussDerConv` cannot be" in str(w.message) for w in warned)
    assert model.layers[-1].kernel.dtype == "int8"  # the others are
    assert model(zeros(1, 8, 8, 3)).shape == (1, 8, 8, 2)


@pytest.mark.parametrize(
    ("layer", "options", "near"),
    [
        (GaussDerConv, {**CONVOLUTION, "nosuch": 2}, None),
        (GaussDerConv, {**CONVOLUTION, "sigmma": 2}, "sigma"),
        (GaussDerResidualBlock, {**CONVOLUTION, "zero_orders": 2}, "zero_order"),
        (ScaleChannels, {"network": None, "sigma0": [1.0], "sigma": 2}, "sigma0"),
        (ScalePooling, {"rate": 2}, None),
        (ScalePooling, {"drop_out": 2}, "dropout"),
        (SpatialSelection, {"modes": 2}, "mode"),
    ],
)
def test_unknown_option(layer, options, near):
    *_, name = options
    hint = rf"\. Did you mean `{near}`\?" if near else r"\."
    with refuses(rf"has no argument `{name}`{hint} Received: \{{'{name}': 2\}}"):
        layer(**options)


@pytest.mark.filterwarnings("ignore:Do not pass an `input_shape`")
def test_options_of_any_layer():
    options = {"name": "mine", "trainable": False, "dtype": "float32", "autocast": True}
    first = GaussDerConv(**CONVOLUTION, **options, input_shape=(8, 8, 3))
    assert keras.Sequential([first]).output_shape == (None, 8, 8, 3)


@convolutions
@pytest.mark.parametrize(
    ("option", "instead"),
    [
        (
            {"strides": 2},
            "size of the input; to subsample, put a pooling layer",
        ),
        ({"kernel_size": 3}, "given by `sigma`"),
        ({"padding": "same"}, "`boundary`"),
        ({"dilation_rate": 2}, "a larger `sigma`"),
        ({"groups": 4}, "`separable=True`"),
        ({"stride": 2}, "to subsample, put a pooling layer"),
    ],
)
def test_options_of_other_convolutions(layer, option, instead):
    with refuses(rf"has no `{next(iter(option))}`: .*{instead}.*{option}"):
        layer(**CONVOLUTION, **option)


@convolutions
def test_unknown_activation(layer):
    with refuses("nosuch"):
        layer(**CONVOLUTION, activation="nosuch")


def test_numpy_numbers_are_numbers():
    layer = GaussDerConv(np.int64(3), np.float32(1.5), order=np.int32(2))
    assert (layer.filters, layer.sigma, layer.order) == (3, 1.5, 2)
    assert {type(layer.filters), type(layer.order)} == {int}
    assert type(layer.sigma) is float


# Inputs of the convolutions


@pytest.mark.parametrize(
    "layer",
    [
        *(lambda k=k: k(3, 1.0) for k in (GaussDerConv, GaussDerResidualBlock)),
        SpatialSelection,
    ],
)
@pytest.mark.parametrize("shape", [(1,), (1, 3), (1, 4, 4, 4, 4, 3)])
def test_rank(layer, shape):
    with refuses(rf"one, two or three spatial.*input_shape={re.escape(str(shape))}"):
        layer()(zeros(*shape))


@convolutions
def test_unknown_channels(layer):
    with refuses(r"channels must be known.*input_shape=\(None, 8, 8, None\)"):
        layer(3, 1.0)(keras.Input((8, 8, None)))
    with refuses("channels must be known"):
        layer(3, 1.0, data_format="channels_first")(keras.Input((None, 8, 8)))


def test_other_channels_than_built_for():
    layer = GaussDerConv(3, 1.0)
    layer.build((None, 8, 8, 3))
    with refuses("axis -1 of input shape to have value 3.*shape.*2"):
        layer(zeros(1, 8, 8, 2))


@convolutions
def test_sigma_beyond_the_image(layer):
    with refuses(r"`sigma` must not exceed.*sigma=9 for an image of \(8, 8\)"):
        layer(3, 9.0)(keras.Input((8, 8, 3)))
    # Along one axis it may.
    assert layer(3, 9.0)(keras.Input((8, 10, 3))).shape == (None, 8, 10, 3)


def test_sigma_beyond_an_image_that_comes_later():
    layer = GaussDerConv(3, 9.0)
    layer(keras.Input((None, None, 3)))
    with refuses(r"sigma=9 for an image of \(8, 8\)"):
        layer(zeros(1, 8, 8, 3))


def test_scaled_sigma_beyond_the_image():
    layer = ScaleChannels(GaussDerConv(3, 2.0), [1.0, 8.0])
    with refuses(r"sigma=16 for an image of \(8, 8\)"):
        layer(zeros(1, 8, 8, 3))


def test_image_without_pixels():
    with refuses("`size` must be >= 1. Received: size=0"):
        GaussDerConv(3, 1.0)(zeros(1, 0, 8, 3))


# The other layers


@pytest.mark.parametrize("layer", [SpatialSelection, ScalePooling])
@pytest.mark.parametrize("mode", ["mean", "Max", None])
def test_mode(layer, mode):
    assert_refused(layer, "mode", mode)


@pytest.mark.parametrize("dropout", [1, 1.5, -0.1, math.nan, "0.3", None])
def test_dropout(dropout):
    assert_refused(ScalePooling, "dropout", dropout)


@pytest.mark.parametrize("shape", [(3,), (3, 10)])
def test_pooling_needs_scales(shape):
    with refuses(rf"\(batch, scale, …\).*input_shape={re.escape(str(shape))}"):
        ScalePooling()(zeros(*shape))


@pytest.mark.parametrize(
    "sigma0",
    [[], (), [0.0], [1.0, -1.0], [math.nan], [1.0, math.inf], 2.0, None, "12", [True]],
)
def test_sigma0(sigma0):
    assert_refused(ScaleChannels, "sigma0", sigma0, network=GaussDerConv(3, 1.0))


@pytest.mark.parametrize("network", [None, "conv", GaussDerConv, lambda x: x])
def test_network(network):
    assert_refused(ScaleChannels, "network", network, sigma0=[1.0])


def channel(size=8, sigma=2.0, **options):
    image = keras.Input((size, size, 3))
    x = GaussDerConv(3, 1.0, **options)(image)
    return keras.Model(image, SpatialSelection()(GaussDerConv(3, sigma)(x)))


@pytest.mark.parametrize("receptive_field", ["auto", None])
def test_scales_beyond_the_image_when_it_is_built(receptive_field):
    layer = ScaleChannels(channel(), [1.0, 8.0], receptive_field)
    with refuses(r"sigma=16 for an image of \(8, 8\)"):
        layer(keras.Input((8, 8, 3)))
    block = keras.Sequential([GaussDerResidualBlock(3, 2.0), SpatialSelection()])
    block.build((None, 8, 8, 3))
    with refuses(r"sigma=18 for an image of \(8, 8\)"):
        ScaleChannels(block, [9.0], receptive_field)(keras.Input((8, 8, 3)))


class Halves(keras.layers.Layer):
    """A layer of one's own, which convolves every other row and column."""

    def build(self, input_shape):
        self.convolution = GaussDerConv(3, 2.0)
        self.convolution.build(input_shape)

    def call(self, inputs):
        return self.convolution(inputs[:, ::2, ::2])


def around(layer):
    image = keras.Input((16, 16, 3))
    x = layer(GaussDerConv(3, 1.0)(image))
    return keras.Model(image, SpatialSelection()(GaussDerConv(3, 2.0)(x)))


@pytest.mark.parametrize(
    ("layer", "size"),
    [
        (lambda: keras.layers.MaxPooling2D(), 8),
        (lambda: keras.layers.AveragePooling2D(2), 8),
        (lambda: keras.layers.Conv2D(3, 3, padding="same"), 16),
        (Halves, 8),
    ],
)
def test_scales_beyond_the_maps_of_any_network_when_it_is_built(layer, size):
    image = keras.Input((16, 16, 3))
    assert ScaleChannels(around(layer()), [0.5, 1.0])(image).shape == (None, 2, 3)
    sigma0 = size / 2 + 1
    message = rf"^Exc.*sigma={size + 2} for an image of \({size}, {size}\)"
    with pytest.raises(ValueError, match=f"(?s){message}"):
        ScaleChannels(around(layer()), [1.0, sigma0])(image)


def test_scales_beyond_the_maps_of_a_layer_of_ones_own():
    with refuses(r"sigma=20 for an image of \(16, 16\)"):
        ScaleChannels(Halves(), [1.0, 10.0])(keras.Input((16, 16, 3)))


@pytest.mark.parametrize("receptive_field", ["auto", None])
@pytest.mark.parametrize("shape", [(8, 8, 1), (8, 3)])
@pytest.mark.parametrize(
    ("network", "known"),
    [
        (channel, "8, 8, 3"),
        (lambda: keras.Sequential([GaussDerConv(3, 1.0)]), "8, 8, 3"),
        (lambda: GaussDerConv(3, 1.0), "None, None, 3"),
        (lambda: GaussDerResidualBlock(3, 1.0), "None, None, 3"),
    ],
)
def test_network_for_other_images(network, known, shape, receptive_field):
    network = network()
    network(keras.Input((8, 8, 3)))
    received = re.escape(str((None, *shape)))
    with refuses(rf"built for .*\(None, {known}\).*input_shape={received}"):
        ScaleChannels(network, [1.0], receptive_field)(keras.Input(shape))


@pytest.mark.parametrize("network", [lambda: keras.layers.Dense(3), SpatialSelection])
def test_network_without_gaussian_derivatives(network):
    with pytest.warns(UserWarning, match="of Gaussian derivative layers, and .* none"):
        ScaleChannels(network(), [1.0, 2.0])(keras.Input((8, 8, 3)))


@pytest.mark.parametrize(("inner", "outer"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_nested_scale_channels(inner, outer):
    scales = {1: [1.0], 2: [1.0, 2.0]}
    layer = ScaleChannels(GaussDerConv(3, 1.0), scales[inner])
    for network in (layer, keras.Sequential([layer])):
        with refuses(rf"nested.*sigma0={re.escape(str(tuple(scales[outer])))}"):
            ScaleChannels(network, scales[outer])
