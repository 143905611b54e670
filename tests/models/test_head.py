"""`head_initializers`: how the last layer of a scale channel begins."""

import keras
import numpy as np
import pytest

from keras_gdrn.layers import GaussDerConv
from keras_gdrn.models import head_initializers, scale_channel
from tests.layers._contract import numpy

pytestmark = pytest.mark.seen_on_tensorflow("initializers are those of Keras")


@pytest.mark.parametrize(
    ("kind", "zero_order", "share", "lift"),
    [
        ("he_uniform", False, 1, 0),
        ("positive", False, 1 / 5, 0.2),
        ("positive", True, 1 / 5, 1.0),
    ],
)
def test_weights_as_large_as_hes_or_a_fifth_and_what_lifts_the_scores(
    kind, zero_order, share, lift
):
    how = head_initializers(kind, zero_order=zero_order)
    head = GaussDerConv(50, 1.5, **how)
    head.build((None, 8, 8, 64))
    limit = share * np.sqrt(6 / (64 * 5))  # five terms of the jet count
    assert 0.95 * limit < np.abs(numpy(head.kernel)).max() <= limit * (1 + 1e-6)
    np.testing.assert_array_equal(numpy(head.bias), np.float32(lift))
    # A channel of the builder begins as one that is written by hand.
    options = {"zero_order": zero_order, "head_initializer": kind}
    built = scale_channel((12, 12, 1), 50, [4], 1.5, **options).get_layer("head")
    for name in ("kernel_initializer", "bias_initializer"):
        assert built.get_config()[name] == head.get_config()[name]


def first_scores(**options):
    """Of a fresh channel that has 50 classes, for 50 images: `(image, class)`."""
    keras.utils.set_random_seed(0)
    channel = scale_channel((24, 24, 3), 50, [16, 16, 32], 1.25, **options)
    images = np.random.default_rng(0).normal(size=(50, 24, 24, 3))
    return numpy(channel(images.astype("float32"), training=True))


@pytest.mark.parametrize(("zero_order", "center"), [(False, 0.2), (True, 1.0)])
def test_no_class_begins_cut_off(zero_order, center):
    scores = first_scores(zero_order=zero_order)
    assert np.mean(scores == 0) < 0.01
    assert np.mean(scores) == pytest.approx(center, rel=0.25)
    assert 0.02 < np.std(scores) < center / 2


@pytest.mark.parametrize(
    "options", [{"bias_initializer": "zeros"}, {"kernel_initializer": "he_uniform"}]
)
def test_given_initializers_are_those_of_the_last_layer_too(options):
    assert np.mean(first_scores(**options) == 0) > 0.05
