"""Scale invariance of the whole network with several scale channels."""

import functools

import keras
import numpy as np
import pytest

from keras_gdrn.layers import ScaleChannels, ScalePooling
from tests._cases import cases
from tests.theory.counter_examples import PlainConv
from tests.theory.images import AnalyticImage
from tests.theory.invariance_assertions import (
    assert_channels_permuted,
    assert_permutation_invariant,
    assert_scale_invariant,
)
from tests.theory.networks import array, at_scale, random_channel

SIGMA0 = [2 ** (i / 2) for i in range(-4, 9)]
# Few layers, and a mirror at the border, so that the coarsest channel sees no border.
CHANNEL = {"widths": (8, 8), "classes": 5, "boundary": "symmetric"}
STEPS = {1: 2**0.5, 2: 2.0}
each_step = pytest.mark.parametrize("steps", cases([1, 2], [1]))
POOLINGS = ("max", "logsumexp", "average")


def small_object(seed):
    """Blobs of 2.5 to 4 pixels about the origin, best seen by the middle channels."""
    image = AnalyticImage(seed, blobs=6, extent=3.0)
    image.width = image.width / 8 + 2
    return image


IMAGES = [small_object(seed) for seed in (0, 1)]
SCORES = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("float32")


@functools.cache
def channel():
    return random_channel(**CHANNEL)


@functools.cache
def scores_of(shape, data):
    images = np.frombuffer(data, dtype="float32").reshape(shape)
    return array(ScaleChannels(channel(), SIGMA0)(images))


def scores(images):
    """`(batch, scale, classes)`, computed once for each image."""
    return scores_of(images.shape, images.tobytes())


@each_step
def test_rescaling_permutes_the_channels(steps):
    assert_channels_permuted(
        scores, IMAGES, factor=STEPS[steps], steps=steps, tolerance=5e-2
    )


@each_step
@pytest.mark.parametrize("mode", POOLINGS)
def test_pooled_scores_are_invariant(mode, steps):
    """But for the channels at the ends, one or two of which come and go."""
    pool, options = ScalePooling(mode), {"factor": STEPS[steps], "tolerance": 8e-2}
    assert_scale_invariant(lambda x: array(pool(scores(x))), IMAGES, **options)


@pytest.mark.parametrize("mode", POOLINGS)
def test_pooling_is_the_same_for_every_order_of_the_channels(mode):
    pool = ScalePooling(mode, dropout=0.3)
    assert_permutation_invariant(lambda x: array(pool(x)), SCORES, tolerance=1e-6)


@pytest.mark.seen_on_tensorflow("the assertions are the same")
class TestCounterExamples:
    @pytest.mark.parametrize("steps", STEPS)
    def test_one_channel_is_not_invariant(self, steps):
        single = functools.partial(at_scale(channel()), 2.0)
        with pytest.raises(AssertionError, match="not scale invariant"):
            assert_scale_invariant(single, IMAGES, factor=STEPS[steps], tolerance=0.05)

    def test_rescaling_by_two_steps_is_not_a_permutation_by_one(self):
        with pytest.raises(AssertionError, match="not a permutation"):
            assert_channels_permuted(
                scores, IMAGES, factor=2.0, steps=1, tolerance=0.25
            )

    def test_plain_convolutions_have_no_scale_channels(self):
        layers = [PlainConv(5, 5), keras.layers.GlobalMaxPooling2D()]
        channels = ScaleChannels(keras.Sequential(layers), SIGMA0, density=None)
        options = {"factor": 2.0, "steps": 2, "tolerance": 3e-2}
        with pytest.raises(AssertionError, match="not a permutation"):
            assert_channels_permuted(lambda x: array(channels(x)), IMAGES, **options)

    @pytest.mark.parametrize("kind", ["dense", "first channel"])
    def test_other_functions_of_the_channels_know_their_order(self, kind):
        dense = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(4)])
        pool = {"dense": lambda x: array(dense(x)), "first channel": lambda x: x[:, 0]}
        with pytest.raises(AssertionError, match="not invariant to permutations"):
            assert_permutation_invariant(pool[kind], SCORES, tolerance=0.1)
