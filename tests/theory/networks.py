"""Layers and networks with random weights and statistics, as functions on arrays."""

import contextlib
import functools

import keras
import numpy as np

from keras_gdrn.kernels import multinomial
from keras_gdrn.layers import GaussDerConv, GaussDerResidualBlock, ScaleChannels
from keras_gdrn.models import scale_channel

EIGHTEEN_LAYERS = {"widths": (8,) * 9, "ratio": 1.2}

# JAX compiles each operation for each shape. Operators of full rank have the same shape
# at all scales; single layers are tested in the low-rank form with JAX too.
FULL_RANK = {"epsilon": 1e-30} if keras.backend.backend() == "jax" else {}


def array(tensor):
    """Any backend's tensor of any float type, as float64."""
    return keras.ops.convert_to_numpy(keras.ops.cast(tensor, "float32")).astype(
        "float64"
    )


# Kernels are scaled on the pixels, as the paper does.
on_pixels = functools.partial(ScaleChannels, density=None)


def at_scale(network, channels=ScaleChannels):
    """The function `(sigma0, images) -> network's output` at the initial scale."""

    def apply(sigma0, images):
        return array(channels(network, [sigma0])(images))[:, 0]

    return apply


def random_layer(
    input_shape, filters=8, seed=1, sigma=1.0, kind=GaussDerConv, **options
):
    layer = kind(filters, sigma, **options)
    layer.build((None, *input_shape))
    return with_random_kernels(layer, np.random.default_rng(seed))


def random_block(input_shape, filters=8, seed=1, **options):
    block = GaussDerResidualBlock(filters, 1.0, **options)
    block.build((None, *input_shape))
    return randomized(block, seed)


def random_channel(input_shape=(None, None, 3), classes=6, seed=1, **options):
    """A scale channel; by default of 18 layers."""
    options = {**EIGHTEEN_LAYERS, **FULL_RANK, **options}
    return randomized(scale_channel(input_shape, classes, **options), seed)


def feature_maps(channel):
    """The channel without its spatial selection."""
    return keras.Model(channel.input, channel.get_layer("head").output)


def with_random_kernels(layer, random):
    """The default initialization, He's, with the same numbers on every backend."""
    for weight in layer.weights:
        if weight.name.endswith("kernel"):
            limit = (6 / np.prod(weight.shape[:-1])) ** 0.5
            weight.assign(random.uniform(-limit, limit, weight.shape))
    return layer


def randomized(network, seed=0):
    """Random kernels and biases, and all that batch normalization holds."""
    random = np.random.default_rng(seed)
    with_random_kernels(network, random)
    ranges = {
        "gamma": (0.7, 1.3),
        "beta": (-0.1, 0.1),
        "moving_mean": (-0.1, 0.1),
        "moving_variance": (0.7, 1.4),
        "bias": (-0.05, 0.05),
    }
    for weight in network.weights:
        if weight.name in ranges:
            weight.assign(random.uniform(*ranges[weight.name], weight.shape))
    return network


def batch_normalizations(network):
    layers = network._flatten_layers()
    return [x for x in layers if isinstance(x, keras.layers.BatchNormalization)]


@contextlib.contextmanager
def keeping_only_the_last_statistics(network):
    """A training pass makes the moving statistics those of its batch: momentum 0."""
    layers = batch_normalizations(network)
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.momentum = 0.0
    yield
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum


def with_statistics_of(network, images, sigma0=1.0):
    """Gives batch normalization the statistics of `images`, as training would."""
    with keeping_only_the_last_statistics(network):
        ScaleChannels(network, [sigma0])(images, training=True)
    return network


def with_jet(layer, change):
    """A copy of the layer in which `C_α` is replaced by `change(alpha, C_α)`."""
    copy = type(layer).from_config(layer.get_config())
    spatial = [None] * len(layer.indices[0])
    copy.build((None, *spatial, layer.input_spec.axes[-1]))
    jet, *others = layer.get_weights()
    changed = [change(alpha, c) for alpha, c in zip(layer.indices, jet, strict=True)]
    copy.set_weights([np.stack(changed), *others])
    return copy


def grey_jet(coefficient, sigma, dimensions=2, **options):
    """The layer from one channel to one, with `C_α = coefficient(α)`."""
    shape = (*[None] * dimensions, 1)
    layer = random_layer(shape, 1, sigma=sigma, zero_order=True, **options)
    return with_jet(layer, lambda alpha, c: np.full_like(c, coefficient(alpha)))


def derivative(alpha, sigma, **options):
    """The layer that answers `σ^|α| ∂^α` alone."""

    def select(index):
        return float(index == alpha) / multinomial(alpha)

    options = {"order": max(sum(alpha), 1), **options}
    return grey_jet(select, sigma, len(alpha), **options)
