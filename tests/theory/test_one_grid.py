"""The theorem of `ScaleChannels(density=…)`: a channel is the network on another grid.

`Γ_{σ_0}(f)(x) = Γ_1(f(σ_0 ·))(x / σ_0)`: what is left of the error is the sampling of
the image. Counter-examples are kernels that are scaled on the pixels.
"""

import keras
import numpy as np
import pytest
from keras import layers

from keras_gdrn.layers import GaussDerConv, ScaleChannels, SpatialSelection
from tests.theory.assertions import assert_close, difference
from tests.theory.images import AnalyticImage, sample
from tests.theory.networks import (
    array,
    keeping_only_the_last_statistics,
    random_channel,
    with_random_kernels,
)

pytestmark = pytest.mark.seen_on_tensorflow("the operators are the same")

SIZE = 121
IMAGES = [AnalyticImage(seed) for seed in range(4)]
# Largest error from σ_0 to twice that, of 18 layers with the statistics of images.
TO_TWICE = {0.5: 0.002, 1.0: 0.006, 2.0: 0.008}


def images(factor=1.0, size=SIZE):
    size = round(factor * (size - 1)) + 1
    return np.concatenate([sample(image, size, factor) for image in IMAGES])


def scores(network, sigma0, given, density: float | None = 1.0, training=False):
    scales = np.atleast_1d(sigma0)
    layer = ScaleChannels(network, scales, density=density)
    return array(layer(given, training=training))


def normalized(density: float | None = 1.0, **options):
    network = random_channel(boundary="symmetric", **options)
    with keeping_only_the_last_statistics(network):
        scores(network, 1.0, images(), density, training=True)
    return network


def error_to(network, sigma0, factor=2.0, density: float | None = 1.0):
    small = scores(network, sigma0, images(), density)
    large = scores(network, np.multiply(sigma0, factor), images(factor), density)
    return difference(large, small)


@pytest.mark.parametrize("sigma0", TO_TWICE)
def test_eighteen_layers_are_scale_covariant(sigma0):
    error = error_to(normalized(), sigma0)
    assert_close(f"twice σ_0 = {sigma0}", error, TO_TWICE[sigma0])


@pytest.mark.parametrize("sigma0", TO_TWICE)
def test_kernels_on_the_pixels_are_not(sigma0):
    assert error_to(normalized(None), sigma0, density=None) > 4 * TO_TWICE[sigma0]


@pytest.mark.parametrize(
    "options",
    ({"separable_blocks": 4}, {"zero_order": True}, {"order": 3, "ratio": 1.1}),
    ids=("separable", "zero_order", "third_order"),
)
def test_other_kinds_of_networks_are_scale_covariant(options):
    assert_close("at σ_0 = 1", error_to(normalized(**options), 1.0), 0.006)


def test_between_powers_of_two():
    # The size of an image is a whole number, 120 times this factor an even one.
    assert_close("1.2 times", error_to(normalized(), 1.0, factor=1.2), 0.006)


def any_layer():
    """A channel in which ordinary layers look at several positions."""
    x = image = keras.Input((None, None, 3))
    x = GaussDerConv(6, 1.0, activation="relu", boundary="symmetric")(x)
    x = layers.Conv2D(6, 3, padding="same", activation="relu")(x)
    x = layers.DepthwiseConv2D(3, padding="same", activation="relu")(x)
    x = GaussDerConv(6, 1.4, boundary="symmetric")(x)
    network = keras.Model(image, SpatialSelection("center")(x))
    return with_random_kernels(network, np.random.default_rng(1))


def test_any_layer_is_scale_covariant_on_a_grid():
    assert_close("3×3 convolutions", error_to(any_layer(), 1.0), 0.006)


def test_an_ordinary_layer_on_the_pixels_is_not():
    assert error_to(any_layer(), 1.0, density=None) > 0.1


def test_maximum_over_positions_and_scales():
    """The network that looks at every position, invariant with shifted channels."""
    network = normalized(spatial_selection="max", widths=(8,) * 4)
    small = scores(network, [1.0, 2.0], images()).max(axis=1)
    large = scores(network, [2.0, 4.0], images(2.0)).max(axis=1)
    assert_close("maximum", difference(large, small), 0.02)
    same = scores(network, [1.0, 2.0], images(2.0)).max(axis=1)
    assert difference(same, small) > 0.05  # the channels have to follow
