"""Effective filters: what a layer answers to a single bright pixel."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_gdrn.layers import GaussDerConv, ScaleChannels
from keras_gdrn.models import gauss_der_resnet
from keras_gdrn.visualization import effective_filters
from tests import _reference
from tests._cases import cases
from tests._drawn import examples
from tests.layers._contract import numpy, randomize

SIZE = 61  # larger than any filter here
CENTER = SIZE // 2


def built(filters=3, sigma=1.5, channels=2, **options):
    options = {"use_bias": False, "data_format": "channels_last", **options}
    layer = GaussDerConv(filters, sigma, **options)
    layer.build((None, None, None, channels))
    randomize(layer)
    return layer


def bright_pixels(channels=2):
    """In image c, the pixel at the center is bright in channel c."""
    x = np.zeros((channels, SIZE, SIZE, channels), "float32")
    for c in range(channels):
        x[c, CENTER, CENTER, c] = 1
    return x


def impulse_response(layer, sigma0=1.0):
    """`(SIZE, SIZE, channels, filters)`."""
    y = numpy(ScaleChannels(layer, [sigma0])(bright_pixels()))[:, 0]
    return np.moveaxis(y, 0, 2)


def window(filters):
    radius = len(filters) // 2
    return (slice(CENTER - radius, CENTER + radius + 1),) * 2


def assert_impulse_response(found, expected, epsilon):
    inside = window(found)
    largest = np.abs(expected).max()
    np.testing.assert_allclose(found, expected[inside], atol=2 * epsilon * largest)
    rest = expected.copy()
    rest[inside] = 0
    assert np.abs(rest).max() < 10 * epsilon * largest


def scipy_filters(layer, sigma, radius):
    """By SciPy, from a bright pixel: `(2 radius + 1, 2 radius + 1, …)`."""
    pixel = np.zeros((2 * radius + 1,) * 2)
    pixel[radius, radius] = 1
    kernel = layer.get_weights()[0].astype("float64")
    filters = 0.0
    for (y, x), mix in zip(layer.indices, kernel, strict=True):
        response = _reference.derivative(pixel, sigma, y, 0, "zero")
        response = _reference.derivative(response, sigma, x, 1, "zero")
        filters = filters + _reference.orderings((y, x)) * np.multiply.outer(
            response, mix
        )
    return filters


# σ, σ_0, options of the layer.
IMPULSES = [
    (0.5, 1.0, {"zero_order": True, "epsilon": 1e-3}),
    (1.5, 1.0, {"zero_order": False, "epsilon": 1e-5}),
    (1.2, 2.0, {"zero_order": True, "epsilon": 1e-5}),
    (2.5, 1.0, {"trainable_sigma": True, "epsilon": 1e-3}),
    (1.5, 1.0, {"separable": True, "epsilon": 1e-3}),
]


@pytest.mark.parametrize(("sigma", "sigma0", "options"), cases(IMPULSES, IMPULSES[:1]))
def test_are_impulse_responses(sigma, sigma0, options):
    """A trained scale is taken as it is learned; separable filters are of a channel."""
    layer = built(2, sigma=1.0 if "trainable_sigma" in options else sigma, **options)
    if layer.trainable_sigma:
        layer.log_sigma.assign(np.log(sigma))
    if layer.separable:
        layer.kernel.assign(np.eye(2))
    found, expected = effective_filters(layer, sigma0), impulse_response(layer, sigma0)
    if layer.separable:
        expected = np.diagonal(expected, axis1=2, axis2=3)
    assert found.shape[2:] == expected.shape[2:] and found.dtype == np.float64
    assert_impulse_response(found, expected, options["epsilon"])


@examples(cases(20, 3))
@given(
    order=st.integers(1, 4),
    separable=st.booleans(),
    zero_order=st.booleans(),
    sigma=st.floats(0.5, 1.5),
    sigma0=st.floats(0.5, 1.5),
    dtype=st.sampled_from(["float32", "bfloat16"]),
)
def test_are_those_of_scipy(sigma, sigma0, **options):
    """The weights as they are; but nothing that is computed from them is rounded."""
    layer = built(sigma=sigma, **options)
    found = effective_filters(layer, sigma0)
    expected = scipy_filters(layer, sigma * sigma0, len(found) // 2)
    assert found.shape == expected.shape and found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


def test_layers_of_a_network_are_found_by_name():
    model = gauss_der_resnet((9, 9, 3), 10, [4, 6], 1.2, [1.0], separable_blocks=1)
    channel = model.get_layer("scale_channels").network
    block, outer = (
        channel.get_layer("block1"),
        map(channel.get_layer, ("stem_conv", "head")),
    )
    sizes = [effective_filters(la).shape for la in (*outer, block.conv1, block.conv2)]
    assert sizes == [(11, 11, 3, 4), (15, 15, 6, 10), (13, 13, 4), (13, 13, 6)]


def test_what_has_no_filters_is_refused():
    line = GaussDerConv(3, 1.0, data_format="channels_last")
    line.build((None, 20, 2))
    for layer, sigma0, message in (
        (keras.layers.Conv2D(3, 5), 1, "`conv1` and `conv2`.* Received: layer=<Conv2D"),
        (GaussDerConv(3, 1.0), 1, "built for inputs of two .* with None"),
        (line, 1, r"two spatial .*\(ndim=3"),
        (built(), 0.0, "`sigma0` .* sigma0=0"),
        (built(), np.nan, "`sigma0` .* sigma0=nan"),
    ):
        with pytest.raises(ValueError, match=message):
            effective_filters(layer, sigma0)
