"""`GaussDerResidualBlock`: contract, and the equation written out in its parts."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock
from tests._cases import cases
from tests._gradients import DTYPE, assert_gradients_are_slopes
from tests.layers._contract import Case, drawn, each, randomize


def block(filters=4, sigma=1.3, **fixed):
    return lambda **kwargs: GaussDerResidualBlock(filters, sigma, **{**fixed, **kwargs})


def parameters(jet: int, channels: int, filters: int) -> int:
    """Two convolutions with bias, each with the scale and shift of its BN."""
    convolutions = jet * (channels + filters) * filters + 2 * filters + 4 * filters
    projection = channels * filters + filters + 2 * filters
    return convolutions + (projection if channels != filters else 0)


# Batch normalization takes away what a bias adds.
BIASES = ("conv1/bias", "conv2/bias", "projection/bias", "depthwise_bias")

CASES = {
    "other width": Case(
        block(4), (8, 6, 3), parameters(5, 3, 4), without_gradient=BIASES
    ),
    "same width, 3-D, channels first": Case(
        block(2, order=1, data_format="channels_first"),
        (2, 4, 3, 5),
        parameters(3, 2, 2),
        (2, None, None, None),
        BIASES,
    ),
    "separable, zero order, mirror": Case(
        block(4, separable=True, zero_order=True, boundary="symmetric"),
        (8, 6, 3),
        # depthwise with bias, pointwise with bias, BN; 1×1, bias, BN
        (6 * 3 + 3 + 3 * 4 + 4 + 8) + (6 * 4 + 4 + 4 * 4 + 4 + 8) + (3 * 4 + 4 + 8),
        (None, 6, 3),
        BIASES,
    ),
    "1-D, trainable sigma, no bias": Case(
        block(4, trainable_sigma=True, use_bias=False),
        (9, 3),
        parameters(2, 3, 4) - 3 * 4 + 2,
    ),
}


@each(CASES, on_jax=("other width",))
def test_contract(case, check):
    check(case)


def built(shape, *args, **kwargs):
    layer = GaussDerResidualBlock(*args, **kwargs)
    layer.build((None, *shape))
    randomize(layer)
    return layer, drawn(2, *shape)


def assert_close(actual, expected):
    actual, expected = map(ops.convert_to_numpy, (actual, expected))
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def normalized(bn, x, training):
    """Batch normalization written out, epsilon 1e-5."""
    mean, variance = bn.moving_mean.numpy(), bn.moving_variance.numpy()
    if training:
        axes = tuple(range(x.ndim - 1))
        mean, variance = x.mean(axes), x.var(axes)
    return bn.gamma.numpy() * (x - mean) / np.sqrt(variance + 1e-5) + bn.beta.numpy()


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("filters", cases([3, 4], [4]))
def test_is_the_equation(filters, training):
    layer, x = built((8, 6, 3), filters, 1.1)
    layer.bn1.moving_mean.assign(np.full(filters, 0.3))

    def conv(part, x):
        alone = GaussDerConv(filters, 1.1)
        alone.build(x.shape)
        alone.set_weights([part.kernel, part.bias])
        return ops.convert_to_numpy(alone(x))

    first = conv(layer.conv1, x)
    y = normalized(layer.bn1, first, training)
    y = normalized(layer.bn2, conv(layer.conv2, np.maximum(y, 0)), training)
    skip = x
    if filters != 3:
        kernel, bias = layer.projection.kernel.numpy(), layer.projection.bias.numpy()
        skip = normalized(layer.projection_bn, x @ kernel + bias, training)
    else:
        assert layer.projection is None
    assert_close(layer(x, training=training), np.maximum(skip + y, 0))
    # In training the statistics move by a tenth.
    batch = first.mean((0, 1, 2)) if training else 0.3
    assert_close(layer.bn1.moving_mean, 0.9 * 0.3 + 0.1 * batch)


def test_channels_first_is_the_transposed_block():
    layer, x = built((8, 6, 3), 4, 1.0)
    first, _ = built((3, 8, 6), 4, 1.0, data_format="channels_first")
    first.set_weights(layer.get_weights())
    y = first(np.moveaxis(x, -1, 1))
    assert_close(np.moveaxis(ops.convert_to_numpy(y), 1, -1), layer(x))


def test_options_reach_every_convolution():
    shared = {
        "kernel_initializer": keras.initializers.Ones(),
        "bias_initializer": keras.initializers.Ones(),
        "kernel_regularizer": keras.regularizers.L2(0.1),
        "bias_regularizer": keras.regularizers.L1(0.1),
        "kernel_constraint": keras.constraints.NonNeg(),
        "bias_constraint": keras.constraints.UnitNorm(),
    }
    own = {"sigma": 1.5, "order": 1, "epsilon": 1e-2}
    layer, _ = built((8, 6, 3), 4, activation="tanh", **own, **shared)
    assert layer.activation is keras.activations.tanh
    for conv in (layer.conv1, layer.conv2):
        assert {name: getattr(conv, name) for name in own} == own
        assert conv.activation is keras.activations.linear
    for conv in (layer.conv1, layer.conv2, layer.projection):
        for name, option in shared.items():
            assert type(getattr(conv, name)) is type(option), name
    # conv1, conv2 and the projection, kernel and bias each.
    assert len(layer.losses) == 6


def test_weights_are_drawn_independently():
    """Keras' initializers give the same values whenever they are asked."""
    shared = {"kernel_initializer": keras.initializers.HeUniform(), "zero_order": True}
    blocks = [GaussDerResidualBlock(8, 1.0, separable=s, **shared) for s in (0, 0, 1)]
    drawn = []
    for layer in blocks:
        layer.build((None, 8, 6, 6))
        kernels = [w for w in layer.trainable_weights if w.name.endswith("kernel")]
        drawn += [ops.convert_to_numpy(kernel).ravel() for kernel in kernels]
    assert len(drawn) == 3 + 3 + 5
    cuts = [values[:36] / np.linalg.norm(values[:36]) for values in drawn]
    assert np.abs(np.inner(cuts, cuts) - np.eye(len(cuts))).max() < 0.7


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_what_is_frozen_stays_frozen(before):
    """Inside too, built before or after, and made anew of its configuration."""
    layer = GaussDerResidualBlock(4, 1.0)
    layer.trainable = not before
    layer.build((None, 8, 6, 3))
    layer.trainable = False
    again = GaussDerResidualBlock.from_config(layer.get_config())
    again.build((None, 8, 6, 3))
    again.set_weights(layer.get_weights())
    x = drawn(2, 8, 6, 3)
    for block in (layer, again):
        assert not block.trainable_weights and not block.projection_bn.trainable
        assert_close(block(x, training=True), layer(x))


@pytest.mark.parametrize("separable", cases([False, True], [True]))
def test_gradients_in_inference(separable):
    """Every weight counts, also the biases: the statistics stand still."""
    options = {"activation": "tanh", "separable": separable, "dtype": DTYPE}
    layer, x = built((6, 5, 2), 3, 1.0, **options)
    assert_gradients_are_slopes(layer, x)
