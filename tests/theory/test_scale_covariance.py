"""Scale covariance of a layer, a residual block and a whole 18-layer scale channel."""

import numpy as np
import pytest

from tests._cases import cases
from tests.theory.assertions import (
    assert_scale_covariant,
    scale_covariance_error,
    values_at,
)
from tests.theory.counter_examples import (
    PlainConv,
    SubsampledBlock,
    forgets_the_scale,
    without_scale_normalization,
)
from tests.theory.images import AnalyticImage, coordinates, magnified, sample
from tests.theory.networks import (
    at_scale,
    feature_maps,
    on_pixels,
    random_block,
    random_channel,
    random_layer,
    with_statistics_of,
)

IMAGE = AnalyticImage()
SHAPE = (111, 111, 3)
FACTORS = [2**0.5, 2.0]

# Relative errors allowed at sigma0, at most those of the project's prototype.
LAYER = {1.0: 1.4e-2, 4.0: 4e-3}
CHANNEL = {0.5: (111, 7e-2), 1.0: (111, 3.3e-2), 2.0: (221, 1.3e-2)}


@pytest.mark.parametrize("factor", cases(FACTORS, FACTORS[:1]))
@pytest.mark.parametrize("sigma0", LAYER)
def test_layer(sigma0, factor):
    layer = at_scale(random_layer(SHAPE))
    assert_scale_covariant(
        layer, IMAGE, sigma0=sigma0, factor=factor, tolerance=LAYER[sigma0]
    )


KINDS = [
    {"order": 1},
    {"order": 3},
    {"zero_order": True},
    {"separable": True},
    {"boundary": "symmetric"},
]


@pytest.mark.parametrize("options", cases(KINDS, KINDS[3:]), ids=str)
def test_kinds_of_layers(options):
    layer = at_scale(random_layer(SHAPE, **options))
    assert_scale_covariant(layer, IMAGE, sigma0=2.0, tolerance=1.2e-2)


@pytest.mark.parametrize(("dimensions", "size", "crop"), [(1, 111, 24), (3, 41, 6)])
def test_dimensions(dimensions, size, crop):
    image = AnalyticImage(dimensions=dimensions, channels=2, extent=size / 2)
    layer = at_scale(random_layer((*[None] * dimensions, 2), 3))
    assert_scale_covariant(layer, image, size=size, crop=crop, tolerance=1.4e-2)


BLOCKS = [
    ({}, 2**0.5),
    ({}, 2.0),
    ({"zero_order": True}, 2**0.5),
    ({"separable": True}, 2.0),
]


@pytest.mark.parametrize(("options", "factor"), cases(BLOCKS, BLOCKS[:1]))
def test_residual_block(options, factor):
    block = at_scale(random_block(SHAPE, **options))
    assert_scale_covariant(block, IMAGE, sigma0=2.0, factor=factor, tolerance=6e-3)


@pytest.mark.seen_on_tensorflow("its layers are tested here")
@pytest.mark.parametrize("sigma0", CHANNEL)
def test_channel_of_18_layers(sigma0):
    size, tolerance = CHANNEL[sigma0]
    channel = at_scale(feature_maps(random_channel()))
    assert_scale_covariant(
        channel, IMAGE, sigma0=sigma0, size=size, crop=16, tolerance=tolerance
    )


@pytest.mark.seen_on_tensorflow("its layers are tested here")
@pytest.mark.parametrize("options", [{"zero_order": True}, {"boundary": "symmetric"}])
def test_kinds_of_channels_at_factor_sqrt_2(options):
    channel = at_scale(feature_maps(random_channel(**options)))
    assert_scale_covariant(
        channel, IMAGE, factor=2**0.5, crop=16, tolerance=CHANNEL[1.0][1]
    )


def with_statistics_of_images():
    """As after training: every layer's output is brought to unit variance.

    A derivative strengthens the finest details, which are discretized worst, and
    normalization keeps them from fading: eighteen layers add up their errors.
    """
    images = np.concatenate([sample(AnalyticImage(i), 111) for i in (11, 12)])
    channel = with_statistics_of(random_channel(boundary="symmetric"), images)
    return feature_maps(channel)


@pytest.mark.seen_on_tensorflow("batch normalization is tested with the layers")
def test_channel_with_statistics_of_images():
    """Kernels on the pixels are the counter-example."""
    network, where = with_statistics_of_images(), (IMAGE, 2.0, 2.0, 221, 48)
    error = scale_covariance_error(at_scale(network), *where)
    on_the_pixels = scale_covariance_error(at_scale(network, on_pixels), *where)
    print(f"{error:.2e} on grids, {on_the_pixels:.2e} on the pixels")
    assert error < 1e-3 < on_the_pixels / 20


@pytest.mark.seen_on_tensorflow("the kernels are the same")
def test_error_on_the_pixels_is_of_second_order():
    """On images with details in proportion to σ_0, it falls as 1 / σ_0²."""
    maps = at_scale(random_layer((None, None, 3), epsilon=1e-6), on_pixels)
    errors = []
    for sigma0 in (0.5, 1.0, 2.0):
        scene = magnified(IMAGE, sigma0)
        size, crop = int(110 * sigma0) + 1, int(24 * sigma0)
        errors.append(scale_covariance_error(maps, scene, sigma0, 2.0, size, crop))
    print("relative errors at σ_0 = 1/2, 1, 2:", errors)
    ratios = np.divide(errors[:-1], errors[1:])
    np.testing.assert_allclose(ratios, 4, rtol=0.2)


def test_interpolation_is_more_exact_than_the_tolerances():
    maps = sample(IMAGE, 111)[0].astype("float64")
    points = 2**0.5 * np.arange(-24, 25)
    between = values_at(maps, points)
    np.testing.assert_allclose(between, IMAGE(points, points), atol=1e-3 * maps.std())
    pixels = coordinates(111)
    np.testing.assert_allclose(values_at(maps, pixels), maps, atol=1e-9)


COUNTER_EXAMPLES = {
    "no scale normalization": lambda: without_scale_normalization(random_layer(SHAPE)),
    "plain convolution": lambda: at_scale(PlainConv(8, 7, padding="same"), on_pixels),
    "scale channels that forget the scale": lambda: forgets_the_scale(
        random_layer(SHAPE)
    ),
    "subsampling": lambda: at_scale(
        SubsampledBlock(random_block((None, None, 3))), on_pixels
    ),
}


@pytest.mark.seen_on_tensorflow("the assertions are the same")
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("make", COUNTER_EXAMPLES.values(), ids=COUNTER_EXAMPLES)
def test_counter_examples(make, factor):
    options = {"sigma0": 2.0, "factor": factor, "tolerance": 3e-2}
    with pytest.raises(AssertionError, match="not scale covariant"):
        assert_scale_covariant(make(), IMAGE, **options)
