"""Windows of `ScaleChannels`: the same function as on cut-outs of whole maps."""

import keras
import numpy as np
import pytest
from keras import layers

from keras_gdrn.layers import (
    GaussDerConv,
    GaussDerResidualBlock,
    ScaleChannels,
    SpatialSelection,
)
from keras_gdrn.models import scale_channel
from tests._cases import cases
from tests._gradients import DTYPE, EXACT, gradients
from tests.layers._contract import assert_near, drawn, numpy, randomize
from tests.layers._windowed import WindowedChannels, deviations

SCALES = cases((0.5, 1.0, 2.0), (1.0, 2.0))
# Nothing is lost to the low-rank form.
EXACTLY = {"epsilon": 1e-13 if EXACT else 1e-6}
TOLERANCE = 1e-9 if EXACT else 2e-4


def images(*shape):
    # Exact in float32, to which an `Input` casts them.
    return drawn(2, *shape).astype(DTYPE)


def built(network, shape, extent, scales=SCALES):
    # Nothing is left out but what is outside the windows.
    layer = ScaleChannels(network, scales, extent, tolerance=1e-9, dtype=DTYPE)
    layer.build((None, *shape))
    randomize(layer)
    return layer


@pytest.fixture(autouse=True)
def precise():
    keras.config.set_dtype_policy(DTYPE)


def conv(filters=3, sigma=1.0, **options):
    options = {"activation": "tanh", **EXACTLY, **options}
    return GaussDerConv(filters, sigma, **options)


def block(filters=3, sigma=1.3, **options):
    return GaussDerResidualBlock(filters, sigma, **EXACTLY, **options)


def functional(shape, *inner):
    image = keras.Input(shape, dtype=DTYPE)
    x = image
    for layer in inner:
        x = layer(x)
    return keras.Model(image, x)


def operations(x):
    return keras.ops.relu(0.5 * x + 1.0) - keras.ops.tanh(x)


class Gain(layers.Layer):
    acts_at_each_position = True

    def call(self, inputs):
        return 2 * inputs


def branches(x):
    y = layers.Add()([conv(sigma=2.0)(x), conv(sigma=0.5)(x)])
    return layers.Concatenate()([y, x])


def plain():
    return [scale_channel(SHAPE, 3, [4, 4], 1.3, residual=False, **EXACTLY)]


def blocks():
    return [conv(), block(4), block(4), conv(2, 1.7), SpatialSelection()]


FIRST = {"data_format": "channels_first"}
SHAPE = (24, 17, 2)
SHAPES = {
    "one dimension": (37, 2),
    "three dimensions": (11, 12, 9, 2),
    "channels first": (2, 24, 17),
    "symmetric far from the edge": (64, 61, 2),
}
NETWORKS = {
    "plain": plain,
    "odd and even": blocks,
    "one dimension": blocks,
    "three dimensions": lambda: [conv(), conv(2, 1.1), SpatialSelection()],
    "channels first": lambda: [
        conv(**FIRST),
        layers.BatchNormalization(axis=1),
        block(3, **FIRST),
        SpatialSelection(**FIRST),
    ],
    "nested, separable, of order 3, with the zero-order term": lambda: [
        conv(4, separable=True),
        functional((24, 17, 4), block(4, separable=True), layers.Dropout(0.3)),
        keras.Sequential([conv(2, 1.7, order=3, zero_order=True)]),
        SpatialSelection(),
    ],
    "symmetric far from the edge": lambda: [conv(), conv(3, 0.6), SpatialSelection()],
    "pointwise layers": lambda: [
        conv(),
        layers.BatchNormalization(),
        layers.LayerNormalization(),
        layers.PReLU(shared_axes=(1, 2), alpha_initializer="he_uniform"),
        layers.Conv2D(4, 1),
        layers.Dense(3),
        layers.Dropout(0.5),
        operations,
        Gain(),
        conv(2, 1.7),
        SpatialSelection(),
        layers.Dense(5),
    ],
    "branches": lambda: [conv(3, 0.7), branches, conv(3, 1.1), SpatialSelection()],
}
# The branches that meet have the window of the larger one.
FIRST_REACH, BRANCHES, LAST = deviations([0.7, 2.0, 1.1])
REACHES = {"branches": [FIRST_REACH, BRANCHES, BRANCHES, LAST]}
ON_JAX = [("one dimension", 2.5, False), ("plain", 2.5, True)]
EVERY = [(n, 2.5, False) for n in NETWORKS] + [("odd and even", 1.0, True), ON_JAX[1]]


@pytest.mark.parametrize(("name", "extent", "training"), cases(EVERY, ON_JAX))
def test_values_and_gradients_are_those_of_cut_outs(name, extent, training):
    """Of whole maps. Batch statistics are of the windows."""
    shape = SHAPES.get(name, SHAPE)
    network, x = functional(shape, *NETWORKS[name]()), images(*shape)
    layer = built(network, shape, extent)
    oracle = WindowedChannels(network, SCALES, extent, REACHES.get(name))
    expected = numpy(oracle(x, training=training))
    upstream = np.random.default_rng(3).normal(size=expected.shape)
    of_both = [gradients(one, x, upstream, training) for one in (layer, oracle)]
    for ours, theirs in zip(*of_both, strict=True):
        largest = max(np.abs(theirs).max(), 1e-3)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e2 * TOLERANCE * largest)
    assert_near(layer(x, training=training), expected, TOLERANCE)
    assert layer(x[:0]).shape == (0, *expected.shape[1:])
    if not training:
        whole, wide = (
            numpy(ScaleChannels(network, SCALES, field, dtype=DTYPE)(x))
            for field in (None, 99.0)
        )
        np.testing.assert_allclose(wide, whole, rtol=TOLERANCE, atol=TOLERANCE)
        # Something has been cut off.
        assert np.abs(whole - expected).max() > 3 * TOLERANCE * np.abs(expected).max()


# Independence of the canvas


@pytest.mark.seen_on_tensorflow("windows are cut-outs there too, see above")
@pytest.mark.parametrize("boundary", ["zero", "symmetric"])
def test_scores_do_not_depend_on_what_is_outside_the_window(boundary):
    """Windows of the inputs are 10, 18 and 36 pixels wide: 20 hold all but the last."""
    network = scale_channel((None, None, 2), 3, [4, 4], 1.5, boundary=boundary)
    layer = built(network, (None, None, 2), 2.0)
    whole = ScaleChannels(network, SCALES, None, dtype=DTYPE)
    x = images(40, 40, 2)
    center = x[:, 10:30, 10:30]
    difference = np.abs(numpy(layer(x)) - numpy(layer(center)))
    assert difference[:, :-1].max() < TOLERANCE < difference[:, -1].max()
    difference = np.abs(numpy(whole(x)) - numpy(whole(center)))
    assert difference[:, :-1].max() > 10 * TOLERANCE


# Where windows can be had


@keras.saving.register_keras_serializable(package="tests")
class Blurred(GaussDerConv):
    """What a subclass does is not known."""


def flipped(x):
    return keras.ops.flip(x, axis=1)


SELECTION = SpatialSelection()
LARGEST = SpatialSelection("max", name="largest")
ONE_MASK = layers.AlphaDropout(0.3, noise_shape=(None, 1, 1, 2))
WITHOUT = {
    "does not end in a `SpatialSel": [conv()],
    "'largest' selects the spatial maximum": [conv(), LARGEST],
    "'b' learns its scale": [block(trainable_sigma=True, name="b"), SELECTION],
    "'wide' of type Conv2D may look at several positions": [
        conv(),
        layers.Conv2D(3, 3, name="wide"),
        SELECTION,
    ],
    "'s' of type Conv2D": [layers.Conv2D(3, 1, strides=2, name="s"), SELECTION],
    "BatchNormalization": [layers.BatchNormalization(axis=1), SELECTION],
    "of type AlphaDropout": [ONE_MASK, SELECTION],
    "'own' of type Blurred": [Blurred(3, 1.0, name="own"), SELECTION],
    "of type Flip": [conv(), flipped, SELECTION],
    "several data formats": [conv(16, **FIRST), conv(), SELECTION],
}


@pytest.mark.seen_on_tensorflow("the plan is made by Python")
@pytest.mark.filterwarnings("ignore:`ScaleChannels` changes the scale")
@pytest.mark.parametrize("reason", WITHOUT)
def test_windows_that_cannot_be_had(reason):
    network, x = functional((16, 16, 2), *WITHOUT[reason]), images(16, 16, 2)
    for extent in ("auto", None):
        layer = ScaleChannels(network, SCALES, extent, dtype=DTYPE)
        assert layer(x).shape[:2] == (2, len(SCALES))
        assert layer._accuracy.extent is None
    message = rf"^`receptive_field` takes.*{reason}.*receptive_field=3.0$"
    with pytest.raises(ValueError, match=message):
        ScaleChannels(network, SCALES, 3.0)(x)


@pytest.mark.slow
@pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="XLA is not for PyTorch here"
)
def test_xla_and_bfloat16():
    keras.config.set_dtype_policy("mixed_bfloat16")
    network = scale_channel((20, 20, 2), 3, [4], 1.3)
    image = keras.Input((20, 20, 2))
    scores = ScaleChannels(network, (1.0, 2.0), 3.0)(image)
    model = keras.Model(image, layers.GlobalMaxPooling1D(dtype="float32")(scores))
    model.compile("adamw", "sparse_categorical_crossentropy", jit_compile=True)
    x = images(20, 20, 2).astype("float32")
    losses = [model.train_on_batch(x, np.arange(2)) for _ in range(2)]
    assert np.all(np.isfinite(losses))
