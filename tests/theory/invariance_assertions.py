"""Invariances, and what the scale channels of a network have in common.

What is tested are functions of images: `maps` give feature maps, `scores` `(batch,
scale, classes)`, `predict` `(batch, classes)`, `channels` `(batch, scale, …)`.
"""

import itertools

import keras
import numpy as np

from keras_gdrn.layers import GaussDerConv
from tests.theory.assertions import assert_close, difference
from tests.theory.images import sample
from tests.theory.networks import (
    array,
    at_scale,
    keeping_only_the_last_statistics,
    on_pixels,
)


def sample_all(images, size, factor=1.0):
    return np.concatenate([sample(image, size, factor) for image in images])


def assert_channels_permuted(scores, images, *, tolerance, factor, steps, size=111):
    """`Γ_{S σ_i}(f') = Γ_{σ_i}(f)`: rescaling moves the scores along the channels.

    Source: Eq. gaussresnet-set-comparison-scaling, for channels at `σ_0 λ^i` and
    `S = λ^steps`; the channels at the ends have no counterpart.
    """
    expected = scores(sample_all(images, size))
    blank = scores(np.zeros_like(sample_all(images, size)))
    rescaled = scores(sample_all(images, round(factor * (size - 1)) + 1, factor))
    error = difference(rescaled[:, steps:], expected[:, :-steps], blank[:, :-steps])
    assert_close(f"a permutation of channels (factor={factor:.3g})", error, tolerance)


def assert_scale_invariant(predict, images, *, tolerance, factor, size=111):
    """`Φ(S_s f) = Φ(f)` for the pooled scores.

    Source: Eq. scale-invariance-definition.
    """
    expected = predict(sample_all(images, size))
    blank = predict(np.zeros_like(sample_all(images, size)))
    rescaled = predict(sample_all(images, round(factor * (size - 1)) + 1, factor))
    error = difference(rescaled, expected, blank)
    assert_close(f"scale invariant (factor={factor:.3g})", error, tolerance)


def assert_invariant_to_constants(maps, images, *, tolerance, constant, border=0):
    """`F(f + a) = F(f)`, but for `border` pixels along each side.

    Source: Sec. The use of a zero-order term, `f(x) -> f(x) + a`.
    """
    expected, actual = maps(images), maps(images + np.float32(constant))
    blank = maps(np.zeros_like(images))
    inside = (slice(None), *[slice(border, -border or None)] * (images.ndim - 2))
    error = difference(actual[inside], expected[inside], blank[inside])
    assert_close(f"invariant to the constant {constant:g}", error, tolerance)


def assert_permutation_invariant(pool, scores, *, tolerance):
    """`ScaleSel` is the same for every order of the scale channels (axis 1)."""
    expected = pool(scores)
    orders = map(list, itertools.permutations(range(scores.shape[1])))
    error = max(difference(pool(scores[:, order]), expected) for order in orders)
    assert_close("invariant to permutations of the scales", error, tolerance)


def assert_weights_shared(channels, network, sigma0, images, *, tolerance):
    """Every scale channel is `network` at its scale, also once its weights change.

    Source: Sec. Multi-scale-channel networks: "All the scale channels Γ are copies of
    each other, meaning they share the same weights".
    """
    weights = network.get_weights()
    random = np.random.default_rng(0)
    network.set_weights([w * random.uniform(0.8, 1.2, w.shape) for w in weights])
    actual = channels(images)
    alone = [at_scale(network)(scale, images) for scale in sigma0]
    network.set_weights(weights)
    error = difference(actual, np.stack(alone, axis=1))
    assert_close("one network with shared weights", error, tolerance)


def assert_same_function_in_training_and_inference(layer, images, *, tolerance):
    """Training computes what inference does with the statistics of that batch."""
    weights = layer.get_weights()
    with keeping_only_the_last_statistics(layer):
        training = array(layer(images, training=True))
    inference = array(layer(images, training=False))
    layer.set_weights(weights)
    error = difference(training, inference)
    assert_close("one function in training and inference", error, tolerance)


def assert_joint_batch_statistics(channels, network, sigma0, images, *, tolerance):
    """One training step moves the statistics to those of all scale channels together.

    `moving = momentum moving + (1 - momentum) batch`, with the mean and variance of
    each feature over images, positions and scales. The network is a chain of
    `GaussDerConv`, `BatchNormalization` and `ReLU` layers.
    """
    expected = _statistics_after_a_step(network, sigma0, images)
    model = keras.Sequential([keras.Input(images.shape[1:]), channels])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    model.train_on_batch(images, np.zeros(model(images).shape))
    for layer, statistics in expected.items():
        actual = [array(layer.moving_mean), array(layer.moving_variance)]
        error = difference(np.array(actual), np.array(statistics))
        assert_close(f"joint statistics of {layer.name}", error, tolerance)


def _statistics_after_a_step(network, sigma0, images):
    """The same in NumPy; `features` are the folded batch, all channels in one."""
    features = np.concatenate([images] * len(sigma0))
    expected = {}
    for layer in network.layers:
        if isinstance(layer, GaussDerConv):
            parts = np.split(features, len(sigma0))
            pairs = zip(sigma0, parts, strict=True)
            parts = [at_scale(layer, on_pixels)(s, x) for s, x in pairs]
            features = np.concatenate(parts)
        elif isinstance(layer, keras.layers.BatchNormalization):
            mean, variance = features.mean((0, 1, 2)), features.var((0, 1, 2))
            old = [array(layer.moving_mean), array(layer.moving_variance)]
            step = 1 - layer.momentum
            pairs = zip(old, (mean, variance), strict=True)
            expected[layer] = [m + step * (new - m) for m, new in pairs]
            features = (features - mean) / np.sqrt(variance + layer.epsilon)
            features = features * array(layer.gamma) + array(layer.beta)
        elif isinstance(layer, keras.layers.ReLU):
            features = np.maximum(features, 0)
    return expected
