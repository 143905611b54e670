"""`scale_channel` and `gauss_der_resnet`: the architecture, names, files and errors."""

import math
import re

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
from keras_gdrn.models import gauss_der_resnet, scale_channel
from tests._cases import cases
from tests.layers._contract import numpy, randomize

SHAPE = (12, 10, 3)
CHANNEL = {"input_shape": SHAPE, "classes": 5, "widths": (4, 4, 6), "ratio": 1.2}
NETWORK = {**CHANNEL, "sigma0": (0.5, 1.0, 2.0)}


def images(batch=2, shape=SHAPE):
    return np.random.default_rng(0).normal(size=(batch, *shape)).astype("float32")


def randomized(model):
    randomize(model)
    return model


def assert_equal_outputs(model, other, x=None):
    x = images() if x is None else x
    expected = numpy(model(x))
    np.testing.assert_allclose(numpy(other(x)), expected, rtol=1e-5, atol=1e-5)


def by_hand(zero_order=False, separable=False, boundary="zero"):
    """The same channel, written out of its layers."""
    image = x = keras.Input(SHAPE)
    x = GaussDerConv(4, 1.0, boundary=boundary)(x)
    x = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
    x = keras.layers.ReLU()(x)
    options = {"zero_order": zero_order, "boundary": boundary}
    x = GaussDerResidualBlock(4, 1.2, **options)(x)
    x = GaussDerResidualBlock(6, 1.44, separable=separable, **options)(x)
    x = GaussDerConv(5, 1.728, activation="relu", **options)(x)
    return keras.Model(image, SpatialSelection("center")(x))


@pytest.mark.parametrize(
    ("zero_order", "separable", "boundary"),
    cases(
        [(False, False, "zero"), (True, True, "zero"), (True, False, "symmetric")],
        [(True, True, "zero")],
    ),
)
def test_channel_is_the_layers_in_their_order(zero_order, separable, boundary):
    options = {"zero_order": zero_order, "boundary": boundary}
    channel = scale_channel(**CHANNEL, separable_blocks=int(separable), **options)
    reference = randomized(by_hand(zero_order, separable, boundary))
    channel.set_weights(reference.get_weights())
    assert_equal_outputs(reference, channel)


def test_network_is_its_channels_pooled():
    model = randomized(gauss_der_resnet(**NETWORK, scale_pooling="logsumexp"))
    channel = model.get_layer("scale_channels").network
    scores = ScaleChannels(channel, NETWORK["sigma0"])(images())
    expected = np.log(np.sum(np.exp(numpy(scores)), axis=1))
    np.testing.assert_allclose(numpy(model(images())), expected, rtol=1e-5)


@pytest.mark.seen_on_tensorflow("what is built does not depend on it")
def test_without_residuals_each_block_is_one_layer():
    channel = scale_channel(**CHANNEL, residual=False, separable_blocks=1)
    convolutions = [x for x in channel.layers if isinstance(x, GaussDerConv)]
    assert [x.sigma for x in convolutions] == pytest.approx([1, 1.2, 1.44, 1.728])
    assert [x.filters for x in convolutions] == [4, 4, 6, 5]
    assert [x.separable for x in convolutions] == [False, False, True, False]
    names = [layer.name for layer in channel.layers]
    assert names[4:7] == ["block1_conv", "block1_bn", "block1_relu"]
    assert not any(isinstance(x, GaussDerResidualBlock) for x in channel.layers)
    # Jets, bias and normalization of each layer; the last has no normalization.
    standard = (5 * 3 * 4 + 4 + 8) + (5 * 4 * 4 + 4 + 8) + (5 * 6 * 5 + 5)
    separable = 5 * 4 + 4 + 4 * 6 + 6 + 12
    shapes = [weight.shape for weight in channel.trainable_weights]
    assert sum(map(math.prod, shapes)) == standard + separable
    assert channel(images()).shape == (2, 5)


@pytest.mark.seen_on_tensorflow("what is built does not depend on it")
def test_a_single_width_is_a_network_of_two_layers():
    channel = scale_channel(SHAPE, 5, [4], 1.2)
    assert [x.name for x in channel.layers[1:]] == [
        *("stem_conv", "stem_bn", "stem_relu", "head", "spatial_selection")
    ]
    assert channel.get_layer("head").sigma == 1.2


@pytest.mark.parametrize("shape", cases([(16, 2), (6, 5, 4, 2)], [(16, 2)]))
def test_signals_and_volumes(shape):
    model = gauss_der_resnet(shape, 3, (4, 5), 1.2, [0.5, 1.0], order=3)
    assert model(images(2, shape)).shape == (2, 3)


@pytest.mark.seen_on_tensorflow("what is built does not depend on it")
def test_convolution_options_reach_every_layer():
    channel = scale_channel(**CHANNEL, trainable_sigma=True, kernel_regularizer="l2")
    trained = [w.path for w in channel.trainable_weights if "log_sigma" in w.path]
    assert len(trained) == 6
    # Six convolutions and the projection of the second block.
    assert len(channel.losses) == 7


def first_scores(**options):
    """Of a fresh channel that has 50 classes, for 50 images: `(image, class)`."""
    keras.utils.set_random_seed(0)
    channel = scale_channel((24, 24, 3), 50, [16, 16, 32], 1.25, **options)
    return numpy(channel(images(50, (24, 24, 3)), training=True))


@pytest.mark.seen_on_tensorflow("what is built does not depend on it")
@pytest.mark.parametrize(("zero_order", "center"), [(False, 0.2), (True, 1.0)])
def test_no_class_begins_cut_off(zero_order, center):
    scores = first_scores(zero_order=zero_order)
    assert np.mean(scores == 0) < 0.01
    assert np.mean(scores) == pytest.approx(center, rel=0.25)
    assert 0.02 < np.std(scores) < center / 2


@pytest.mark.seen_on_tensorflow("what is built does not depend on it")
@pytest.mark.parametrize(
    "options",
    [{"bias_initializer": "zeros"}, {"kernel_initializer": "he_uniform"}],
    ids=["no bias", "large weights"],
)
def test_given_initializers_are_those_of_the_last_layer_too(options):
    assert np.mean(first_scores(**options) == 0) > 0.05


@pytest.mark.seen_on_tensorflow("what is built does not depend on it")
def test_names_summary_and_options():
    model = gauss_der_resnet(**NETWORK, scale_dropout=0.2)
    layers = ["image", "scale_channels", "scale_pooling"]
    assert [layer.name for layer in model.layers] == layers
    pooling = model.layers[-1]
    assert isinstance(pooling, ScalePooling)
    assert (pooling.mode, pooling.dropout) == ("max", 0.2)
    channel = model.get_layer("scale_channels").network
    assert (model.name, channel.name) == ("gauss_der_resnet", "scale_channel")
    paths = {weight.path for weight in model.weights}
    assert {
        *("stem_conv/kernel", "stem_bn/gamma", "block1/conv1/kernel"),
        *("block1/bn2/gamma", "block2/projection/kernel"),
        *("block2/projection_bn/beta", "head/bias"),
    } <= paths
    assert len(paths) == len(model.weights)
    block = channel.get_layer("block2")
    for bn in (channel.get_layer("stem_bn"), block.bn1, block.bn2, block.projection_bn):
        assert (bn.momentum, bn.epsilon) == (0.9, 1e-5)
    lines = []
    model.summary(print_fn=lambda line, **kwargs: lines.append(line), line_length=120)
    text = "\n".join(lines)
    assert "scale_channels" in text and "(None, 3, 5)" in text
    assert f"{model.count_params():,}" in text


@pytest.mark.seen_on_tensorflow("sizes are known elsewhere")
def test_unknown_sizes_give_what_known_sizes_give():
    model = randomized(gauss_der_resnet(**NETWORK))
    free = gauss_der_resnet(**{**NETWORK, "input_shape": (None, None, 3)})
    free.set_weights(model.get_weights())
    assert_equal_outputs(model, free)
    assert free.predict(images(), verbose=0).shape == (2, 5)
    assert free(images(2, (9, 14, 3))).shape == (2, 5)


def test_saved_and_reloaded(tmp_path):
    model = randomized(gauss_der_resnet(**NETWORK, scale_dropout=0.2))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_equal_outputs(model, loaded)
    assert loaded.get_layer("scale_pooling").dropout == 0.2
    model.save_weights(tmp_path / "model.weights.h5")
    other = gauss_der_resnet(**NETWORK)
    other.load_weights(tmp_path / "model.weights.h5")
    assert_equal_outputs(model, other)


def test_scores_are_float32_under_a_mixed_policy():
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = gauss_der_resnet(**NETWORK)
    assert model.output.dtype == "float32"
    assert keras.backend.standardize_dtype(model(images()).dtype) == "float32"
    channel = model.get_layer("scale_channels").network
    assert channel.get_layer("head").compute_dtype == "bfloat16"


@pytest.mark.seen_on_tensorflow("what is built does not depend on it")
def test_channels_come_last_whatever_keras_is_set_to():
    keras.config.set_image_data_format("channels_first")
    try:
        model = gauss_der_resnet(**NETWORK)
    finally:
        keras.config.set_image_data_format("channels_last")
    assert model.count_params() == gauss_der_resnet(**NETWORK).count_params()
    assert model(images()).shape == (2, 5)


def test_trains():
    options = {**NETWORK, "widths": (4,), "sigma0": (0.5, 1.0)}
    model = gauss_der_resnet(**options, scale_dropout=0.3)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.03), loss)
    x, y = images(10), np.arange(10) % 5
    losses = model.fit(x, y, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < 0.9 * losses[0]


# What the convolutions have, and the builders decide.
OWN = {"activation": "tanh", "data_format": "channels_first", "separable": True}
REFUSED = [
    ("widths", ([], 16, "16", [4, 0], [4, 2.5], None), "widths=.*"),
    ("ratio", (0, -1.2, math.nan, math.inf, True, "1.2"), None),
    ("classes", (0, 2.5, None), None),
    ("separable_blocks", (-1, 3, 0.5, True, "all"), None),
    ("order", (0, 1.5), None),
    ("input_shape", (64, None, "ab", (28.0, 28, 1)), None),
    ("spatial_selection", ("mean",), "mode='mean'"),
    ("boundary", ("same",), None),
    ("head_initializer", ("zeros", None, 1), None),
    *((name, (value,), None) for name, value in OWN.items()),
]


@pytest.mark.seen_on_tensorflow("what is built does not depend on it")
@pytest.mark.parametrize(("argument", "values", "received"), REFUSED)
def test_refused(argument, values, received):
    for build, options in ((scale_channel, CHANNEL), (gauss_der_resnet, NETWORK)):
        for value in values:
            told = received or f"{argument}={re.escape(repr(value))}"
            with pytest.raises(ValueError, match=f"Received: {told}"):
                build(**{**options, argument: value})


@pytest.mark.seen_on_tensorflow("what is built does not depend on it")
@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        (gauss_der_resnet, {"sigma0": []}, r"Received: sigma0=\[\]"),
        (gauss_der_resnet, {"scale_pooling": "mean"}, "Received: mode='mean'"),
        (gauss_der_resnet, {"scale_dropout": 1.0}, "Received: dropout=1.0"),
        (gauss_der_resnet, {"strides": 2}, "no argument `strides`.*'strides': 2"),
        (scale_channel, {"zero_orders": 1}, r"Did you mean `zero_order`\?"),
        # What is refused is not proposed.
        (scale_channel, {"sigma0": 1}, r"no argument `sigma0`\. Received: "),
        (scale_channel, {"activations": 1}, r"no argument `activations`\. Received: "),
    ],
)
def test_unknown_arguments_and_those_of_the_network(build, options, message):
    given = CHANNEL if build is scale_channel else NETWORK
    with pytest.raises(ValueError, match=message):
        build(**{**given, **options})
    near = f"`{build.__name__}` has no argument `num_classes`. Did you mean `classes`?"
    with pytest.raises(ValueError, match=re.escape(near)):
        build((28, 28, 1), num_classes=10)  # told before the missing ones


@pytest.mark.seen_on_tensorflow("what is built does not depend on it")
@pytest.mark.parametrize("options", [{"dtype": "bfloat16"}, {"use_bias": False}])
def test_arguments_of_the_convolutions_are_known(options):
    (name, value), *_ = options.items()
    stem = scale_channel(**CHANNEL, **options).get_layer("stem_conv")
    assert getattr(stem, name) == value


@pytest.mark.seen_on_tensorflow("what is built does not depend on it")
@pytest.mark.parametrize("shape", [(28, 28), (128, 32), (200, 50), (32, 128)])
def test_image_without_channels_is_warned_about(shape):
    received = re.escape(str(shape))
    with pytest.warns(UserWarning, match=rf"An image has three: .*={received}") as told:
        scale_channel(**CHANNEL | {"input_shape": shape, "widths": [1]})
    assert told[0].filename == __file__


@pytest.mark.seen_on_tensorflow("what is built does not depend on it")
def test_signals_are_not_warned_about():
    for shape in ((1000, 12), (256, 1), (500, 2), (128, 8), (4, 4), (None, 32)):
        scale_channel(**CHANNEL | {"input_shape": shape, "widths": [1]})
