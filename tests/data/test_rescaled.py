"""The pipelines, on the digits and on real CIFAR-10 and MNIST."""

import numpy as np
import pytest
import tensorflow as tf

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


def collected(data: tf.data.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """All images and labels of a data set of single elements."""
    images, labels = zip(*data.as_numpy_iterator(), strict=True)
    return np.stack(images), np.stack(labels)


def test_elements_equal_the_arrays():
    data = rescaled("digits", "test", 2**0.25, limit=300)  # more than one chunk
    expected = rescaled_arrays("digits", "test", 2**0.25, limit=300)
    for _ in range(2):  # always in the same order
        images, labels = collected(data)
        assert images.dtype == expected[0].dtype == "float32"
        assert labels.dtype == expected[1].dtype == "int32"
        np.testing.assert_allclose(images, expected[0], atol=1e-6)
        np.testing.assert_array_equal(labels, expected[1])


@pytest.mark.parametrize("factor", SIZE_FACTORS)
def test_digits_of_size_factor_one_have_twenty_pixels(factor):
    images, _ = rescaled_arrays("digits", "test", factor, limit=50)
    pixels, _ = original_arrays("digits", "test", limit=50)
    side = int(np.ceil(20 * factor))
    start = (40 - side + 1) // 2
    inside = np.s_[:, start : start + side, start : start + side]
    expected = np.zeros((50, 40, 40, 1))
    expected[inside] = np.clip(imresize(pixels / 16, 2.5 * factor), 0, 1)
    np.testing.assert_allclose(images, expected, atol=1e-6)


def test_batches_keep_the_remainder_and_have_a_known_number():
    data = rescaled("digits", "test", batch_size=100)
    assert int(data.cardinality()) == 8
    assert [len(labels) for _, labels in data] == [100] * 7 + [97]
    assert data.element_spec[0].shape.as_list() == [None, 40, 40, 1]
    assert int(rescaled("digits", "test").cardinality()) == 797


def test_shuffle_follows_the_seed_and_differs_between_epochs():
    def epochs(seed):
        data = rescaled("digits", "train", shuffle=True, seed=seed, batch_size=250)
        return [np.concatenate([y for _, y in data.as_numpy_iterator()]) for _ in "ab"]

    _, plain = rescaled_arrays("digits", "train")
    first, second = epochs(seed=1)
    np.testing.assert_array_equal(np.sort(first), np.sort(plain))
    assert np.any(first != plain)
    assert np.any(first != second)
    np.testing.assert_array_equal([first, second], epochs(seed=1))
    assert np.any(first != epochs(seed=2)[0])


def test_shuffle_keeps_images_with_their_labels():
    pairs = zip(*rescaled_arrays("digits", "train", limit=40), strict=True)
    expected = {image.tobytes(): label for image, label in pairs}
    data = rescaled("digits", "train", limit=40, shuffle=True)
    assert {i.tobytes(): label for i, label in data.as_numpy_iterator()} == expected


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "imagenet"}, "`name` .* name='imagenet'"),
        ({"split": "valid"}, "`split` .* split='valid'"),
        ({"split": "valid", "canvas": 40}, "`split` .* split='valid'"),
        ({"factor": 0.0}, r"`factor` .* factor=0\.0"),
        ({"canvas": 0}, "`canvas` .* canvas=0"),
        ({"limit": 0}, "`limit` .* limit=0"),
        ({"limit": 2.5}, r"`limit` .* limit=2\.5"),
        ({"batch_size": 0}, "`batch_size` .* batch_size=0"),
        ({"batch_size": True}, "`batch_size` .* batch_size=True"),
    ],
)
def test_errors_name_the_argument_and_the_value(arguments, message):
    functions = [rescaled] if "batch_size" in arguments else [rescaled, rescaled_arrays]
    for function in functions:
        with pytest.raises(ValueError, match=message):
            function(**{"name": "digits", "split": "test"} | arguments)


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
