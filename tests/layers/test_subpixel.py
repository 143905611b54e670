"""Scale channels that look between the pixels."""

import keras
import numpy as np
import pytest

from keras_gdrn import kernels
from keras_gdrn.layers import GaussDerConv, ScaleChannels, SpatialSelection
from tests._cases import cases
from tests.layers._contract import numpy

SHAPE = (14, 11, 2)
SCALES = (0.5**1.5, 0.5, 1.0, 2.0)


def images():
    return np.random.default_rng(0).normal(size=(2, *SHAPE)).astype("float32")


@pytest.mark.parametrize("trainable_sigma", [False, True])
@pytest.mark.parametrize("boundary", cases(kernels.BOUNDARIES, ["symmetric"]))
def test_each_channel_is_the_convolution_by_its_kernels(boundary, trainable_sigma):
    """With one filter for each derivative, against NumPy."""
    conv = GaussDerConv(
        *(1, 1.2, 1),
        boundary=boundary,
        trainable_sigma=trainable_sigma,
        use_bias=False,
        epsilon=1e-6,
    )
    layer = ScaleChannels(conv, SCALES, subpixel=True)
    layer.build((None, *SHAPE))
    down = np.zeros((2, 2, 1))
    down[0, 0] = 1  # the derivative along the first axis, of the first channel
    conv.kernel.assign(down)
    maps = np.moveaxis(numpy(layer(images())), 1, 0)
    for scale, actual in zip(SCALES, maps, strict=True):
        along, across = (
            kernels.axis_operator(size, 1.2 * scale, order, boundary, min(scale, 1))
            for size, order in zip(SHAPE, (1, 0), strict=False)
        )
        expected = along @ images()[..., 0] @ across.T
        np.testing.assert_allclose(actual[..., 0], expected, atol=1e-4)


@pytest.mark.parametrize("extent", cases([None, 2.0], [2.0]))
def test_channels_from_one_pixel_on_are_as_they_were(extent):
    network = keras.Sequential([GaussDerConv(3, 1.2), SpatialSelection()])
    on_pixels, between = (
        numpy(ScaleChannels(network, SCALES, extent, subpixel=subpixel)(images()))
        for subpixel in (False, True)
    )
    np.testing.assert_allclose(between[:, 2:], on_pixels[:, 2:], atol=1e-5)
    assert abs(between[:, :2] - on_pixels[:, :2]).max() > 1e-2
