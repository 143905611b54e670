"""Scale invariance of the whole network with several scale channels."""

import functools

import keras
import pytest
from analytic_images import AnalyticImage
from invariance_assertions import assert_channels_permuted, assert_scale_invariant
from theory_networks import array, at_scale, random_channel

from keras_gdrn.layers import ScaleChannels, ScalePooling

SIGMA0 = [2 ** (i / 2) for i in range(-4, 7)]
# Few layers, so that the coarsest scale channel does not reach the border.
CHANNEL = {"widths": (8, 8), "classes": 5}
STEPS = {1: 2**0.5, 2: 2.0}


def small_object(seed):
    """Blobs of 3 to 5 pixels about the origin, seen best by the middle channels."""
    image = AnalyticImage(seed, blobs=6, extent=8.0)
    image.width, image.wave = image.width / 4 + 2, image.wave
    return image


IMAGES = [small_object(seed) for seed in range(3)]


@functools.cache
def scale_channels():
    return ScaleChannels(random_channel(**CHANNEL), SIGMA0)


def scores(images):
    return array(scale_channels()(images))


@pytest.mark.parametrize("steps", STEPS)
def test_rescaling_permutes_the_channels(steps):
    assert_channels_permuted(
        scores, IMAGES, factor=STEPS[steps], steps=steps, tolerance=3e-2
    )


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("mode", ["max", "logsumexp", "average"])
def test_pooled_scores_are_invariant(mode, steps):
    pool = ScalePooling(mode)
    assert_scale_invariant(
        lambda images: array(pool(scores(images))),
        IMAGES,
        factor=STEPS[steps],
        tolerance=8e-2,
    )


class TestCounterExamples:
    @pytest.mark.parametrize("steps", STEPS)
    def test_one_channel_is_not_invariant(self, steps):
        single = functools.partial(at_scale(random_channel(**CHANNEL)), 1.0)
        with pytest.raises(AssertionError, match="not scale invariant"):
            assert_scale_invariant(single, IMAGES, factor=STEPS[steps], tolerance=0.25)

    def test_rescaling_by_two_steps_is_not_a_permutation_by_one(self):
        with pytest.raises(AssertionError, match="not a permutation"):
            assert_channels_permuted(
                scores, IMAGES, factor=2.0, steps=1, tolerance=0.25
            )

    def test_plain_convolutions_have_no_scale_channels(self):
        plain = keras.Sequential(
            [keras.layers.Conv2D(5, 5), keras.layers.GlobalMaxPooling2D()]
        )
        channels = ScaleChannels(plain, SIGMA0)
        with pytest.raises(AssertionError, match="not a permutation"):
            assert_channels_permuted(
                lambda images: array(channels(images)),
                IMAGES,
                factor=2.0,
                steps=2,
                tolerance=3e-2,
            )
