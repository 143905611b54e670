"""The scale channels are one network: its weights, its statistics, in both modes."""

import keras
import numpy as np
import pytest

from keras_gdrn.layers import ScaleChannels, ScalePooling
from keras_gdrn.models import with_sigma0
from tests._cases import cases
from tests.theory.counter_examples import ChannelByChannel, with_separate_weights
from tests.theory.images import natural_images
from tests.theory.invariance_assertions import (
    assert_joint_batch_statistics,
    assert_same_function_in_training_and_inference,
    assert_weights_shared,
)
from tests.theory.networks import array, random_channel

SIGMA0 = (0.7, 1.0, 2.0)
IMAGES = np.concatenate([natural_images(32, offset=0.5, seed=i) for i in range(4)])
SMALL = {"input_shape": (32, 32, 3), "widths": (4, 6), "ratio": 1.4}


def responses(layer):
    return lambda images: array(layer(images))


@pytest.mark.parametrize(
    "options",
    cases([{}, {"residual": False}, {"separable_blocks": 1}], [{"residual": False}]),
)
def test_weights_are_shared(options):
    network = random_channel(**SMALL, **options)
    channels = ScaleChannels(network, SIGMA0)
    assert_weights_shared(responses(channels), network, SIGMA0, IMAGES, tolerance=1e-5)
    assert {id(w) for w in channels.weights} == {id(w) for w in network.weights}


def test_weights_are_shared_with_other_scale_channels():
    network = random_channel(**SMALL)
    channels = ScaleChannels(network, [1.0])
    model = keras.Sequential([keras.Input((32, 32, 3)), channels])
    denser = with_sigma0(model, SIGMA0)
    assert_weights_shared(responses(denser), network, SIGMA0, IMAGES, tolerance=1e-5)


@pytest.mark.parametrize("residual", cases([True, False], [False]))
def test_same_function_in_training_and_inference(residual):
    network = random_channel(**SMALL, residual=residual)
    channels = ScaleChannels(network, SIGMA0)
    assert_same_function_in_training_and_inference(channels, IMAGES, tolerance=1e-4)


def test_batch_statistics_are_joint():
    """On the pixels; those of grids are tested with the layer."""
    network = random_channel(**SMALL, residual=False)
    channels = ScaleChannels(network, SIGMA0, density=None)
    assert_joint_batch_statistics(channels, network, SIGMA0, IMAGES, tolerance=1e-4)


@pytest.mark.seen_on_tensorflow("the assertions are the same")
class TestCounterExamples:
    def test_copies_of_the_weights(self):
        network = random_channel(**SMALL)
        copies = with_separate_weights(network, SIGMA0)
        with pytest.raises(AssertionError, match="not one network"):
            assert_weights_shared(copies, network, SIGMA0, IMAGES, tolerance=1e-2)

    def test_channel_by_channel_is_another_function_in_training(self):
        channels = ChannelByChannel(random_channel(**SMALL), SIGMA0)
        with pytest.raises(AssertionError, match="not one function"):
            assert_same_function_in_training_and_inference(
                channels, IMAGES, tolerance=1e-2
            )

    def test_channel_by_channel_has_no_joint_statistics(self):
        network = random_channel(**SMALL, residual=False)
        channels = ChannelByChannel(network, SIGMA0)
        with pytest.raises(AssertionError, match="not joint statistics"):
            assert_joint_batch_statistics(
                channels, network, SIGMA0, IMAGES, tolerance=1e-2
            )

    def test_dropout_is_another_function_in_training(self):
        network = keras.Sequential([random_channel(**SMALL)])
        channels = ScaleChannels(network, SIGMA0)
        dropout = keras.Sequential([channels, ScalePooling(dropout=0.5, seed=0)])
        with pytest.raises(AssertionError, match="not one function"):
            assert_same_function_in_training_and_inference(
                dropout, IMAGES, tolerance=1e-2
            )
