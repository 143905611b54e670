"""`head_initializers`: how the last layer of a scale channel begins."""

import keras
import numpy as np
import pytest

from keras_gdrn.layers import GaussDerConv
from keras_gdrn.models import (
    architecture,
    gauss_der_resnet,
    head_initializers,
    scale_channel,
)
from keras_gdrn.models._architectures import OF_THE_PAPER
from tests.layers._contract import numpy

pytestmark = pytest.mark.seen_on_tensorflow("initializers are those of Keras")

# Uniform He initialization is within ± sqrt(6 / fan_in); five terms of the jet count.
FAN_IN = 64 * 5


def built(**options):
    head = GaussDerConv(50, 1.5, **options)
    head.build((None, 8, 8, FAN_IN // 5))
    return numpy(head.kernel), numpy(head.bias)


def test_he_uniform_is_the_papers():
    kernel, bias = built(**head_initializers("he_uniform"))
    limit = np.sqrt(6 / FAN_IN)
    assert 0.95 * limit < np.abs(kernel).max() <= limit
    np.testing.assert_array_equal(bias, 0)


@pytest.mark.parametrize(("zero_order", "lift"), [(False, 0.2), (True, 1.0)])
def test_positive_has_a_fifth_of_the_weights_and_lifts_the_scores(zero_order, lift):
    kernel, bias = built(**head_initializers(zero_order=zero_order))
    limit = np.sqrt(6 / FAN_IN) / 5
    assert 0.95 * limit < np.abs(kernel).max() <= limit * (1 + 1e-6)
    np.testing.assert_array_equal(bias, np.float32(lift))


def bias_of(channel):
    return numpy(channel.get_layer("head").bias)


def test_a_channel_begins_as_it_is_told():
    arguments = ((12, 12, 1), 3, [4], 1.3)
    np.testing.assert_array_equal(bias_of(scale_channel(*arguments)), np.float32(0.2))
    channel = scale_channel(*arguments, head_initializer="he_uniform")
    np.testing.assert_array_equal(bias_of(channel), 0)
    network = gauss_der_resnet(*arguments, [1.0], head_initializer="he_uniform")
    network = network.get_layer("scale_channels").network
    np.testing.assert_array_equal(bias_of(network), 0)


def test_the_papers_networks_begin_as_the_paper_says():
    assert {preset.head_initializer for preset in OF_THE_PAPER.values()} == {
        "he_uniform"
    }
    small = {"widths": (4,), "input_shape": (12, 12, 1)}
    for kind, bias in (("he_uniform", 0), ("positive", np.float32(0.2))):
        model = architecture("rescaled_cifar10", head_initializer=kind, **small)
        channel = model.get_layer("scale_channels").network
        np.testing.assert_array_equal(bias_of(channel), bias)
    of_paper = architecture("rescaled_cifar10", **small).get_layer("scale_channels")
    np.testing.assert_array_equal(bias_of(of_paper.network), 0)


def test_a_channel_written_by_hand_begins_alike():
    image = keras.Input((12, 12, 1))
    head = GaussDerConv(3, 1.3, activation="relu", **head_initializers())
    by_hand = keras.Model(image, head(image))
    built = scale_channel((12, 12, 1), 3, [4], 1.3).get_layer("head")
    of_both = [layer.get_config() for layer in (by_hand.layers[-1], built)]
    for name in ("kernel_initializer", "bias_initializer"):
        assert of_both[0][name] == of_both[1][name]
