"""The table of data sets."""

from itertools import combinations

import numpy as np
import pytest

from keras_gdrn.data import DATASETS, SIZE_FACTORS


def test_size_factors():
    np.testing.assert_allclose(SIZE_FACTORS, 2 ** (np.arange(-4, 5) / 4))
    assert SIZE_FACTORS[::4] == (0.5, 1.0, 2.0)


@pytest.mark.parametrize(
    ("name", "train", "validation", "test", "canvas", "test_canvas"),
    [
        ("fashion_mnist", 50000, 10000, 10000, 72, 72),
        ("cifar10", 40000, 10000, 10000, 64, 64),
        ("stl10", 7000, 1000, 3600, 96, 192),
        ("stl10_original", 5000, 0, 8000, 96, 96),
        ("mnist", 50000, 10000, 10000, 72, 72),
        ("digits", 1000, 0, 797, 40, 40),
    ],
)
def test_sizes_are_those_of_the_paper_and_no_image_is_in_two_splits(
    name, train, validation, test, canvas, test_canvas
):
    info = DATASETS[name]
    assert (info.size("train"), info.size("test")) == (train, test)
    assert info.size("train+validation") == train + validation
    assert (info.canvas, info.test_canvas) == (canvas, test_canvas)
    assert info.classes == 10 == len(set(info.class_names))
    for one, other in combinations(info.train + info.validation + info.test, 2):
        apart = one.stop <= other.start or other.stop <= one.start
        assert one.source != other.source or apart
    largest = max(info.image_shape) * info.unit * (1 if "original" in name else 2)
    assert largest <= info.test_canvas
