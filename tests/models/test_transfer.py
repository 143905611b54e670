"""`with_sigma0` and `with_input_shape`: the same weights, other scales, other sizes."""

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
    scale_channel,
    with_input_shape,
    with_sigma0,
)
from tests._cases import cases
from tests.layers._contract import numpy, randomize

SHAPE, SCALES = (12, 10, 3), (0.5, 1.0)
OPTIONS = {"input_shape": SHAPE, "classes": 5, "widths": (4, 6), "ratio": 1.2}


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
    expected = gauss_der_resnet(**{**OPTIONS, "sigma0": SCALES, **options})
    expected.set_weights(model.get_weights())
    actual = numpy(model(x))
    np.testing.assert_allclose(actual, numpy(expected(x)), rtol=1e-5, atol=1e-6)


DENSE = [0.3, 0.5, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("sigma0", cases([[1.0], DENSE], [[1.0]]))
def test_other_scales(model, sigma0):
    denser = with_sigma0(model, sigma0)
    assert_same_weights(model, denser)
    assert_is_the_network(denser, images(*SHAPE), sigma0=sigma0)
    assert denser.get_layer("scale_channels").sigma0 == tuple(sigma0)
    assert denser.name == "mine"
    assert [x.name for x in denser.layers] == [x.name for x in model.layers]


@pytest.mark.parametrize("size", cases([(16, 9), (7, 8), (None, None)], [(16, 9)]))
def test_other_size(model, size):
    other = with_input_shape(model, (*size, 3))
    assert_same_weights(model, other)
    assert other.input_shape == (None, *size, 3)
    shape = SHAPE if None in size else (*size, 3)
    assert_is_the_network(other, images(*shape), input_shape=(*size, 3))
    assert other.name == "mine"
    channel = other.get_layer("scale_channels").network
    assert channel.name == "scale_channel"
    assert channel.input_shape == other.input_shape


@pytest.mark.seen_on_tensorflow("a copy is made of what Keras describes")
def test_other_size_of_a_single_channel():
    channel = scale_channel(**OPTIONS, residual=False)
    other = with_input_shape(channel, (20, 14, 3))
    assert_same_weights(channel, other)
    assert other(images(20, 14, 3)).shape == (2, 5)


@pytest.mark.seen_on_tensorflow("a copy is made of what Keras describes")
def test_original_is_left_as_it_was(model):
    before = numpy(model(images(*SHAPE)))
    with_sigma0(model, [2.0])(images(*SHAPE))
    with_input_shape(model, (16, 16, 3))(images(16, 16, 3))
    assert model.input_shape == (None, *SHAPE)
    np.testing.assert_array_equal(numpy(model(images(*SHAPE))), before)


@pytest.mark.seen_on_tensorflow("a copy is made of what Keras describes")
def test_dropout_and_policies_are_kept():
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = gauss_der_resnet(**OPTIONS, sigma0=SCALES, scale_dropout=0.2)
    keras.config.set_dtype_policy("float32")
    changed = (with_sigma0(model, [1.0, 2.0]), with_input_shape(model, (16, 16, 3)))
    for other in changed:
        assert other.get_layer("scale_pooling").dropout == 0.2
        assert other.get_layer("scale_pooling").compute_dtype == "float32"
        assert other.get_layer("scale_channels").compute_dtype == "bfloat16"
        assert other.output.dtype == "float32"


@pytest.mark.seen_on_tensorflow("a copy is made of what Keras describes")
def test_transferred_model_is_saved_and_reloaded(model, tmp_path):
    other = with_input_shape(with_sigma0(model, [0.7, 1.4, 2.0]), (16, 9, 3))
    other.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    x = images(16, 9, 3)
    np.testing.assert_array_equal(numpy(loaded(x)), numpy(other(x)))


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


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.channels = ScaleChannels(scale_channel(**OPTIONS), SCALES)

    def call(self, inputs):
        return self.channels(inputs)


@pytest.mark.seen_on_tensorflow("a copy is made of what Keras describes")
@pytest.mark.parametrize("network", [Subclassed, keras.Sequential, lambda: None])
def test_models_that_are_not_functional_are_refused(network):
    changes = [(with_sigma0, [1.0]), (with_input_shape, SHAPE)]
    if network is Subclassed:  # others have no scale channels
        changes.append((feature_extractor, "head"))
    for changed, argument in changes:
        with pytest.raises(ValueError, match=r"`model` must be a functional .*Receive"):
            changed(network(), argument)


@pytest.mark.seen_on_tensorflow("a copy is made of what Keras describes")
def test_what_does_not_fit_is_refused(model):
    for shape in (24, None, "24"):
        with pytest.raises(ValueError, match=f"`input_shape` must be .*={shape!r}"):
            with_input_shape(model, shape)
    message = r"`input_shape` must have 3.*\(12, 10, 3\)"
    for shape in ((12, 3), (12, 10, 1), (12, 10, 4, 3)):
        with pytest.raises(ValueError, match=message):
            with_input_shape(model, shape)
    for sigma0 in ([], [-1.0], 1.0):
        with pytest.raises(ValueError, match="`sigma0`"):
            with_sigma0(model, sigma0)
    with pytest.raises(ValueError, match=r"`with_sigma0`.*'scale_channel'"):
        with_sigma0(scale_channel(**OPTIONS), [1.0])


# How much of the maps is evaluated


def extents(model):
    return [layer.receptive_field for layer in model.layers if _has_channels(layer)]


def _has_channels(layer):
    return isinstance(layer, ScaleChannels)


@pytest.mark.seen_on_tensorflow("a copy is made of what Keras describes")
@pytest.mark.parametrize("extent", ["auto", None, 2.0])
def test_receptive_field_is_kept(extent):
    model = gauss_der_resnet(**OPTIONS, sigma0=SCALES, receptive_field=extent)
    assert extents(model) == [extent]
    assert extents(with_sigma0(model, [1.0])) == [extent]
    assert extents(with_input_shape(model, (20, 20, 3))) == [extent]


@pytest.mark.seen_on_tensorflow("a copy is made of what Keras describes")
def test_whole_maps_are_one_argument_away(model):
    """In inference, of a network that was trained on windows."""
    whole = with_sigma0(model, SCALES, receptive_field=None)
    assert_same_weights(model, whole)
    assert extents(whole) == [None] and extents(model) == ["auto"]
    x = images(*SHAPE)
    assert_is_the_network(whole, x, receptive_field=None)
    assert np.abs(numpy(whole(x)) - numpy(model(x))).max() > 1e-4


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


@pytest.mark.seen_on_tensorflow("a copy is made of what Keras describes")
def test_names_are_kept():
    model = in_the_readmes_style()
    names = [layer.name for layer in model.layers]
    for other in (with_sigma0(model, [1.0]), with_input_shape(model, (9, 9, 3))):
        assert [layer.name for layer in other.layers] == names


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
    channel = next(x for x in model.layers if isinstance(x, ScaleChannels)).network
    selection = feature_extractor(model, channel.layers[-1].name)
    pooled = numpy(selection(x)).max(axis=1)
    np.testing.assert_allclose(pooled, numpy(model(x)), rtol=1e-5, atol=1e-6)
    first = feature_extractor(model, channel.layers[1].name)
    assert with_sigma0(first, [1.0]).output_shape == (None, 1, *SHAPE[:2], 4)
    assert with_input_shape(first, (7, 8, 3)).output_shape == (None, 2, 7, 8, 4)


@pytest.mark.seen_on_tensorflow("a copy is made of what Keras describes")
def test_features_of_a_layer_that_is_not_there(model):
    for layer in ("block7", "image"):  # the input, not a layer that is applied
        message = rf"one of \['stem_conv', .*layer='{layer}'"
        with pytest.raises(ValueError, match=message):
            feature_extractor(model, layer)
    with pytest.raises(ValueError, match="one `ScaleChannels`"):
        feature_extractor(scale_channel(SHAPE, 5, (4,), 1.2), "head")
