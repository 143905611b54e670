"""The table of data sets, and what is rescaled by it."""

from itertools import combinations

import numpy as np
import pytest

from keras_gdrn.data import (
    DATASETS,
    SIZE_FACTORS,
    _rescaled,
    imresize,
    original_arrays,
    rescaled_arrays,
)


def test_size_factors():
    np.testing.assert_allclose(SIZE_FACTORS, 2 ** (np.arange(-4, 5) / 4))
    assert SIZE_FACTORS[::4] == (0.5, 1.0, 2.0)


# Images in each split, sides of the canvas in training and test, value of its corner.
KNOWN = {
    "fashion_mnist": (50000, 10000, 10000, 72, 72, 0),
    "cifar10": (40000, 10000, 10000, 64, 64, 1),
    "stl10": (7000, 1000, 3600, 96, 192, 1),
    "stl10_original": (5000, 0, 8000, 96, 96, 1),
    "mnist": (50000, 10000, 10000, 72, 72, 0),
    "digits": (1000, 0, 797, 40, 40, 0),
}


@pytest.mark.parametrize("name", DATASETS)
def test_data_sets_are_those_of_the_paper_and_no_image_is_in_two_splits(
    name, monkeypatch
):
    train, validation, test, canvas, test_canvas, corner = KNOWN[name]
    info = DATASETS[name]
    assert (info.size("train"), info.size("test")) == (train, test)
    assert info.size("train+validation") == train + validation
    assert info.classes == 10 == len(set(info.class_names))
    for one, other in combinations(info.train + info.validation + info.test, 2):
        apart = one.stop <= other.start or other.stop <= one.start
        assert one.source != other.source or apart
    largest = max(info.image_shape) * info.unit * (1 if "original" in name else 2)
    assert largest <= info.test_canvas
    # White images, surrounded by zeros or by themselves.
    white = np.full((2, *info.image_shape), info.white, "uint8"), np.zeros(2, "int32")
    monkeypatch.setattr(_rescaled, "original_arrays", lambda *_, **__: white)
    sides = {"train": canvas, "train+validation": canvas, "test": test_canvas}
    for split, side in sides.items():
        images, _ = rescaled_arrays(name, split, 0.5)
        assert images.shape == (2, side, side, info.image_shape[2])
        np.testing.assert_allclose(images[:, 0, 0], corner, atol=1e-6)
        np.testing.assert_allclose(images[:, side // 2, side // 2], 1, atol=1e-6)


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
