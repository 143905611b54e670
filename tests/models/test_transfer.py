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
from tests.layers._contract import drawn, numpy, randomize

SHAPE, SCALES = (12, 10, 3), (0.5, 1.0)
OPTIONS = {"input_shape": SHAPE, "classes": 5, "widths": (4, 6), "ratio": 1.2}

of_graphs = pytest.mark.seen_on_tensorflow("a copy is made of what Keras describes")


@pytest.fixture
def model():
    model = gauss_der_resnet(**OPTIONS, sigma0=SCALES, scale_dropout=0.2, name="mine")
    randomize(model)
    return model


def assert_same_weights(model, other):
    """Not equal ones: the very same."""
    assert [id(w) for w in model.weights] == [id(w) for w in other.weights]


# The last one is for inference, of a network that was trained on windows.
CHANGES = [
    (with_sigma0, {"sigma0": [1.0]}),
    (with_sigma0, {"sigma0": [0.3, 0.5, 1.0, 2.0, 3.0]}),
    (with_input_shape, {"input_shape": (16, 9, 3)}),
    (with_input_shape, {"input_shape": (7, 8, 3)}),
    (with_sigma0, {"sigma0": SCALES, "receptive_field": None}),
]


@pytest.mark.parametrize(("change", "options"), cases(CHANGES, CHANGES[:3:2]))
def test_it_is_the_network_built_anew(model, change, options):
    other = change(model, **options)
    assert_same_weights(model, other)
    assert model.input_shape == (None, *SHAPE)  # is left as it was
    expected = gauss_der_resnet(**{**OPTIONS, "sigma0": SCALES, **options})
    expected.set_weights(model.get_weights())
    x = drawn(2, *expected.input_shape[1:])
    found, built = numpy(other(x)), numpy(expected(x))
    np.testing.assert_allclose(found, built, rtol=1e-5, atol=1e-6)
    channel = other.get_layer("scale_channels").network
    assert (other.name, channel.name) == ("mine", "scale_channel")
    assert other.input_shape == channel.input_shape == expected.input_shape
    if "receptive_field" in options:
        assert np.abs(found - numpy(model(x))).max() > 1e-4


@of_graphs
def test_unknown_sizes(model):
    """In a graph, as `predict` makes it."""
    other, x = with_input_shape(model, (None, None, 3)), drawn(2, *SHAPE)
    assert_same_weights(model, other)
    found = other.predict(x, verbose=0)
    np.testing.assert_allclose(found, numpy(model(x)), rtol=1e-5, atol=1e-5)


@of_graphs
@pytest.mark.parametrize("extent", [None, 2.0])
def test_options_and_policies_are_kept(extent):
    """Also that the scores are float32 under a mixed policy."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    options = {"scale_dropout": 0.2, "receptive_field": extent, "density": 0.8}
    model = gauss_der_resnet(**OPTIONS, sigma0=SCALES, **options)
    keras.config.set_dtype_policy("float32")
    changed = (with_sigma0(model, [1.0, 2.0]), with_input_shape(model, (16, 16, 3)))
    for each in (model, *changed):
        pooling, channels = map(each.get_layer, ("scale_pooling", "scale_channels"))
        assert (pooling.dropout, pooling.compute_dtype) == (0.2, "float32")
        assert (channels.receptive_field, channels.density) == (extent, 0.8)
        assert channels.compute_dtype == "bfloat16"
        assert channels.network.get_layer("head").compute_dtype == "bfloat16"
        assert each.output.dtype == "float32"
    exact = with_sigma0(model, [0.5], density=None).get_layer("scale_channels")
    assert (exact.density, exact.receptive_field) == (None, extent)


def test_saved_and_reloaded(model, tmp_path):
    other = with_input_shape(with_sigma0(model, [0.7, 1.4, 2.0]), (16, 9, 3))
    other.save(tmp_path / "model.keras")
    other.save_weights(tmp_path / "model.weights.h5")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_layer("scale_pooling").dropout == 0.2
    x = drawn(2, 16, 9, 3)
    np.testing.assert_array_equal(numpy(loaded(x)), numpy(other(x)))
    fresh = gauss_der_resnet(**OPTIONS, sigma0=SCALES)
    fresh.load_weights(tmp_path / "model.weights.h5")
    x = drawn(2, *SHAPE)
    np.testing.assert_array_equal(numpy(fresh(x)), numpy(model(x)))


def test_sequential_models_of_networks_that_are_not_functional():
    layer = GaussDerConv(4, 1.0)
    for network in (layer, keras.Sequential([layer, keras.layers.ReLU()])):
        channels = ScaleChannels(network, SCALES)
        model = keras.Sequential([keras.Input(SHAPE), channels, ScalePooling()])
        wide = with_input_shape(with_sigma0(model, [1.0]), (16, 20, 3))
        assert_same_weights(model, wide)
        assert wide(drawn(2, 16, 20, 3)).shape == (2, 16, 20, 4)


def in_the_readmes_style():
    """Without names; a layer before the scale channels makes other channels."""
    x = image = keras.Input((None, None, 5))
    x = GaussDerConv(4, 1.0, activation="relu", data_format="channels_last")(x)
    x = GaussDerConv(5, 1.2, data_format="channels_last")(x)
    x = SpatialSelection("center", data_format="channels_last")(x)
    channel = keras.Model(image, x)
    image = keras.Input(SHAPE)
    scores = ScaleChannels(channel, SCALES)(keras.layers.Conv2D(5, 1)(image))
    model = keras.Model(image, ScalePooling()(scores))
    randomize(model)
    return model


@pytest.mark.parametrize("extent", cases([2.0, None], [2.0]))
def test_features_of_a_layer_inside(extent):
    model = gauss_der_resnet(**OPTIONS, sigma0=SCALES, receptive_field=extent)
    randomize(model)
    channel, x = model.get_layer("scale_channels").network, drawn(2, *SHAPE)
    for other in (model, with_input_shape(model, (14, 14, 3))):
        extractor = feature_extractor(with_input_shape(other, SHAPE), "block1")
        assert extractor.output_shape == (None, 2, *SHAPE[:2], 6)
        features = np.moveaxis(numpy(extractor(x)), 1, 0)
        for found, sigma in zip(features, SCALES, strict=True):
            maps = keras.Model(channel.inputs, channel.get_layer("head").input)
            alone = ScaleChannels(maps, [sigma])(x)[:, 0]
            np.testing.assert_allclose(found, numpy(alone), rtol=1e-5, atol=1e-6)
    inner = {id(weight) for weight in extractor.weights}
    assert inner < {id(weight) for weight in model.weights}


def test_features_in_the_readmes_style():
    model, x = in_the_readmes_style(), drawn(2, *SHAPE)
    channel = only_layer(model, ScaleChannels).network
    selection = feature_extractor(model, channel.layers[-1].name)
    pooled = numpy(selection(x)).max(axis=1)
    # Of whole maps, and of windows: the wider, the closer.
    scales = only_layer(model, ScaleChannels).sigma0
    for extent, tolerance in ((1.5, 5e-2), (2.5, 2e-3)):
        wide = with_sigma0(model, scales, receptive_field=extent)
        np.testing.assert_allclose(pooled, numpy(wide(x)), rtol=tolerance)
    first = feature_extractor(model, channel.layers[1].name)
    assert with_sigma0(first, [1.0]).output_shape == (None, 1, *SHAPE[:2], 4)
    assert with_input_shape(first, (7, 8, 3)).output_shape == (None, 2, 7, 8, 4)
    names = [layer.name for layer in model.layers]
    for other in (with_sigma0(model, [1.0]), with_input_shape(model, (9, 9, 3))):
        assert [layer.name for layer in other.layers] == names
