"""What one would take instead: views, clutter, and the study on a few digits.

`magnified` is exact: what differs is the interpolation.
"""

import keras
import numpy as np
import pytest

from keras_gdrn.data import rescaled_arrays
from keras_gdrn.layers import ScaleChannels
from keras_gdrn.tuning import parameters


@pytest.fixture
def view(studies):
    """Of 28×28 pixels, or other ones, at a scale."""

    def at_scale(images, scale, size=28):
        maps = ScaleChannels(studies("foveation").Foveation(size), [scale])(images)
        return keras.ops.convert_to_numpy(maps)[:, 0]

    return at_scale


@pytest.fixture(scope="module")
def images():
    return rescaled_arrays("digits", "test", canvas=40, limit=6)[0]


def difference(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("factor", [0.5, 2**-0.5, 2**0.25, 2])
def test_a_magnified_image_is_seen_as_it_was(view, studies, images, factor):
    magnified = studies("magnify").magnified
    smooth, larger = (magnified(images, f, odd=False, blur=2.0) for f in (1, factor))
    expected = view(smooth, 1.0)
    assert difference(view(larger, factor), expected) < 0.015
    assert difference(view(larger, 1.0), expected) > 0.3


def test_a_view_is_the_center_and_beyond_the_image_there_is_nothing(view, images):
    np.testing.assert_allclose(view(images, 1.0), images[:, 6:34, 6:34], atol=1e-6)
    inside = np.pad(np.ones((20, 20)), 4)
    seen = view(np.ones((1, 40, 40, 1), "float32"), 2.0)
    np.testing.assert_allclose(seen[0, :, :, 0], inside, atol=1e-6)


def test_details_that_a_view_cannot_show_are_smoothed_away(view):
    stripes = np.tile([0.0, 1.0], 20) * np.ones((1, 40, 1))
    seen = view(stripes[..., None].astype("float32"), 3.0, size=8)
    assert np.ptp(seen) < 0.1
    assert np.mean(seen) == pytest.approx(0.5, abs=0.01)


def test_views_at_several_scales_are_those_at_each(view, studies, images):
    both = ScaleChannels(studies("foveation").Foveation(28), [0.5, 2.0])(images)
    for index, scale in enumerate((0.5, 2.0)):
        found = keras.ops.convert_to_numpy(both)[:, index]
        np.testing.assert_allclose(found, view(images, scale), atol=1e-5)


@pytest.mark.parametrize("factor", [0.5, 2])
def test_among_clutter_the_digit_is_whole_and_anywhere(studies, factor):
    peers = studies("peers")
    images, labels = peers.images_of("cluttered", "train", factor, 12)
    alone, same_labels = rescaled_arrays("digits", "train", factor, canvas=64, limit=12)
    np.testing.assert_array_equal(labels, same_labels)
    places = set()
    for image, digit in zip(images, map(peers.boxed, alone), strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(image, digit.shape)
        found = np.argwhere(np.all(windows == digit, axis=(3, 4, 5)))
        assert len(found) == 1
        places.add(tuple(found[0]))
    assert len(places) == len(images)
    assert images.sum() > 1.1 * alone.sum()  # a large digit may leave no place


@pytest.mark.parametrize("task", ["centered", "cluttered"])
def test_networks_have_about_as_many_weights(studies, task):
    peers = studies("peers")
    counts = [parameters(of.build(task)) for of in peers.NETWORKS.values()]
    assert max(counts) < 1.15 * min(counts)


@pytest.mark.slow
def test_every_network_has_a_row(table_of, studies, tmp_path):
    little = ["--epochs", 1, "--limit", 4, "--out", tmp_path]
    rows = table_of("studies/peers.py", "centered", *little)
    assert [title for title, *_ in rows] == [
        *("gauss_der", "cnn", "cnn_resized", "foveated")
    ]
    for _, *accuracies, _, _ in rows:
        assert len(accuracies) == 10
        assert all(0 <= float(accuracy) <= 100 for accuracy in accuracies)
    assert studies("peers").over_seeds(np.array([1.0, 3.0])) == "2.0 ± 1.4"
    assert [path.name for path in tmp_path.iterdir()] == ["centered.md"]
