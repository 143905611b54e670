"""The table of data sets."""

from itertools import combinations, pairwise

import pytest

from keras_gdrn.data import DATASETS, SIZE_FACTORS


def test_size_factors():
    assert len(SIZE_FACTORS) == 9
    assert SIZE_FACTORS[::4] == (0.5, 1.0, 2.0)
    for small, large in pairwise(SIZE_FACTORS):
        assert large / small == pytest.approx(2**0.25)


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
def test_sizes_are_those_of_the_paper(
    name, train, validation, test, canvas, test_canvas
):
    info = DATASETS[name]
    assert info.size("train") == train
    assert info.size("test") == test
    assert info.size("train+validation") == train + validation
    if validation:
        assert info.size("validation") == validation
    assert (info.canvas, info.test_canvas) == (canvas, test_canvas)
    assert info.classes == 10 == len(set(info.class_names))


@pytest.mark.parametrize("name", DATASETS)
def test_splits_are_disjoint(name):
    info = DATASETS[name]
    pieces = info.train + info.validation + info.test
    for one, other in combinations(pieces, 2):
        apart = one.stop <= other.start or other.stop <= one.start
        assert one.source != other.source or apart


@pytest.mark.parametrize("name", DATASETS)
def test_the_largest_images_fit_their_canvas(name):
    info = DATASETS[name]
    largest = max(info.image_shape) * info.unit * (1 if "original" in name else 2)
    assert largest <= info.test_canvas


@pytest.mark.parametrize(
    ("name", "split"), [("digits", "validation"), ("cifar10", "valid")]
)
def test_unknown_split_is_an_error(name, split):
    with pytest.raises(ValueError, match=f"`split` of {name} .* split='{split}'"):
        DATASETS[name].slices(split)
