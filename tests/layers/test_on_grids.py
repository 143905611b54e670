"""`ScaleChannels`: one network on grids, whatever the layers in it."""

import math

import keras
import numpy as np
import pytest
from keras import layers
from scipy.ndimage import gaussian_filter1d

from keras_gdrn import kernels
from keras_gdrn.layers import (
    GaussDerConv,
    GaussDerResidualBlock,
    ScaleChannels,
    SpatialSelection,
    _network,
)
from keras_gdrn.layers._convolution import (
    VARIANCE,
    convolved_on_grid,
    differences_combined,
    presmoothing,
)
from keras_gdrn.layers._grid import Grid
from keras_gdrn.models import (
    feature_extractor,
    gauss_der_resnet,
    scale_channel,
    with_sigma0,
)
from tests._cases import cases
from tests._gradients import gradients
from tests.layers._contract import assert_near, drawn, numpy, randomize

SCALES = cases((0.5, 1.0, 2.0), (1.0, 2.0))


def channels(network, scales=SCALES, **options):
    return ScaleChannels(network, scales, **options)


def built(network, shape, **options):
    layer = channels(network, **options)
    layer.build((None, *shape))
    randomize(layer)
    return layer


def network(shape, *inner, selection="center", **options):
    x = image = keras.Input(shape)
    for layer in inner:
        x = layer(x)
    if selection:
        x = SpatialSelection(selection, **options)(x)
    return keras.Model(image, x)


def small(shape=(17, 17, 2), **options):
    return scale_channel(shape, 4, [3, 3, 4], 1.3, **options)


KINDS = {
    "center": {},
    "max": {"spatial_selection": "max"},
    "separable": {"separable_blocks": 1, "zero_order": True},
    "third_order": {"order": 3},
    "without_skips": {"residual": False, "spatial_selection": "max"},
    "1d": {"shape": (40, 2)},
    "3d": {"shape": (7, 9, 8, 1), "separable_blocks": 1},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", cases(KINDS, ("max",)))
def test_trains_saves_and_reloads(kind, tmp_path, request):
    """With blocks of both kinds, or one; in a graph each selection, once."""
    options, widths = dict(KINDS[kind]), [3, 3, 4]
    if kind != "max":
        widths = [3, 4]
    if kind not in ("center", "max"):
        request.getfixturevalue("step_by_step")
    shape = options.pop("shape", (17, 17, 2))
    model = gauss_der_resnet(shape, 4, widths, 1.3, SCALES, **options)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, run_eagerly=keras.backend.backend() == "torch")
    images, labels = drawn(8, *shape), np.arange(8) % 4
    before = [numpy(weight) for weight in model.trainable_weights]
    history = model.fit(images, labels, epochs=2, verbose=0).history["loss"]
    assert np.isfinite(history).all()
    after = [numpy(weight) for weight in model.trainable_weights]
    assert any(np.any(a != b) for a, b in zip(after, before, strict=True))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert_near(again(images), model(images), 1e-6)


def test_channels_first_is_the_same():
    shape = (15, 17, 3)
    options = {"filters": 4, "sigma": 1.2}
    last = network(shape, GaussDerConv(3, 1.0), GaussDerResidualBlock(**options))
    first = network(
        (3, 15, 17),
        GaussDerConv(3, 1.0, data_format="channels_first"),
        layers.Activation("relu"),
        GaussDerResidualBlock(**options, data_format="channels_first"),
        data_format="channels_first",
    )
    last = network(shape, last.layers[1], layers.ReLU(), last.layers[2])
    ours, theirs = built(last, shape), channels(first)
    theirs.build((None, 3, 15, 17))
    theirs.set_weights(ours.get_weights())
    images = drawn(2, *shape)
    assert_near(theirs(np.moveaxis(images, -1, 1)), ours(images), 1e-5)


@pytest.mark.parametrize("selection", cases(("center", "max"), ("max",)))
def test_normalization_of_channels_that_come_first(selection):
    def channel(data_format, shape, axis):
        conv = GaussDerConv(5, 1.0, data_format=data_format)
        normalization = layers.BatchNormalization(axis=axis)
        options = {"selection": selection, "data_format": data_format}
        return network(shape, conv, normalization, **options)

    last = built(channel("channels_last", (15, 17, 3), -1), (15, 17, 3))
    first = channels(channel("channels_first", (3, 15, 17), 1))
    first.build((None, 3, 15, 17))
    first.set_weights(last.get_weights())
    images = drawn(2, 15, 17, 3)
    moved = np.moveaxis(images, -1, 1)
    for training in (False, True):
        expected = numpy(last(images, training=training))
        assert_near(first(moved, training=training), expected, 1e-5)
    for one, other in zip(first.get_weights(), last.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


FINENESS = 12
EDGES = {"constant": "zero", "symmetric": "symmetric"}


@pytest.mark.parametrize(("mode", "boundary"), EDGES.items())
@pytest.mark.parametrize("step", (FINENESS // 2, FINENESS, 15))
def test_a_layer_on_a_grid_is_a_gaussian_and_differences(mode, boundary, step):
    """SciPy smooths points among zeros; differences are between points of the output.

    Its grid has `FINENESS` points from one input to the next, `step` between outputs.
    """
    layer = GaussDerConv(3, 1.3, boundary=boundary)
    layer.build((None, 11, 2))
    randomize(layer)
    signal = drawn(2, 11, 2)
    grid, target = Grid((5,), 1.0), Grid((4,), step / FINENESS)
    y = numpy(convolved_on_grid(layer, signal, grid, target, boundary) - layer.bias)
    wide = np.pad(signal, [(0, 0), (40, 40), (0, 0)], mode=mode)
    fine = np.zeros((2, FINENESS * wide.shape[1], 2))
    fine[:, ::FINENESS] = wide * FINENESS
    narrow = math.sqrt(1.3**2 - target.step**2 / 4) * FINENESS
    smooth = gaussian_filter1d(fine, narrow, axis=1, truncate=9)
    at = FINENESS * 45 + step * np.arange(-4, 5)
    ahead, here, behind = (smooth[:, at + k * step] for k in (1, 0, -1))
    sigma = 1.3 * FINENESS / step
    jet = sigma * (ahead - behind) / 2, sigma**2 * (ahead - 2 * here + behind)
    expected = sum(x @ c for x, c in zip(jet, numpy(layer.kernel), strict=True))
    assert_near(y, expected, 1e-5)


def kernel_errors(density, corrected=True):
    """Of each kernel of a layer with σ = 1 against the Gaussian derivative itself.

    Differences of what smoothing makes of an impulse, by closed forms.
    """
    layer, step = GaussDerConv(1, 1.0, zero_order=True), 1 / density
    layer.build((None, 9, 9, 1))
    sigma = presmoothing(1.0, step) if corrected else 1.0
    points = step * np.arange(-9, 10)

    def along(order, sigma, x):
        factor = (1.0, -x / sigma**2, (x**2 - sigma**2) / sigma**4)[order]
        return factor * np.exp(-(x**2) / (2 * sigma**2)) / sigma

    smooth = np.outer(*[along(0, sigma, points)] * 2)[None, ..., None].astype("float32")
    for k, alpha in enumerate(layer.indices):
        jet = np.zeros(layer.kernel.shape)
        jet[k] = 1 / kernels.multinomial(alpha)
        layer.kernel.assign(jet)
        found = differences_combined(
            layer, smooth, density, VARIANCE if corrected else 0
        )
        exact = np.outer(*[along(order, 1.0, points[1:-1]) for order in alpha])
        yield np.linalg.norm(numpy(found)[0, ..., 0] - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize(("density", "most"), [(1.0, 0.2), (1.4, 0.09), (2.0, 0.04)])
def test_kernels_on_a_grid_are_nearly_gaussian_derivatives(density, most):
    """Differences blur; smoothing at the full σ would leave twice as large errors."""
    assert max(kernel_errors(density)) < most
    assert max(kernel_errors(density, corrected=False)) > 2 * most


def test_whole_maps_end_as_their_layers_say_and_windows_do_not():
    shape, images = (15, 15, 2), drawn(2, 15, 15, 2)

    def scores(selection, boundary):
        first = GaussDerConv(3, 1.0, activation="relu", use_bias=False)
        second = GaussDerConv(3, 1.4, boundary=boundary)
        layer = built(network(shape, first, second, selection=selection), shape)
        return numpy(layer(images))

    assert_near(scores("center", "zero"), scores("center", "symmetric"), 1e-6)
    difference = scores("max", "zero") - scores("max", "symmetric")
    assert np.abs(difference).max() > 1e-2


def test_image_is_smoothed_on_pixels_of_its_own():
    """Layers at each position may come first, and see the pixels."""
    shape = (16, 16, 1)
    plain = network(shape, GaussDerConv(2, 1.0))
    scaled = network(shape, layers.Rescaling(2.0), plain.layers[1])
    layer = built(plain, shape)
    images = drawn(2, *shape)
    assert_near(channels(scaled)(images / 2), layer(images), 1e-5)


def test_statistics_are_those_of_all_channels_together():
    """Whole maps differ in size from channel to channel: each point counts once."""
    shape, scales = (20, 20, 1), (0.5, 1.0, 4.0)
    conv, bn = GaussDerConv(3, 1.0), layers.BatchNormalization(momentum=0.0)
    images = drawn(3, *shape)
    head = GaussDerConv(2, 1.3)
    whole = network(shape, conv, bn, head, selection="max")
    whole = built(whole, shape, scales=scales)
    whole(images, training=True)
    # Each channel alone, and weighted by the points of its map.
    means, seconds, counts = [], [], []
    for scale in scales:
        points = 2 * int(np.ceil(20 / (2 * scale))) + 1
        channels(whole.network, [scale])(images, training=True)
        mean = numpy(bn.moving_mean)
        means.append(mean)
        seconds.append(numpy(bn.moving_variance) + mean**2)
        counts.append(points**2)
    mean = np.average(means, axis=0, weights=counts)
    variance = np.average(seconds, axis=0, weights=counts) - mean**2
    whole(images, training=True)
    assert_near(bn.moving_mean, mean, 1e-4)
    assert_near(bn.moving_variance, variance, 1e-4)


def test_a_score_is_of_its_own_scale():
    """Two convolutions look beyond the edges, and a mean sees all positions."""
    shape, images = (20, 20, 2), drawn(2, 20, 20, 2)
    convs = [GaussDerConv(3, sigma, activation="relu") for sigma in (1.0, 1.3)]
    parts = [keras.Input(shape), *convs, layers.GlobalAveragePooling2D()]
    pooled = keras.Sequential(parts)
    together = built(pooled, shape, scales=(0.5, 1.0, 2.0))
    alone = channels(pooled, [2.0])
    assert_near(numpy(together(images))[:, 2], numpy(alone(images))[:, 0], 1e-5)


@pytest.mark.parametrize("selection", ("center", "max"))
def test_activity_regularizer_is_of_the_activated_maps(selection):
    shape, images = (15, 15, 2), drawn(2, 15, 15, 2)
    options = {"activation": "relu", "activity_regularizer": "l2"}
    conv = GaussDerConv(3, 1.0, **options)
    apart = GaussDerConv(3, 1.0), layers.ReLU(), layers.ActivityRegularization(l2=0.01)
    ours, theirs = (network(shape, *of, selection=selection) for of in ([conv], apart))
    weights = built(ours, shape).get_weights()

    def loss(of, *scales):
        layer = built(of, shape, scales=scales)
        layer.set_weights(weights)
        layer(images)
        return float(numpy(sum(layer.losses)))

    fine, coarse = loss(ours, 0.7), loss(ours, 1.4)
    assert coarse == pytest.approx(loss(theirs, 1.4), rel=1e-5)
    assert abs(fine / coarse - 1) > 0.01
    assert loss(ours, 0.7, 1.4) == pytest.approx((fine + coarse) / 2, rel=1e-5)


def test_what_is_frozen_stays_frozen():
    normalization = layers.BatchNormalization()
    channel = network((9, 9, 2), GaussDerConv(3, 1.0), normalization)
    layer = channels(channel, trainable=False)
    before = [numpy(weight) for weight in layer.weights]
    layer(drawn(2, 9, 9, 2), training=True)
    assert not layer.trainable_weights
    for weight, old in zip(layer.weights, before, strict=True):
        np.testing.assert_array_equal(numpy(weight), old)


def test_an_activation_over_channels_is_of_channels_wherever_they_are():
    images, found = drawn(2, 9, 8, 2), []
    for data_format in ("channels_last", "channels_first"):
        options = {"activation": "softmax", "data_format": data_format}
        conv = GaussDerConv(3, 1.0, **options)
        first = data_format == "channels_first"
        x = np.moveaxis(images, -1, 1) if first else images
        conv.build(x.shape)
        conv.set_weights(found[0][0] if found else conv.get_weights())
        y = numpy(conv(x))
        found.append((conv.get_weights(), np.moveaxis(y, 1, -1) if first else y))
    assert_near(found[1][1], found[0][1], 1e-6)
    assert_near(found[0][1].sum(-1), np.ones((2, 9, 8)), 1e-6)


class Channel(keras.Model):
    """Of layers that are built by its first call, and make others then."""

    def __init__(self, conv=GaussDerConv):
        super().__init__()
        self.parts = [conv(3, 1.0), GaussDerResidualBlock(4, 1.3)]
        self.parts += [conv(2, 1.7), SpatialSelection("center")]

    def call(self, inputs):
        for layer in self.parts:
            inputs = layer(inputs)
        return inputs


class Preset(GaussDerConv):
    """A subclass with the same `call`."""

    def __init__(self, filters, sigma, **options):
        super().__init__(filters, sigma, zero_order=True, **options)


@pytest.mark.parametrize("density", [1.0, None])
def test_a_subclassed_network_and_layer_are_those_of_keras(density):
    shape, images = (21, 21, 1), drawn(2, 21, 21, 1)
    ours = built(Channel(Preset), shape, density=density)
    parts = [GaussDerConv(3, 1.0, zero_order=True), GaussDerResidualBlock(4, 1.3)]
    parts += [GaussDerConv(2, 1.7, zero_order=True)]
    theirs = built(network(shape, *parts), shape, density=density)
    theirs.set_weights(ours.get_weights())
    assert_near(ours(images), numpy(theirs(images)), 1e-5)


def test_images_of_another_size_are_refused_where_a_model_has_one():
    of_one_size, of_any = (built(small((n, n, 2)), (17, 17, 2)) for n in (17, None))
    with pytest.raises(ValueError, match=r"value 17, but .*\(2, 19, 17, 2\)"):
        of_one_size(drawn(2, 19, 17, 2))
    assert of_any(drawn(2, 19, 17, 2)).shape == (2, len(SCALES), 4)


def test_inference_is_training_with_the_same_statistics():
    model = built(small(), (17, 17, 2))
    images = drawn(4, 17, 17, 2)
    for layer in model.network._flatten_layers():
        if isinstance(layer, layers.BatchNormalization):
            layer.momentum = 0.0
    trained = numpy(model(images, training=True))
    assert_near(model(images, training=False), trained, 2e-3)


def test_feature_maps_are_at_the_pixels():
    """As those of kernels on the pixels, for a smooth image and dense samples."""
    options = {"sigma0": [3.0], "boundary": "symmetric", "density": 4.0}
    model = gauss_der_resnet((33, 33, 1), 4, [3, 3], 1.3, **options)
    x = np.linspace(-1, 1, 33)
    images = np.exp(-4 * ((x - 0.2) ** 2 + (x[:, None] + 0.1) ** 2))[None, ..., None]
    grids, exact = (
        numpy(
            feature_extractor(with_sigma0(model, [3.0], density), "stem_conv")(images)
        )
        for density in (4.0, None)
    )
    error = np.abs(grids - exact)[:, :, 4:-4, 4:-4].max()
    assert error < 0.02 * np.abs(exact).max()


def test_windows_are_those_of_the_influence():
    """As wide as they are said to be, none beyond that which it is computed from."""
    sigmas = (1.0, 1.3, 1.3**2, 1.3**3)
    channel = scale_channel((90, 90, 1), 4, [3, 3, 3, 3], 1.3)
    layer = built(channel, (90, 90, 1), receptive_field=6.0)
    assert layer.plan.groups == [SCALES]  # all channels in one batch
    maps = [call for call in layer.plan.calls if call.convolutions]
    for k, call in enumerate(maps[:-1]):
        (grid,) = layer.plan.grids(call.output, None)
        variance = sum(2 * s**2 for s in sigmas[k + 1 :]) + 2 * 1.3 ** (2 * 4)
        assert grid.halves == (int(np.ceil(6.0 * np.sqrt(variance) / grid.step)),) * 2
        if call.convolutions == 2:
            (before,) = layer.plan.grids(call.maps[0], None)
            (middle,) = layer.plan.middles(call, [grid])
            reaches = [of.halves[0] * of.step for of in (before, middle, grid)]
            assert reaches == sorted(reaches, reverse=True)
            wider = np.sqrt(variance + sigmas[k] ** 2)
            assert middle.halves[0] == np.ceil(6.0 * wider / middle.step)


def test_learned_scales():
    """From another initial value to the same scale, a channel is the same."""
    shape, images = (17, 17, 2), drawn(2, 17, 17, 2)

    def learned(scale):
        head = GaussDerConv(2, 1.8 * scale, trainable_sigma=True)
        first = GaussDerConv(3, 1.2 * scale, trainable_sigma=True)
        return network(shape, first, layers.ReLU(), head)

    fixed = network(shape, GaussDerConv(3, 1.2), layers.ReLU(), GaussDerConv(2, 1.8))
    # Windows are those of the initial scales: wide ones matter little.
    layer, reference = (
        built(of, shape, receptive_field=2.5) for of in (learned(1.1), fixed)
    )
    weights = reference.get_weights()
    sigmas = [np.log(1.2), np.log(1.8)]
    layer.set_weights([*weights[:2], sigmas[0], *weights[2:], sigmas[1]])
    assert_near(layer(images), reference(images), 3e-2)
    layer, reference = built(learned(1.0), shape), built(fixed, shape)
    layer.set_weights([*weights[:2], sigmas[0], *weights[2:], sigmas[1]])
    reference.set_weights(weights)
    assert_near(layer(images), reference(images), 1e-4)


class Composite(layers.Layer):
    """A layer of one's own that consists of others."""

    def __init__(self):
        super().__init__()
        self.conv = GaussDerConv(3, 1.2)
        self.normalization = layers.BatchNormalization()

    def build(self, input_shape):
        self.conv.build(input_shape)
        self.normalization.build(self.conv.compute_output_shape(input_shape))

    def call(self, inputs, training=None):
        x = self.normalization(self.conv(inputs), training=training)
        return keras.ops.relu(x) * 2.0


class Frozen(Composite):
    """Whose word on the mode of its normalization stands."""

    def call(self, inputs, training=None):
        return self.normalization(self.conv(inputs), training=False)


class Gated(Composite):
    """Applies a function of a weight of its own."""

    def build(self, input_shape):
        super().build(input_shape)
        self.gate = self.add_weight(shape=(3,), name="gate")

    def call(self, inputs):
        return self.conv(inputs) * keras.ops.sigmoid(self.gate)


class Scaled(Gated):
    """Applies the weight itself."""

    def call(self, inputs):
        return self.conv(inputs) * self.gate


class Noisy(Composite):
    def __init__(self):
        super().__init__()
        self.seed = keras.random.SeedGenerator(0)

    def call(self, inputs):
        return self.conv(inputs) + keras.random.normal((3,), seed=self.seed)


class SometimesTwice(Composite):
    """Does something else in training, whatever the default of the argument."""

    def call(self, inputs, training=False):
        x = self.conv(inputs)
        return x * 2.0 if training else x


class SometimesLarger(Composite):
    """The same operation, by another number."""

    def call(self, inputs, training=None):
        return self.conv(inputs) * (2.0 if training else 1.0)


class Chosen(Composite):
    """Has a list of inputs, and an option."""

    def build(self, input_shape):
        super().build(input_shape[0])

    def call(self, inputs, first=True, training=False):
        x, other = inputs if first else reversed(inputs)
        return self.normalization(self.conv(x), training=training) + other


@pytest.mark.parametrize("density", (1.0, None))
@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (Gated, "on weights, constants or random numbers alone"),
        (Noisy, "on weights, constants or random numbers alone"),
        (SometimesTwice, "something else in training"),
        (SometimesLarger, "something else in training"),
    ],
)
def test_what_a_trace_cannot_follow_is_refused(layer, reason, density):
    shape = (17, 17, 2)
    with pytest.raises(ValueError, match=f"type {layer.__name__} .*{reason}"):
        built(network(shape, layer()), shape, density=density)


@pytest.mark.parametrize("density", (1.0, None))
def test_a_weight_of_ones_own_is_followed(density):
    shape, images, own = (17, 17, 2), drawn(2, 17, 17, 2), Scaled()
    layer = built(network(shape, own), shape, density=density)
    before = numpy(layer(images))
    own.gate.assign(2 * own.gate)
    assert_near(layer(images), 2 * before, 1e-5)


def test_a_layer_may_be_called_by_keyword():
    shape, images = (17, 17, 2), drawn(2, 17, 17, 2)
    own, x = layers.BatchNormalization(), keras.Input(shape)
    parts = GaussDerConv(3, 1.2), GaussDerConv(2, 1.5), SpatialSelection()
    first, second, last = parts
    named = keras.Model(x, last(second(own(inputs=first(x)))))
    expected = built(network(shape, first, own, second), shape)
    found = channels(named)
    for training in (False, True):
        moving = own.get_weights()
        y = found(images, training=training)
        own.set_weights(moving)
        assert_near(y, expected(images, training=training), 1e-6)


def test_a_network_has_one_input_and_a_model_inside_may_have_two():
    shape, images = (9, 9, 2), drawn(2, 9, 9, 2)
    one, two = keras.Input(shape), keras.Input(shape)
    both = keras.Model([one, two], GaussDerConv(3, 1.0)(one + 2 * two))
    with pytest.raises(ValueError, match="has 2 inputs, and receives 1"):
        channels(both).build((None, *shape))
    image = keras.Input(shape)
    inside = keras.Model(image, SpatialSelection()(both([image, 3 * image])))
    conv = both.layers[-1]
    plain = network(shape, layers.Rescaling(7.0), conv)
    assert_near(channels(inside)(images), channels(plain)(images), 1e-5)


@pytest.mark.parametrize("training", (False, True))
@pytest.mark.parametrize("first", (False, True))
def test_inputs_in_a_list_and_options_of_ones_own_layer(first, training):
    shape, images, own = (17, 17, 2), drawn(2, 17, 17, 2), Chosen()
    x = image = keras.Input(shape)
    both = [GaussDerConv(3, 1.0)(x), GaussDerConv(3, 1.5)(x)]
    chosen = built(
        keras.Model(image, SpatialSelection()(own(both, first=first))), shape
    )
    convolved, other = both if first else reversed(both)
    x = own.normalization(own.conv(convolved)) + other
    plain = channels(keras.Model(image, SpatialSelection()(x)))
    expected = plain(images, training=training)
    assert_near(chosen(images, training=training), expected, 1e-5)


@pytest.mark.parametrize("density", (1.0, None))
def test_a_layer_of_ones_own_decides_on_the_mode_of_its_parts(density):
    shape, images = (17, 17, 2), drawn(2, 17, 17, 2)
    layer = built(network(shape, Frozen()), shape, density=density)
    assert_near(layer(images, training=True), layer(images, training=False), 1e-6)


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="there is none")
def test_rematerialized_layers_have_the_same_gradients():
    shape, images, found = (12, 10, 2), drawn(2, 12, 10, 2), []
    for mode in (None, "list_of_layers"):
        scope = {
            "mode": mode,
            "layer_names": ["conv", "block", "plain"] if mode else [],
        }
        with keras.RematScope(**scope):
            inner = (
                GaussDerConv(3, 1.0, activation="tanh", name="conv"),
                GaussDerResidualBlock(3, 1.3, name="block"),
                layers.Conv2D(3, 3, padding="same", name="plain"),
            )
            layer = built(network(shape, *inner), shape)
        y = numpy(layer(images))
        found.append([y, *gradients(layer, images, np.ones(y.shape))])
    for plain, again in zip(*found, strict=True):
        np.testing.assert_allclose(again, plain, rtol=1e-4, atol=1e-5)


def test_a_layer_that_consists_of_others_is_followed():
    shape, composite = (17, 17, 2), Composite()
    ours = built(network(shape, composite, GaussDerConv(2, 1.5)), shape)
    inner = composite.conv, composite.normalization, layers.ReLU()
    plain = network(shape, *inner, layers.Rescaling(2.0), ours.network.layers[2])
    images = drawn(2, *shape)
    for training in (False, True):
        expected = channels(plain)(images, training=training)
        assert_near(ours(images, training=training), expected, 1e-5)


def test_an_ordinary_layer_and_a_global_pooling_work():
    shape = (24, 24, 1)
    inner = (
        GaussDerConv(4, 1.0, activation="relu"),
        layers.Conv2D(4, 3, padding="same"),
        layers.LayerNormalization(),
        layers.GlobalAveragePooling2D(),
        layers.Dense(3),
    )
    layer = built(network(shape, *inner, selection=None), shape)
    assert numpy(layer(drawn(2, *shape))).shape == (2, len(SCALES), 3)


@pytest.mark.parametrize("selection", cases(("center", "max"), ("max",)))
def test_squeeze_and_excitation_weighs_each_channel_by_its_own(selection):
    """What has no positions meets the map of the same scale and image again."""
    shape = (24, 20, 2)
    x = image = keras.Input(shape)
    x = GaussDerConv(4, 1.0, activation="relu")(x)
    weights = layers.Reshape((1, 1, 4))(layers.GlobalAveragePooling2D()(x))
    x = layers.Multiply()([x, layers.Dense(4, activation="sigmoid")(weights)])
    channel = keras.Model(image, SpatialSelection(selection)(x))
    layer, images = built(channel, shape), drawn(3, *shape)
    scores = numpy(layer(images))
    for k, scale in enumerate(SCALES):
        alone = [numpy(channels(channel, [scale])(one[None]))[0, 0] for one in images]
        assert_near(scores[:, k], np.stack(alone), 1e-5)


@pytest.mark.parametrize("selection", ("center", "max"))
def test_points_are_as_far_apart_as_scales(selection):
    """And half as far before a maximum; a finer layer that follows needs its points."""
    channel = scale_channel((90, 90, 1), 4, [3] * 4, 1.3, spatial_selection=selection)
    finer = GaussDerConv(2, 2.0), GaussDerConv(2, 1.0), GaussDerConv(2, 4.0)
    for of, sigmas in (
        (channel, 1.3 ** np.arange(5)),
        (network((90, 90, 1), *finer, selection=selection), np.array([1.0, 1.0, 4.0])),
    ):
        plan = built(of, (90, 90, 1), density=2.0).plan
        steps = [plan.step(call.output) for call in plan.calls if call.convolutions]
        sigmas[-1] /= 2 if selection == "max" else 1
        np.testing.assert_allclose(steps, sigmas / 2)


def test_many_skip_connections_are_planned_at_once(monkeypatch):
    """Not twice as long for each of them."""
    asked, is_pointwise = [], _network.Network.is_pointwise

    def counting(self, call):
        asked.append(call)
        return is_pointwise(self, call)

    monkeypatch.setattr(_network.Network, "is_pointwise", counting)
    shape = (16, 16, 1)
    x = image = keras.Input(shape)
    x = GaussDerConv(2, 1.0)(x)
    for _ in range(40):
        x = layers.Add()([x, layers.ReLU()(x)])
    channel = keras.Model(image, SpatialSelection("center")(GaussDerConv(2, 1.4)(x)))
    channels(channel).build((None, *shape))
    assert 80 <= len(asked) <= 800  # for 80 layers


def test_images_may_be_integers():
    """Where a skip connection takes them to the grid as they are."""
    shape = (16, 16, 1)
    layer = built(network(shape, GaussDerResidualBlock(2, 1.0)), shape)
    images = np.arange(512).reshape(2, *shape) % 200
    assert_near(layer(images.astype("uint8")), layer(images.astype("float32")), 1e-5)


def test_double_precision_is_kept(float64):
    """All derivatives of a constant vanish, but for rounding."""
    keras.config.set_dtype_policy("float64")
    conv = GaussDerConv(1, 1.0, boundary="symmetric")
    layer = channels(network((16, 16, 1), conv), dtype="float64")
    assert abs(numpy(layer(np.ones((1, 16, 16, 1))))).max() < 1e-12


@pytest.mark.seen_on_tensorflow("the same code runs the channels")
def test_result_does_not_depend_on_which_channels_run_beside():
    layer = built(small(), (17, 17, 2))
    images = drawn(2, 17, 17, 2)
    alone = channels(layer.network, SCALES[-1:])(images)
    assert_near(alone[:, 0], layer(images)[:, -1], 1e-5)


def renormalization():
    try:
        return layers.BatchNormalization(renorm=True)
    except (TypeError, ValueError):
        pytest.skip("Keras has it since 3.14")


class OwnNormalization(layers.BatchNormalization):
    def call(self, inputs, training=None, mask=None):
        return 0 * inputs + 7


@pytest.mark.parametrize("density", [1.0, None])
def test_a_normalization_of_ones_own_does_what_it_says(density):
    shape = (17, 17, 2)
    layer = channels(
        network(shape, GaussDerConv(3, 1.0), OwnNormalization()), density=density
    )
    for training in (False, True):
        np.testing.assert_array_equal(
            numpy(layer(drawn(2, *shape), training=training)), 7
        )


def test_pixels_may_be_normalized_first_and_must_have_as_many_channels():
    shape = (17, 17, 2)
    first = layers.Normalization(mean=[1.0, 2.0], variance=[4.0, 9.0])
    layer = built(network(shape, first, GaussDerConv(3, 1.0)), shape)
    images = drawn(2, *shape)
    plain = channels(network(shape, *layer.network.layers[2:-1]))
    assert_near(plain((images - [1, 2]) / [2, 3]), numpy(layer(images)), 1e-5)
    with pytest.raises(ValueError, match=r"value 2, but received .*\(2, 17, 17, 1\)"):
        layer(images[..., :1])


class OwnConv(GaussDerConv):
    """What another `call` does with a map, and at which scale, is not known."""

    def call(self, inputs):
        return super().call(inputs)


REFUSED = {
    r"changes the size of its maps .*\(8, 8\).*double `sigma`": lambda: network(
        (17, 17, 2), GaussDerConv(3, 1.0), layers.MaxPooling2D(2)
    ),
    "not known to act on each pixel": lambda: network(
        (17, 17, 2), layers.Conv2D(3, 3, padding="same"), GaussDerConv(3, 1.0)
    ),
    "no Gaussian derivative": lambda: network((17, 17, 2), layers.ReLU()),
    "'own_conv.* has a `call` of its own": lambda: network(
        (17, 17, 2), OwnConv(3, 2.0)
    ),
    "no map of an image": lambda: network(
        (17, 17, 2),
        GaussDerConv(3, 1.0),
        layers.Reshape((-1, 3)),
        GaussDerConv(3, 1.0),
        selection=None,
    ),
    "without statistics of all scales": lambda: network(
        (17, 17, 2), GaussDerConv(3, 1.0), renormalization()
    ),
    r"gives \(None, .* on a grid": lambda: network(
        (17, 17, 2),
        GaussDerConv(3, 1.0),
        layers.Flatten(),
        layers.Dense(2),
        selection=None,
    ),
    r"p_re_lu.* gives \(None, 17, 17, 3\) instead of \(None, 1, 1, 3\)": lambda: (
        network((17, 17, 2), GaussDerConv(3, 1.0), layers.PReLU())
    ),
    "layer_normalization.* gives an error": lambda: network(
        (17, 17, 2), GaussDerConv(3, 1.0), layers.LayerNormalization(axis=(1, 2, 3))
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_evaluated_is_refused(reason):
    layer = channels(REFUSED[reason]())
    with pytest.raises(ValueError, match=reason):
        layer.build((None, 17, 17, 2))


def test_other_channels_and_scales_beyond_the_image_are_refused():
    layer = channels(small())
    with pytest.raises(ValueError, match=r"to have value 2.*shape"):
        layer.build((None, 17, 17, 3))
    with pytest.raises(ValueError, match=r"`sigma` must not exceed"):
        channels(small(), [1.0, 12.0]).build((None, 17, 17, 2))


@pytest.mark.parametrize("density", (0, -1.0, "fine", float("nan"), True))
def test_wrong_density(density):
    with pytest.raises(ValueError, match=r"`density`.*Received: density="):
        channels(small(), density=density)
