"""Scale channels that look between the pixels."""

import keras
import numpy as np
import pytest

from keras_gdrn import kernels
from keras_gdrn.layers import GaussDerConv, ScaleChannels, SpatialSelection
from keras_gdrn.models import gauss_der_resnet, scale_channel, with_sigma0
from tests._cases import cases
from tests._gradients import gradients
from tests.layers._contract import numpy, randomize

SHAPE = (14, 11, 2)
SCALES = (0.5**1.5, 0.5, 1.0, 2.0)


def images(batch=2):
    return np.random.default_rng(0).normal(size=(batch, *SHAPE)).astype("float32")


def layers(network, **options):
    """The layer on pixels and between them, with the same weights."""
    of_both = [
        ScaleChannels(network, SCALES, subpixel=subpixel, **options)
        for subpixel in (False, True)
    ]
    for layer in of_both:
        layer.build((None, *SHAPE))
    randomize(of_both[0])
    return of_both


@pytest.mark.parametrize("boundary", cases(kernels.BOUNDARIES, ["symmetric"]))
def test_each_channel_is_the_convolution_by_its_kernels(boundary):
    """With one filter for each derivative, against NumPy."""
    conv = GaussDerConv(
        1, 1.2, order=1, use_bias=False, boundary=boundary, epsilon=1e-6
    )
    layer = ScaleChannels(conv, SCALES, subpixel=True)
    layer.build((None, *SHAPE))
    down = np.zeros((2, 2, 1))
    down[0, 0] = 1  # the derivative along the first axis, of the first channel
    conv.kernel.assign(down)
    for scale, actual in zip(
        SCALES, np.moveaxis(numpy(layer(images())), 1, 0), strict=True
    ):
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
        numpy(layer(images())) for layer in layers(network, receptive_field=extent)
    )
    np.testing.assert_allclose(between[:, 2:], on_pixels[:, 2:], atol=1e-5)
    assert abs(between[:, :2] - on_pixels[:, :2]).max() > 1e-2


@pytest.mark.parametrize(
    ("extent", "trainable_sigma"),
    cases([(None, False), (None, True), (2.0, False)], [(2.0, False), (None, True)]),
)
def test_operators_of_the_graph_give_what_constants_give(extent, trainable_sigma):
    """Where sizes are unknown, or scales are learned."""
    constant = scale_channel(SHAPE, 3, [4], 1.3, epsilon=1e-6)
    randomize(constant)
    unknown = (None, None, 2)
    options = {"trainable_sigma": trainable_sigma, "epsilon": 1e-6}
    in_graph = scale_channel(unknown, 3, [4], 1.3, **options)
    values = iter(constant.get_weights())
    for weight in in_graph.weights:
        if weight.name != "log_sigma":
            weight.assign(next(values))
    scores = []
    for network, shape in ((constant, SHAPE), (in_graph, unknown)):
        image = keras.Input(shape)
        layer = ScaleChannels(network, [0.5, 2.0], extent, subpixel=True)
        scores.append(keras.Model(image, layer(image)).predict(images(), verbose=0))
    np.testing.assert_allclose(scores[1], scores[0], rtol=2e-4, atol=1e-4)


def test_learned_scales_have_a_gradient_between_the_pixels():
    inner = GaussDerConv(3, 1.1, trainable_sigma=True)
    layer = ScaleChannels(inner, [0.5], subpixel=True)
    shape = layer.compute_output_shape((2, *SHAPE))
    *_, of_sigma = gradients(layer, images(), np.ones(shape))
    assert abs(of_sigma) > 1e-3


def test_it_is_kept():
    model = gauss_der_resnet(SHAPE, 3, [4], 1.3, SCALES, subpixel=True)
    layer = model.get_layer("scale_channels")
    for other in (model, with_sigma0(model, [0.5])):
        assert other.get_layer("scale_channels").subpixel is True
    assert ScaleChannels.from_config(layer.get_config()).subpixel is True
    config = layer.get_config()
    del config["subpixel"]  # what was saved before there were any
    assert ScaleChannels.from_config(config).subpixel is False


def test_layers_outside_are_on_pixels():
    outside = GaussDerConv(1, 0.5)
    before = numpy(outside(images()))
    ScaleChannels(GaussDerConv(1, 1.0), [0.5], subpixel=True)(images())
    np.testing.assert_array_equal(numpy(outside(images())), before)
