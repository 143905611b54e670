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

pytestmark = pytest.mark.seen_on_tensorflow("arguments are looked at by Python")

CONVOLUTION = {"filters": 3, "sigma": 1.0}
CONVOLUTIONS = (GaussDerConv, GaussDerResidualBlock)
convolutions = pytest.mark.parametrize("layer", CONVOLUTIONS)
CHANNELS = {"network": GaussDerConv(3, 1.0), "sigma0": [1.0]}
VALID = dict.fromkeys(CONVOLUTIONS, CONVOLUTION) | {ScaleChannels: CHANNELS}


def refuses(message: str):
    return pytest.raises(ValueError, match=message)


def zeros(*shape: int):
    return np.zeros(shape, "float32")


# What is no number at all is tested with the checks.
REFUSED = [
    (CONVOLUTIONS, "sigma", (0, -0.5, math.nan, math.inf, True, "1", [1.0])),
    (CONVOLUTIONS, "filters", (0, -3, 2.5, "3", None, True)),
    (CONVOLUTIONS, "order", (0, 2.0, None, True)),
    (CONVOLUTIONS, "epsilon", (0, 1, 1.5, math.nan, True, None, "1e-3")),
    (CONVOLUTIONS, "boundary", ("same", "reflect", None, 0)),
    ((*CONVOLUTIONS, SpatialSelection), "data_format", ("NHWC", "channels", 1)),
    ((SpatialSelection, ScalePooling), "mode", ("mean", "Max", None)),
    ([ScalePooling], "dropout", (1, 1.5, -0.1, math.nan, "0.3", None)),
    ([ScaleChannels], "sigma0", ([], [0.0], [1.0, math.inf], 2.0, None, "12", [True])),
    ([ScaleChannels], "network", (None, "conv", GaussDerConv, math.sqrt)),
    ([ScaleChannels], "receptive_field", (0, -1.0, math.nan, math.inf, True, "wide")),
    ([ScaleChannels], "density", (0, -1.0, math.nan, math.inf, True, "fine")),
]


@pytest.mark.parametrize(("kinds", "argument", "values"), REFUSED)
def test_values_are_refused(kinds, argument, values):
    for layer in kinds:
        for value in values:
            received = re.escape(f"Received: {argument}={value!r}")
            with refuses(rf"`{argument}` must.*{received}"):
                layer(**{**VALID.get(layer, {}), argument: value})


@convolutions
def test_dtypes_are_refused(layer):
    for dtype in ("int32", "int8_from_float32"):
        with refuses(rf"floating point dtype\. Received: dtype='{dtype}'"):
            layer(**CONVOLUTION, dtype=dtype)


def test_quantization():
    """`Model.quantize` warns, and takes the dense layers alone."""
    image = keras.Input((8, 8, 3))
    block = GaussDerResidualBlock(4, 1.0)
    model = keras.Model(image, block(image))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.quantize("int8")
    assert any("GaussDerConv does not have a `quantize`" in str(w) for w in seen)
    assert block.projection.dtype_policy.name == "int8_from_float32"
    assert np.isfinite(model.predict(np.ones((2, 8, 8, 3)), verbose=0)).all()


NEITHER = "has no argument `{}`."
NEAR = NEITHER + r" Did you mean `{}`\?"
INSTEAD = "has no `{}`: .*{}.*"
KEYWORDS = [
    ([GaussDerConv], NEITHER, "nosuch", ""),
    ([GaussDerConv], NEAR, "sigmma", "sigma"),
    ([GaussDerResidualBlock], NEAR, "zero_orders", "zero_order"),
    ([ScaleChannels], NEAR, "sigma", "sigma0"),
    ([ScalePooling], NEAR, "drop_out", "dropout"),
    ([SpatialSelection], NEAR, "modes", "mode"),
    (CONVOLUTIONS, INSTEAD, "strides", "size of the input; twice the `sigma`"),
    (CONVOLUTIONS, INSTEAD, "kernel_size", "given by `sigma`"),
    (CONVOLUTIONS, INSTEAD, "padding", "`boundary`"),
    (CONVOLUTIONS, INSTEAD, "dilation_rate", "a larger `sigma`"),
    (CONVOLUTIONS, INSTEAD, "groups", "`separable=True`"),
    (CONVOLUTIONS, INSTEAD, "stride", "twice the `sigma` in all later layers"),
]


@pytest.mark.parametrize(("kinds", "message", "name", "hint"), KEYWORDS)
def test_keywords_of_no_layer_or_of_other_convolutions(kinds, message, name, hint):
    for layer in kinds:
        with refuses(message.format(name, hint) + rf" Received: {{'{name}': 2}}"):
            layer(**VALID.get(layer, {}), **{name: 2})


@pytest.mark.filterwarnings("ignore:Do not pass an `input_shape`")
def test_options_of_any_layer():
    options = {"name": "mine", "trainable": False, "dtype": "float32", "autocast": True}
    first = GaussDerConv(**CONVOLUTION, **options, input_shape=(8, 8, 3))
    assert keras.Sequential([first]).output_shape == (None, 8, 8, 3)


def test_numpy_numbers_are_numbers():
    layer = GaussDerConv(np.int64(3), np.float32(1.5), order=np.int32(2))
    assert (layer.filters, layer.sigma, layer.order) == (3, 1.5, 2)
    assert {type(layer.filters), type(layer.order)} == {int}
    assert type(layer.sigma) is float


# Inputs


@pytest.mark.parametrize("shape", [(1,), (1, 3), (1, 4, 4, 4, 4, 3)])
def test_rank(shape):
    received, spatial = re.escape(f"input_shape={shape}"), "one, two or three spatial"
    for layer in (*(kind(3, 1.0) for kind in CONVOLUTIONS), SpatialSelection()):
        with refuses(f"{spatial}.*{received}"):
            layer(zeros(*shape))
    if len(shape) < 3:
        with refuses(rf"\(batch, scale, …\).*{received}"):
            ScalePooling()(zeros(*shape))


@convolutions
def test_inputs_that_a_layer_does_not_take(layer):
    for shape, options, message in (
        ((8, 8, None), {}, r"channels must be known.*shape=\(None, 8, 8, None\)"),
        ((None, 8, 8), {"data_format": "channels_first"}, "channels must be known"),
        ((8, 8, 3), {"sigma": 9.0}, r"`sigma` must not exceed.*sigma=9 for an image"),
    ):
        with refuses(message):
            layer(**{**CONVOLUTION, **options})(keras.Input(shape))
    layer = layer(3, 9.0)
    layer.build((None, None, None, 3))
    with refuses("axis -1 of input shape to have value 3.*shape.*2"):
        layer(zeros(1, 8, 8, 2))
    with refuses(r"sigma=9 for an image of \(8, 8\)"):  # whose size comes later
        layer(zeros(1, 8, 8, 3))


# Scale channels


def around(*layers, size=16):
    """Layers between two convolutions of a scale channel."""
    x = image = keras.Input((size, size, 3))
    for layer in (GaussDerConv(3, 1.0), *layers, GaussDerConv(3, 2.0)):
        x = layer(x)
    return keras.Model(image, SpatialSelection()(x))


# Sizes of the image and of the maps that are convolved at twice the initial scale.
MAPS = {
    "conv": (8, 8, lambda: around(size=8)),
    "unbuilt": (8, 8, lambda: keras.Sequential([GaussDerResidualBlock(3, 2.0)])),
    "pooled": (16, 8, lambda: around(keras.layers.MaxPooling2D())),
}


@pytest.mark.parametrize("density", [1.0, None])
@pytest.mark.parametrize(("size", "maps", "network"), MAPS.values(), ids=MAPS)
def test_scales_beyond_the_maps_when_it_is_built(size, maps, network, density):
    image, network = keras.Input((size, size, 3)), network()
    density = None if maps < size else density  # pooled
    layer = ScaleChannels(network, [0.5, maps / 2 + 1], density)
    # Keras puts in front of it in which layer that was.
    origin = rf"layer '\w+' has 2, times sigma0={maps // 2 + 1}"
    received = rf"sigma={maps + 2} \({origin}\) for an image of \({maps}, {maps}\)"
    with refuses(rf"(?s){received}"):
        layer(image)
    assert ScaleChannels(network, [0.5, 1.0], density)(image).shape[1] == 2


@pytest.mark.parametrize("density", [1.0, None])
@pytest.mark.parametrize(
    "network",
    [
        lambda: around(size=8),
        lambda: keras.Sequential([GaussDerConv(3, 1.0)]),
        lambda: GaussDerConv(3, 1.0),
        lambda: GaussDerResidualBlock(3, 1.0),
    ],
)
def test_network_for_other_images(network, density):
    network = network()
    network(keras.Input((8, 8, 3)))
    for shape, expected in (
        ((8, 8, 1), "axis -1 of input shape to have value 3"),
        ((8, 3), "expected ndim=4, found ndim=3"),
    ):
        received = re.escape(str((None, *shape)))
        with refuses(rf"(?s){expected}.*shape.*{received}"):
            ScaleChannels(network, [1.0], density)(keras.Input(shape))


@pytest.mark.parametrize("density", [1.0, None])
@pytest.mark.parametrize("network", [keras.layers.Dense(3), SpatialSelection()])
def test_network_without_gaussian_derivatives(network, density):
    with refuses("it has no Gaussian derivative layer"):
        ScaleChannels(network, [1.0, 2.0], density)(keras.Input((8, 8, 3)))


def test_nested_scale_channels():
    layer = ScaleChannels(GaussDerConv(3, 1.0), (1.0,))
    for network in (layer, keras.Sequential([layer])):
        with refuses(r"nested.*sigma0=\(1.0, 2.0\)"):
            ScaleChannels(network, (1.0, 2.0))


def test_network_of_several_outputs():
    class Two(keras.layers.Layer):
        def call(self, inputs):
            return inputs, inputs

    image = keras.Input((8, 8, 3))
    maps = GaussDerConv(3, 1.0)(image)
    both = keras.Model(image, [maps, SpatialSelection()(maps)])
    with refuses("its layer 'functional.*' of type Functional has 2 outputs: concat"):
        ScaleChannels(both, [1.0, 2.0])(image)
    with refuses("its layer 'two' of type Two has 2 outputs"):
        ScaleChannels(Two(name="two"), [1.0, 2.0])(image)


def test_network_that_is_changed_once_it_is_built():
    network = keras.Sequential([GaussDerConv(3, 1.0), SpatialSelection()])
    layer = ScaleChannels(network, [1.0, 2.0])
    layer(zeros(1, 8, 8, 3))
    network.pop()
    with refuses("network='sequential.*', whose layers have changed"):
        layer(zeros(1, 8, 8, 3))
