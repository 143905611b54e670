"""The pipelines, on the digits and on real CIFAR-10 and MNIST."""

import numpy as np
import pytest

from keras_gdrn.data import (
    DATASETS,
    SIZE_FACTORS,
    _rescaled,
    imresize,
    original_arrays,
    rescale,
    rescaled,
    rescaled_arrays,
)


@pytest.mark.parametrize("factor", SIZE_FACTORS)
def test_digits_of_size_factor_one_have_twenty_pixels(factor):
    images, labels = rescaled_arrays("digits", "test", factor, limit=50)
    pixels, same = original_arrays("digits", "test", limit=50)
    np.testing.assert_array_equal(labels, same)
    side = int(np.ceil(20 * factor))
    start = (40 - side + 1) // 2
    inside = np.s_[:, start : start + side, start : start + side]
    expected = np.zeros((50, 40, 40, 1))
    expected[inside] = np.clip(imresize(pixels / 16, 2.5 * factor), 0, 1)
    np.testing.assert_allclose(images, expected, atol=1e-6)


def test_limit_takes_the_first_and_mixes_classes():
    _, labels = rescaled_arrays("digits", "train")
    _, first = rescaled_arrays("digits", "train", limit=60)
    np.testing.assert_array_equal(first, labels[:60])
    assert set(first) == set(range(10))


def test_canvas_can_be_chosen():
    images, _ = rescaled_arrays("digits", "test", canvas=(12, 30), limit=2)
    default, _ = rescaled_arrays("digits", "test", limit=2)
    np.testing.assert_allclose(images, default[:, 14:26, 5:35], atol=1e-6)


@pytest.mark.parametrize("split", ["train", "train+validation", "test"])
@pytest.mark.parametrize("name", DATASETS)
def test_default_canvas_and_extension_of_every_split(name, split, monkeypatch):
    info = DATASETS[name]
    white = np.full((2, *info.image_shape), info.white, dtype="uint8")
    labels = np.zeros(2, dtype="int32")
    monkeypatch.setattr(_rescaled, "original_arrays", lambda *_, **__: (white, labels))
    images, _ = rescaled_arrays(name, split, 0.5)
    side = info.test_canvas if split == "test" else info.canvas
    assert images.shape == (2, side, side, info.image_shape[2])
    corner = {"zero": 0, "mirror": 1}[info.extension]
    np.testing.assert_allclose(images[:, 0, 0], corner, atol=1e-6)
    np.testing.assert_allclose(images[:, side // 2, side // 2], 1, atol=1e-6)


def test_cifar10_is_mirrored_and_clipped_to_its_range(cifar10_dir):
    options = {"limit": 200, "data_dir": cifar10_dir}
    images, labels = rescaled_arrays("cifar10", "test", **options)
    assert images.shape == (200, 64, 64, 3) and set(labels) == set(range(10))
    np.testing.assert_array_equal(images[:, :16], images[:, 31:15:-1])
    np.testing.assert_allclose(images * 255, np.round(images * 255), atol=1e-4)
    # Where images are twice as large, the cubic overshoots.
    free = rescale(images[:, 16:48, 16:48], 2.0, 64, "mirror")
    assert free.max() > 1.01
    images, _ = rescaled_arrays("cifar10", "test", 2.0, **options)
    np.testing.assert_allclose(images, np.clip(free, 0, 1), atol=1e-6)


def test_mnist_is_surrounded_by_zeros(mnist_dir):
    data = rescaled("mnist", "test", 2.0, limit=20, batch_size=20, data_dir=mnist_dir)
    images, _ = next(data.as_numpy_iterator())
    assert images.shape == (20, 72, 72, 1)
    assert not images[:, :8].any() and not images[:, :, 64:].any()
    assert images.max() > 0.95
