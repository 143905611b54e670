"""The theorem of `ScaleChannels(density=…)`: a channel is the network on another grid.

`Γ_{σ_0}(f)(x) = Γ_1(f(σ_0 ·))(x / σ_0)`: what is left of the error is the sampling of
the image. Counter-examples are kernels that are scaled on the pixels.
"""

import functools

import keras
import numpy as np
import pytest
from keras import layers

from keras_gdrn.layers import GaussDerConv, ScaleChannels, SpatialSelection
from tests.theory.assertions import assert_close, difference, relative_error
from tests.theory.images import AnalyticImage, natural_images, sample, twice
from tests.theory.networks import (
    array,
    feature_maps,
    keeping_only_the_last_statistics,
    random_channel,
    with_random_kernels,
)

pytestmark = pytest.mark.seen_on_tensorflow("the operators are the same")

SIZE = 121
IMAGES = [AnalyticImage(seed) for seed in range(4)]
# Largest error from σ_0 to twice that, of 18 layers with the statistics of images.
TO_TWICE = dict.fromkeys((0.5, 1.0, 2.0), 0.001)


def images(factor=1.0, size=SIZE, of=IMAGES, shift=0):
    size = round(factor * (size - 1)) + 1
    return np.concatenate([sample(image, size, factor, shift) for image in of])


def scores(network, sigma0, given, density: float | None = 1.0, training=False):
    scales = np.atleast_1d(sigma0)
    layer = ScaleChannels(network, scales, density=density)
    return array(layer(given, training=training))


@functools.cache
def normalized(density: float | None = 1.0, **options):
    """A network with the batch statistics of the images, to be left as it is."""
    return with_statistics_of(images(), density, **options)


def with_statistics_of(given, density: float | None = 1.0, **options):
    network = random_channel(boundary="symmetric", **options)
    with keeping_only_the_last_statistics(network):
        scores(network, 1.0, given, density, training=True)
    return network


@functools.cache
def seen(network, sigma0, factor=1.0, density: float | None = 1.0):
    """The scores of the images, all as much larger as the scale."""
    return scores(network, sigma0 * factor, images(factor), density)


def error_to(network, sigma0, factor=2.0, density: float | None = 1.0):
    large = seen(network, sigma0, factor, density)
    return difference(large, seen(network, sigma0, 1.0, density))


def error_between(small, large, sigma0, density: float | None = 1.0):
    """Of a network with the statistics of the small images, from them to others."""
    network = with_statistics_of(small, density)
    magnified = scores(network, 2 * sigma0, large, density)
    return difference(magnified, scores(network, sigma0, small, density))


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
    assert_close("at σ_0 = 1", error_to(normalized(**options), 1.0), 0.001)


@pytest.mark.parametrize(
    ("sigma0", "factor"),
    [
        (1.0, 2 ** (1 / 4)),
        (1.0, 1.2),
        pytest.param(0.5, 2 ** (1 / 4), marks=pytest.mark.slow),
        pytest.param(2.0, 2 ** (1 / 4), marks=pytest.mark.slow),
    ],
)
def test_between_powers_of_two(sigma0, factor):
    assert_close(f"{factor:.2f} times", error_to(normalized(), sigma0, factor), 1e-3)


@pytest.mark.parametrize(
    ("dimensions", "size", "options"),
    [
        (1, SIZE, {}),
        (1, SIZE, {"order": 3}),
        (3, 33, {"widths": (4, 4, 4), "ratio": 1.4}),
        (3, 33, {"widths": (4, 4, 4), "ratio": 1.4, "order": 3}),
    ],
)
def test_signals_and_volumes(dimensions, size, options):
    of = [AnalyticImage(seed, dimensions, extent=size / 2) for seed in range(4)]
    small, large = (images(factor, size, of) for factor in (1.0, 2.0))
    shape = (*[None] * dimensions, 3)
    network = with_statistics_of(small, input_shape=shape, **options)
    expected = scores(network, 1.0, small)
    error = difference(scores(network, 2.0, large), expected)
    assert_close(f"{dimensions}-D", error, 0.005)
    assert difference(scores(network, 1.0, large), expected) > 0.5


@pytest.mark.parametrize(
    ("sigma0", "tolerance"), [(0.5, 0.12), (1.0, 0.04), (2.0, 0.025)]
)
def test_images_with_fine_details(sigma0, tolerance):
    """Of half a pixel to two, which kernels on the pixels mistake for others."""
    of = [AnalyticImage(seed, blobs=600, finest=0.5) for seed in range(4)]
    small, large = images(of=of), images(2.0, of=of)
    assert_close("fine", error_between(small, large, sigma0), tolerance)
    assert error_between(small, large, sigma0, density=None) > 2 * tolerance


# At half a pixel, the details between pixels are those of the spline, in the larger
# image those of the trigonometric polynomial.
@pytest.mark.parametrize(
    ("sigma0", "tolerance"), [(0.5, 0.25), (1.0, 0.025), (2.0, 0.005)]
)
def test_images_as_rough_as_natural_ones(sigma0, tolerance):
    rough = [natural_images(SIZE, 0.5, seed=seed) for seed in range(4)]
    small = np.concatenate(rough)
    assert_close("rough", error_between(small, twice(small), sigma0), tolerance)


@pytest.mark.parametrize(("density", "tolerance"), [(1.0, 0.15), (2.0, 0.05)])
def test_scaling_and_translation_together(density, tolerance):
    """Samples are fixed to the center of the image: a shift moves it between them."""
    shift = (3, -5)
    network = feature_maps(normalized(density, widths=(8,) * 5))
    moved = [2 * by for by in shift]
    small = scores(network, 1.0, images(), density)[:, 0]
    large = scores(network, 2.0, images(2.0, shift=moved), density)[:, 0]
    inside = range(30, SIZE - 30)  # f'(2 x + t) = f(x)
    rows, columns = ([2 * i + by for i in inside] for by in moved)
    small, large = small[:, 30:-30, 30:-30], large[:, rows][:, :, columns]
    assert_close("moved", relative_error(large, small), tolerance)


def convolutions(x):
    x = layers.Conv2D(6, 3, padding="same", activation="relu")(x)
    return layers.DepthwiseConv2D(3, padding="same", activation="relu")(x)


def convolution_and_normalization(x):
    return layers.LayerNormalization()(layers.Conv2D(6, 3, padding="same")(x))


def squeeze_and_excitation(x):
    x = layers.Conv2D(6, 3, padding="same", activation="relu")(x)
    weights = layers.GlobalAveragePooling2D(keepdims=True)(x)
    weights = layers.Dense(3, activation="relu")(weights)
    return layers.Multiply()([x, layers.Dense(6, activation="sigmoid")(weights)])


INNER = convolutions, convolution_and_normalization, squeeze_and_excitation


def any_layer(inner):
    """A channel in which ordinary layers look at several positions."""
    x = image = keras.Input((None, None, 3))
    x = GaussDerConv(6, 1.0, activation="relu", boundary="symmetric")(x)
    x = inner(x)
    x = GaussDerConv(6, 1.4, boundary="symmetric")(x)
    network = keras.Model(image, SpatialSelection("center")(x))
    return with_random_kernels(network, np.random.default_rng(1))


@pytest.mark.parametrize("inner", INNER)
def test_any_layer_is_scale_covariant_on_a_grid(inner):
    assert_close(inner.__name__, error_to(any_layer(inner), 1.0), 0.001)


@pytest.mark.parametrize("inner", INNER)
def test_an_ordinary_layer_on_the_pixels_is_not(inner):
    assert error_to(any_layer(inner), 1.0, density=None) > 0.02


def multiplied_by_its_mean(x):
    x = layers.Conv2D(6, 3, padding="same", activation="relu")(x)
    return layers.Multiply()([x, layers.GlobalAveragePooling2D(keepdims=True)(x)])


@pytest.mark.parametrize(
    ("inner", "lowest", "highest"),
    [(convolutions, 0.0, 0.001), (multiplied_by_its_mean, 0.5, np.inf)],
)
def test_a_mean_over_a_whole_map_follows_the_canvas(inner, lowest, highest):
    """The object in the center grows, and the canvas does not."""
    network, edge, small = any_layer(inner), SIZE // 2, images()
    distance = np.hypot(*np.ogrid[-edge : edge + 1, -edge : edge + 1])[..., None]
    small, large = (
        given * np.exp(-((distance / radius) ** 2)).astype("float32")
        for given, radius in (
            (small, 20),
            (images(2.0)[:, edge:-edge, edge:-edge], 40),
        )
    )
    error = difference(scores(network, 2.0, large), scores(network, 1.0, small))
    assert lowest <= error < highest


def test_maximum_over_positions_and_scales():
    """The network that looks at every position, invariant with shifted channels."""
    network = normalized(spatial_selection="max", widths=(8,) * 4)
    small = scores(network, [1.0, 2.0], images()).max(axis=1)
    large = scores(network, [2.0, 4.0], images(2.0)).max(axis=1)
    assert_close("maximum", difference(large, small), 0.02)
    same = scores(network, [1.0, 2.0], images(2.0)).max(axis=1)
    assert difference(same, small) > 0.05  # the channels have to follow
