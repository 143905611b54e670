"""What one would take instead: views, clutter, and the study on a few digits.

`magnified` is exact: what differs is the interpolation.
"""

import argparse

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


def test_resized_copies_are_of_all_sizes(studies):
    peers = studies("peers")
    images, labels = peers.training_images("centered", True, 3)
    sizes = [max(peers.boxed(image).shape) for image in images]
    assert len(labels) == 30 and min(sizes) <= 10 and max(sizes) >= 36
    assert len(peers.training_images("centered", False, 3)[1]) == 3


def test_places_in_the_test_are_not_those_of_the_training(studies, monkeypatch):
    peers = studies("peers")
    same = rescaled_arrays("digits", "train", canvas=64, limit=4)
    monkeypatch.setattr(peers, "rescaled_arrays", lambda *_, **__: same)
    first, second = (
        peers.images_of("cluttered", split, 1.0, 4)[0] for split in ("train", "test")
    )
    assert not np.array_equal(first, second)


def test_tries_are_judged_by_images_that_were_held_out(studies, monkeypatch):
    peers, judged = studies("peers"), []

    def judge(_, tests):
        judged.extend(tests.values())
        return argparse.Namespace(accuracies=np.zeros(9))

    trained_on = peers.images_of("centered", "train", 1.0, 3)[0]
    monkeypatch.setattr(peers, "scale_generalization", judge)
    monkeypatch.setattr(peers, "trained", lambda *given: kept.append(given[3]))
    kept, options = [], argparse.Namespace(task="centered", limit=4, seeds=[0])
    peers.tries("cnn", options)
    assert kept == [3] * 3 and len(judged) == 3 * 9
    at_one = judged[4][0]
    assert len(at_one) == 1
    assert not any(np.array_equal(at_one[0], image) for image in trained_on)


@pytest.mark.parametrize("task", ["centered", "cluttered"])
def test_scale_channels_look_where_the_digits_are(studies, task):
    channel = studies("peers").gauss_der(task).get_layer("scale_channels").network
    mode = channel.get_layer("spatial_selection").mode
    assert mode == {"centered": "center", "cluttered": "max"}[task]


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
