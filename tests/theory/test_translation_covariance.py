"""Translation covariance of the maps, and invariance of the maximum over space."""

import functools

import keras
import pytest

from keras_gdrn.layers import ScaleChannels, SpatialSelection
from tests._cases import cases
from tests.theory.assertions import (
    assert_translation_covariant,
    assert_translation_invariant,
)
from tests.theory.counter_examples import SubsampledBlock
from tests.theory.images import AnalyticImage
from tests.theory.networks import (
    array,
    at_scale,
    feature_maps,
    on_pixels,
    random_block,
    random_channel,
    random_layer,
)

IMAGE = AnalyticImage()
SMALL_OBJECT = AnalyticImage(blobs=8, extent=4.0)
SMALL_OBJECT.width = SMALL_OBJECT.width / 2
SHAPE = (111, 111, 3)


LAYERS = [(0.5, "symmetric"), (1.0, "zero"), (4.0, "zero"), (4.0, "symmetric")]


@pytest.mark.parametrize(("sigma0", "boundary"), cases(LAYERS, LAYERS[2:]))
def test_layer(sigma0, boundary):
    """Of a coarse scale by a shift that is no multiple of the step of its grid."""
    layer = random_layer(SHAPE, boundary=boundary)
    for channels, tolerance in ((ScaleChannels, 6e-3), (on_pixels, 2e-3)):
        maps = functools.partial(at_scale(layer, channels), sigma0)
        assert_translation_covariant(maps, IMAGE, tolerance=tolerance)


@pytest.mark.parametrize("dimensions", [1, 3])
def test_dimensions(dimensions):
    image = AnalyticImage(dimensions=dimensions, channels=2, extent=30.0)
    layer = random_layer((*[None] * dimensions, 2), 3, sigma=2.0)
    options = {"shift": (3, -5, 2)[:dimensions], "size": 61, "crop": 10}
    assert_translation_covariant(
        lambda images: array(layer(images)), image, tolerance=5e-4, **options
    )


@pytest.mark.seen_on_tensorflow("its layers are tested here")
def test_channel_of_18_layers():
    """The closer, the more samples there are in each σ."""
    network, sizes = feature_maps(random_channel()), {"size": 111, "crop": 16}
    for density, tolerance in ((1.0, 8e-2), (2.0, 3e-2), (None, 5e-3)):
        channels = functools.partial(ScaleChannels, density=density)
        maps = functools.partial(at_scale(network, channels), 1.0)
        assert_translation_covariant(maps, IMAGE, tolerance=tolerance, **sizes)


@pytest.mark.parametrize("shift", cases([(3, -5), (-4, 0)], [(3, -5)]))
def test_max_selection_is_invariant(shift):
    """Under the zero boundary the maximum is often at the border, whatever the image.

    There, the maps of a blank image fall to zero, and their edge may outdo an object.
    The maximum is that of the samples: the more of them, the closer.
    """
    options = {"spatial_selection": "max", "boundary": "symmetric"}
    channel = random_channel(widths=(8, 8), **options)
    for density, tolerance in ((1.0, 3e-2), (2.0, 1e-2)):
        channels = functools.partial(ScaleChannels, density=density)
        score = functools.partial(at_scale(channel, channels), 1.0)
        assert_translation_invariant(
            score, SMALL_OBJECT, shift=shift, tolerance=tolerance
        )


@pytest.mark.seen_on_tensorflow("the assertions are the same")
class TestCounterExamples:
    def test_center_selection_is_not_invariant(self):
        channel = random_channel(widths=(8, 8), spatial_selection="center")
        score = functools.partial(at_scale(channel), 1.0)
        with pytest.raises(AssertionError, match="not translation invariant"):
            assert_translation_invariant(score, SMALL_OBJECT, tolerance=0.2)

    def test_subsampling(self):
        block = SubsampledBlock(random_block((None, None, 3)))
        with pytest.raises(AssertionError, match="not translation covariant"):
            assert_translation_covariant(
                lambda images: array(block(images)), IMAGE, tolerance=2e-2
            )

    def test_dense_layer(self):
        dense = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(4)])
        select = keras.Sequential([SpatialSelection("max")])
        assert_translation_invariant(
            lambda images: array(select(images)), SMALL_OBJECT, tolerance=1e-6
        )
        with pytest.raises(AssertionError, match="not translation invariant"):
            assert_translation_invariant(
                lambda images: array(dense(images)), SMALL_OBJECT, tolerance=0.2
            )
