"""`scale_channel` and `gauss_der_resnet`: architecture, names, how it begins."""

import re

import keras
import numpy as np
import pytest

from keras_gdrn.layers import (
    GaussDerConv,
    GaussDerResidualBlock,
    ScaleChannels,
    SpatialSelection,
)
from keras_gdrn.models import (
    Card,
    Preprocess,
    from_preset,
    gauss_der_resnet,
    head_initializers,
    save_to_preset,
    scale_channel,
    with_preprocess,
)
from tests._cases import cases
from tests.layers._contract import drawn, numpy, randomize

SHAPE = (12, 10, 3)
CHANNEL = {"input_shape": SHAPE, "classes": 5, "widths": (4, 4, 6), "ratio": 1.2}
NETWORK = {**CHANNEL, "sigma0": (0.5, 1.0, 2.0)}
IMAGES = drawn(2, *SHAPE)

as_built = pytest.mark.seen_on_tensorflow("what is built does not depend on it")


def layer(x, filters, sigma, **options):
    x = GaussDerConv(filters, sigma, **options)(x)
    x = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    return keras.layers.ReLU()(x)


def block(x, filters, sigma, **options):
    return GaussDerResidualBlock(filters, sigma, **options)(x)


def by_hand(separable_blocks=0, residual=True, zero_order=False, boundary="zero"):
    """The same channel, written out of its layers."""
    options = {"zero_order": zero_order, "boundary": boundary}
    image, build = keras.Input(SHAPE), block if residual else layer
    x = layer(image, 4, 1.0, boundary=boundary)
    x = build(x, 4, 1.2, **options)
    x = build(x, 6, 1.44, separable=separable_blocks > 0, **options)
    x = GaussDerConv(5, 1.728, activation="relu", **options)(x)
    return keras.Model(image, SpatialSelection("center")(x))


SEPARABLE = {"zero_order": True, "separable_blocks": 1}
OTHERS = [
    {},
    {"zero_order": True, "boundary": "symmetric"},
    {"residual": False, "separable_blocks": 1},
]


@pytest.mark.parametrize("options", cases([SEPARABLE, *OTHERS], [SEPARABLE]))
def test_channel_is_the_layers_in_their_order(options):
    channel = scale_channel(**CHANNEL, **options)
    reference = by_hand(**options)
    randomize(reference)
    channel.set_weights(reference.get_weights())
    found, expected = numpy(channel(IMAGES)), numpy(reference(IMAGES))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.seen_on_tensorflow("its parts are tested here")
def test_network_is_its_channels_pooled():
    model = gauss_der_resnet(**NETWORK, scale_pooling="logsumexp")
    randomize(model)
    channel = model.get_layer("scale_channels").network
    scores = ScaleChannels(channel, NETWORK["sigma0"])(IMAGES)
    expected = np.log(np.sum(np.exp(numpy(scores)), axis=1))
    np.testing.assert_allclose(numpy(model(IMAGES)), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", cases([(16, 2), (6, 5, 4, 2)], [(16, 2)]))
def test_signals_and_volumes(shape):
    model = gauss_der_resnet(shape, 3, (4, 5), 1.2, [0.5, 1.0], order=3)
    assert model(drawn(2, *shape)).shape == (2, 3)


@as_built
def test_convolution_options_reach_every_layer():
    options = {"trainable_sigma": True, "kernel_regularizer": "l2", "use_bias": False}
    channel = scale_channel(**CHANNEL, dtype="bfloat16", **options)
    trained = [w.path for w in channel.trainable_weights if "log_sigma" in w.path]
    assert len(trained) == 6
    # Six convolutions and the projection of the second block.
    assert len(channel.losses) == 7
    stem = channel.get_layer("stem_conv")
    assert (stem.use_bias, stem.compute_dtype) == (False, "bfloat16")


@as_built
def test_a_dtype_is_that_of_every_layer():
    """As if the network were built under this policy."""

    def policies(**options):
        model = gauss_der_resnet(**CHANNEL, sigma0=[0.5, 1.0], **options)
        found = [*model._flatten_layers(include_self=False)]
        return [(layer.name, layer.dtype_policy.name) for layer in found]

    given = policies(dtype="mixed_bfloat16")
    keras.config.set_dtype_policy("mixed_bfloat16")
    inputs = ("image", "scale_channel")  # which compute nothing
    expected = [pair for pair in policies() if pair[0] not in inputs]
    assert [pair for pair in given if pair[0] not in inputs] == expected


@as_built
def test_names_and_channels_last_whatever_keras_is_set_to():
    keras.config.set_image_data_format("channels_first")
    try:
        model = gauss_der_resnet(**NETWORK)
    finally:
        keras.config.set_image_data_format("channels_last")
    assert model(IMAGES).shape == (2, 5)
    layers = ["image", "scale_channels", "scale_pooling"]
    assert [layer.name for layer in model.layers] == layers
    channel = model.get_layer("scale_channels").network
    assert (model.name, channel.name) == ("gauss_der_resnet", "scale_channel")
    shapes = {weight.path: weight.shape for weight in model.weights}
    assert len(shapes) == len(model.weights)
    assert shapes["stem_conv/kernel"] == (5, 3, 4)
    assert shapes["block2/projection/kernel"] == (4, 6)
    others = ("stem_bn/gamma", "block1/conv1/kernel", "block1/bn2/gamma")
    assert {*others, "block2/projection_bn/beta", "head/bias"} <= set(shapes)
    plain = scale_channel(**CHANNEL, residual=False)
    names = {"stem_conv", "stem_bn", "stem_relu", "block2_conv", "spatial_selection"}
    assert names <= {layer.name for layer in plain.layers}


@as_built
def test_an_unusual_shape_of_an_image_is_warned_about():
    without_channels = (28, 28), (128, 32), (200, 50), (32, 128)
    for shape in (*without_channels, (None, 32, 32, 1), (3, 32, 32)):
        message = rf"An image is .*={re.escape(str(shape))}"
        with pytest.warns(UserWarning, match=message) as told:
            scale_channel(**CHANNEL | {"input_shape": shape, "widths": [1]})
        assert told[0].filename == __file__
    # These may well be signals; in tests, a warning would be an error.
    for shape in (
        (1000, 12),
        (256, 1),
        (500, 2),
        (128, 8),
        (4, 4),
        (None, 32),
        (4, 9, 2),
    ):
        scale_channel(**CHANNEL | {"input_shape": shape, "widths": [1]})


@as_built
@pytest.mark.parametrize(
    ("kind", "zero_order", "share", "lift"),
    [
        ("he_uniform", False, 1, 0),
        ("positive", False, 1 / 5, 0.2),
        ("positive", True, 1 / 5, 1.0),
    ],
)
def test_weights_as_large_as_hes_or_a_fifth_and_what_lifts_the_scores(
    kind, zero_order, share, lift
):
    initializers = head_initializers(kind, zero_order=zero_order)
    head = GaussDerConv(50, 1.5, **initializers)
    head.build((None, 8, 8, 64))
    limit = share * np.sqrt(6 / (64 * 5))  # five terms of the jet count
    assert 0.95 * limit < np.abs(numpy(head.kernel)).max() <= limit * (1 + 1e-6)
    np.testing.assert_array_equal(numpy(head.bias), np.float32(lift))


@as_built
@pytest.mark.parametrize(
    ("options", "center"),
    [
        ({}, 0.2),
        ({"zero_order": True}, 1.0),
        ({"head_initializer": "he_uniform"}, None),
        # Those that are given are of the last layer too.
        ({"bias_initializer": "zeros"}, None),
        ({"kernel_initializer": "he_uniform"}, None),
    ],
)
def test_no_class_begins_cut_off_unless_it_is_asked_for(options, center):
    channel = scale_channel((24, 24, 3), 50, [16, 16, 32], 1.25, **options)
    scores = numpy(channel(drawn(50, 24, 24, 3), training=True))
    if center is None:
        assert np.mean(scores == 0) > 0.05
        return
    assert np.mean(scores == 0) < 0.01
    assert np.mean(scores) == pytest.approx(center, rel=0.25)
    assert 0.02 < np.std(scores) < center / 2


@pytest.mark.slow
@pytest.mark.seen_on_tensorflow("a ReLU is the same")
def test_a_head_without_relu_learns_that_there_is_none_of_the_classes():
    """With the ReLU no score is below zero, and its gradient is lost at zero."""
    images, none = drawn(12, 16, 16, 1), np.zeros((12, 3))
    losses = {}
    for activation in ("relu", None):
        keras.utils.set_random_seed(0)
        model = gauss_der_resnet(
            (16, 16, 1), 3, [4, 6], 1.3, sigma0=[1.0], head_activation=activation
        )
        loss = keras.losses.BinaryCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(0.05), loss)
        losses[activation] = model.fit(images, none, epochs=20, verbose=0).history
    assert losses["relu"]["loss"][-1] == pytest.approx(np.log(2), rel=1e-3)
    assert losses[None]["loss"][-1] < 0.1


def test_numbers_may_be_numpys(tmp_path):
    """Wherever one of Python's is taken, and the network is saved all the same."""
    size, scale = np.int64(16), np.float32(1.25)
    model = gauss_der_resnet(
        (size, size, np.int32(1)),
        np.int64(3),
        np.array([4, 4]),
        scale,
        sigma0=np.array([0.75, 1.5], "float32"),
        scale_dropout=np.float32(0.25),
        density=np.float64(1),
        receptive_field=np.float32(2.5),
        order=np.int64(2),
        separable_blocks=np.int64(1),
    )
    names = np.array(["a", "b", "c"])
    model = with_preprocess(model, Preprocess(names, object_size=size))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.layers[1].class_names == ("a", "b", "c")
    card = Card(accuracy={"1": np.float32(0.5)}, test_images=size)
    save_to_preset(model, tmp_path / "saved", card)
    assert from_preset(tmp_path / "saved").count_params() == model.count_params()
