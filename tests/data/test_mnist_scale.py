"""MNIST-Scale: the splits, the sizes and their seeds."""

import functools

import numpy as np
import pytest

from keras_gdrn.data import _mnist_scale, imresize, mnist_scale


@pytest.fixture
def digits(monkeypatch):
    """70 000 blank images, so that their labels are their numbers in MNIST."""
    sides = {"train+validation": (0, 60000), "test": (60000, 70000)}

    def arrays(name, split, **where):
        assert name == "mnist"
        labels = np.arange(*sides[split], dtype="int32")
        return np.full((len(labels), 28, 28, 1), 255, "uint8"), labels

    monkeypatch.setattr(_mnist_scale, "original_arrays", arrays)


def test_splits_share_no_digit(digits, monkeypatch):
    monkeypatch.setattr(_mnist_scale, "rescale", lambda *_: np.zeros(1, "float32"))
    splits = [mnist_scale(name)[1] for name in ("train", "validation", "test")]
    assert [len(labels) for labels in splits] == [10000, 2000, 50000]
    assert len(np.unique(np.concatenate(splits))) == 62000


def test_sizes_are_uniform(digits):
    images, _ = mnist_scale("validation")
    assert images.shape == (2000, 28, 28, 1)
    assert images.dtype == "float32"
    assert images.min() == 0
    assert images.max() == 1
    sides = (images[:, :, 14, 0] > 0.5).sum(axis=1)
    counts = np.bincount(sides, minlength=29)
    assert counts[:9].sum() == 0  # the smallest has 0.3 · 28 = 8.4 pixels, rounded up
    assert counts[10:28].min() > 60  # 102 are expected at each size


def test_a_realization_is_its_seed(digits):
    few, labels = mnist_scale("train", limit=5)
    images, every = mnist_scale("train", limit=50)
    np.testing.assert_array_equal(few, images[:5])
    np.testing.assert_array_equal(labels, every[:5])
    assert (mnist_scale("train", 1, limit=50)[1] != every).any()


@pytest.mark.slow
def test_an_image_is_the_resized_digit(mnist_dir, monkeypatch):
    original_arrays = functools.cache(_mnist_scale.original_arrays)
    monkeypatch.setattr(_mnist_scale, "original_arrays", original_arrays)
    images, _ = mnist_scale("test", limit=1, data_dir=mnist_dir)
    random = np.random.RandomState(0)
    number = random.permutation(70000)[12000]
    factor = random.uniform(0.3, 1.0, 70000)[12000]
    split = "train+validation" if number < 60000 else "test"
    where = {"data_dir": mnist_dir, "download": False}
    digits, _ = original_arrays("mnist", split, **where)
    expected = np.clip(imresize(digits[number % 60000], factor) / 255, 0, 1)
    rows = expected.shape[0]
    start = (28 - rows + 1) // 2
    part = images[0, start : start + rows, start : start + rows]
    np.testing.assert_allclose(part, expected, atol=1e-5)
    assert images[0].sum() == pytest.approx(expected.sum(), rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("valid",), "`split` must be one of"),
        (("train", -1), "`realization` must be an integer >= 0. Received"),
        (("train", 0.5), "`realization` must be an integer >= 0. Received"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        mnist_scale(*arguments)
