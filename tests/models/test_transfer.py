"""The same weights at other scales, on other sizes, of other classes, up to a layer."""

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
    feature_extractor,
    gauss_der_resnet,
    only_layer,
    with_input_shape,
    with_sigma0,
)
from tests._cases import cases
from tests.layers._contract import numpy, randomize

SHAPE, SCALES = (12, 10, 3), (0.5, 1.0)
OPTIONS = {"input_shape": SHAPE, "classes": 5, "widths": (4, 6), "ratio": 1.2}

of_graphs = pytest.mark.seen_on_tensorflow("a copy is made of what Keras describes")


@pytest.fixture
def model():
    model = gauss_der_resnet(**OPTIONS, sigma0=SCALES, scale_dropout=0.2, name="mine")
    randomize(model)
    return model


def images(*shape: int):
    return np.random.default_rng(0).normal(size=(2, *shape)).astype("float32")


def assert_same_weights(model, other):
    """Not equal ones: the very same."""
    assert [id(w) for w in model.weights] == [id(w) for w in other.weights]


def assert_is_the_network(model, x, **options):
    """The network built anew with the options, given the model's weights."""
    built = {**OPTIONS, "sigma0": SCALES, "input_shape": x.shape[1:], **options}
    expected = gauss_der_resnet(**built)
    expected.set_weights(model.get_weights())
    actual = numpy(model(x))
    np.testing.assert_allclose(actual, numpy(expected(x)), rtol=1e-5, atol=1e-6)


DENSE = [0.3, 0.5, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("sigma0", cases([[1.0], DENSE], [[1.0]]))
def test_other_scales(model, sigma0):
    denser = with_sigma0(model, sigma0)
    assert_same_weights(model, denser)
    assert_is_the_network(denser, images(*SHAPE), sigma0=sigma0)
    assert denser.name == "mine"


@pytest.mark.parametrize("size", cases([(16, 9), (7, 8), (None, None)], [(16, 9)]))
def test_other_size(model, size):
    other = with_input_shape(model, (*size, 3))
    assert_same_weights(model, other)
    assert other.input_shape == (None, *size, 3)
    assert model.input_shape == (None, *SHAPE)  # is left as it was
    x = images(*(SHAPE if None in size else (*size, 3)))
    assert_is_the_network(other, x)
    if None in size:  # in a graph they are unknown
        expected = numpy(model(x))
        found = other.predict(x, verbose=0)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert other.name == "mine"
    channel = other.get_layer("scale_channels").network
    assert channel.name == "scale_channel"
    assert channel.input_shape == other.input_shape


@of_graphs
@pytest.mark.parametrize("extent", ["auto", None, 2.0])
def test_options_and_policies_are_kept(extent):
    """Also that the scores are float32 under a mixed policy."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    options = {"scale_dropout": 0.2, "receptive_field": extent, "subpixel": True}
    model = gauss_der_resnet(**OPTIONS, sigma0=SCALES, **options)
    keras.config.set_dtype_policy("float32")
    changed = (with_sigma0(model, [1.0, 2.0]), with_input_shape(model, (16, 16, 3)))
    for each in (model, *changed):
        pooling, channels = map(each.get_layer, ("scale_pooling", "scale_channels"))
        assert (pooling.dropout, pooling.compute_dtype) == (0.2, "float32")
        assert (channels.receptive_field, channels.subpixel) == (extent, True)
        assert channels.compute_dtype == "bfloat16"
        assert channels.network.get_layer("head").compute_dtype == "bfloat16"
        assert each.output.dtype == "float32"


@of_graphs
def test_whole_maps_are_one_argument_away(model):
    """In inference, of a network that was trained on windows."""
    whole = with_sigma0(model, SCALES, receptive_field=None)
    assert_same_weights(model, whole)
    assert only_layer(whole, ScaleChannels).receptive_field is None
    x = images(*SHAPE)
    assert_is_the_network(whole, x, receptive_field=None)
    assert np.abs(numpy(whole(x)) - numpy(model(x))).max() > 1e-4


def test_saved_and_reloaded(model, tmp_path):
    other = with_input_shape(with_sigma0(model, [0.7, 1.4, 2.0]), (16, 9, 3))
    other.save(tmp_path / "model.keras")
    other.save_weights(tmp_path / "model.weights.h5")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_layer("scale_pooling").dropout == 0.2
    x = images(16, 9, 3)
    np.testing.assert_array_equal(numpy(loaded(x)), numpy(other(x)))
    fresh = gauss_der_resnet(**OPTIONS, sigma0=SCALES)
    fresh.load_weights(tmp_path / "model.weights.h5")
    x = images(*SHAPE)
    np.testing.assert_array_equal(numpy(fresh(x)), numpy(model(x)))


@pytest.mark.parametrize(
    "network",
    [
        lambda: GaussDerConv(4, 1.0),
        lambda: keras.Sequential([GaussDerConv(4, 1.0), keras.layers.ReLU()]),
    ],
)
def test_sequential_models_of_networks_that_are_not_functional(network):
    channels = ScaleChannels(network(), SCALES)
    model = keras.Sequential([keras.Input(SHAPE), channels, ScalePooling()])
    wide = with_input_shape(with_sigma0(model, [1.0]), (16, 20, 3))
    assert_same_weights(model, wide)
    assert wide(images(16, 20, 3)).shape == (2, 16, 20, 4)


def in_the_readmes_style():
    """Without names, and with a layer before the scale channels."""
    x = image = keras.Input((None, None, 3))
    x = GaussDerConv(4, 1.0, activation="relu", data_format="channels_last")(x)
    x = GaussDerConv(5, 1.2, data_format="channels_last")(x)
    x = SpatialSelection("center", data_format="channels_last")(x)
    channel = keras.Model(image, x)
    image = keras.Input(SHAPE)
    scores = ScaleChannels(channel, SCALES, None)(keras.layers.Rescaling(2.0)(image))
    model = keras.Model(image, ScalePooling()(scores))
    randomize(model)
    return model


@pytest.mark.parametrize("extent", cases(["auto", 2.0, None], [2.0]))
def test_features_of_a_layer_inside(extent):
    model = gauss_der_resnet(**OPTIONS, sigma0=SCALES, receptive_field=extent)
    randomize(model)
    channel, x = model.get_layer("scale_channels").network, images(*SHAPE)
    for other in (model, with_input_shape(model, (14, 14, 3))):
        extractor = feature_extractor(with_input_shape(other, SHAPE), "block1")
        assert extractor.output_shape == (None, 2, *SHAPE[:2], 6)
        features = np.moveaxis(numpy(extractor(x)), 1, 0)
        for found, sigma in zip(features, SCALES, strict=True):
            maps = keras.Model(channel.inputs, channel.get_layer("head").input)
            alone = ScaleChannels(maps, [sigma], None)(x)[:, 0]
            np.testing.assert_allclose(found, numpy(alone), rtol=1e-5, atol=1e-6)
    inner = {id(weight) for weight in extractor.weights}
    assert inner < {id(weight) for weight in model.weights}


def test_features_in_the_readmes_style():
    model, x = in_the_readmes_style(), images(*SHAPE)
    channel = only_layer(model, ScaleChannels).network
    selection = feature_extractor(model, channel.layers[-1].name)
    pooled = numpy(selection(x)).max(axis=1)
    np.testing.assert_allclose(pooled, numpy(model(x)), rtol=1e-5, atol=1e-6)
    first = feature_extractor(model, channel.layers[1].name)
    assert with_sigma0(first, [1.0]).output_shape == (None, 1, *SHAPE[:2], 4)
    assert with_input_shape(first, (7, 8, 3)).output_shape == (None, 2, 7, 8, 4)
    names = [layer.name for layer in model.layers]
    for other in (with_sigma0(model, [1.0]), with_input_shape(model, (9, 9, 3))):
        assert [layer.name for layer in other.layers] == names
