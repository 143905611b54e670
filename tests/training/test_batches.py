"""The chains from data to batches, for training and for evaluation."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.data import rescaled, rescaled_arrays
from keras_gdrn.training import (
    Augmentation,
    Recipe,
    _batches,
    _shares,
    evaluation_batches,
    training_batches,
)

IMAGES, LABELS = rescaled_arrays("digits", "train", limit=50)
PLAIN = Recipe(1, 16)
FLIPPED = Recipe(1, 16, augmentation=Augmentation(flip=0.5))


def collected(batches):
    images, labels = zip(*batches.as_numpy_iterator(), strict=True)
    return np.concatenate(images), np.concatenate(labels)


def test_evaluation_keeps_all_images_in_order():
    batches = evaluation_batches((IMAGES, LABELS), 16, classes=10)
    assert [len(labels) for _, labels in batches] == [16, 16, 16, 2]
    images, labels = collected(batches)
    np.testing.assert_array_equal(images, IMAGES)
    np.testing.assert_array_equal(labels, np.eye(10)[LABELS])


def test_training_has_each_image_once_in_another_order():
    batches = training_batches((IMAGES, LABELS), PLAIN, classes=10)
    assert int(batches.cardinality()) == 4
    images, labels = collected(batches)
    numbers = {image.tobytes(): n for n, image in enumerate(IMAGES)}
    order = [numbers[image.tobytes()] for image in images]
    assert sorted(order) == list(range(50))
    assert order != sorted(order)
    np.testing.assert_array_equal(labels, np.eye(10)[LABELS[order]])


@pytest.mark.parametrize("source", ["arrays", "dataset"])
def test_the_nth_iteration_is_the_nth_epoch(source):
    def batches():
        options = {"limit": 50, "batch_size": 16, "shuffle": True}
        data = (IMAGES, LABELS)
        if source == "dataset":
            data = rescaled("digits", "train", **options)
        return training_batches(data, FLIPPED, classes=10, seed=3)

    tf.random.set_seed(1)
    whole = batches()
    epochs = [collected(whole)[0] for _ in range(3)]
    assert np.any(epochs[0] != epochs[1])
    tf.random.set_seed(2)  # of no influence
    skipped = batches()
    for _ in range(2):
        next(iter(skipped))
    np.testing.assert_array_equal(collected(skipped)[0], epochs[2])


def test_each_batch_is_augmented_by_numbers_of_its_own():
    image = np.repeat(IMAGES[:1], 64, axis=0)
    labels = np.zeros(64, "int32")
    batches = training_batches((image, labels), FLIPPED, classes=10)
    patterns = {
        tuple(np.all(images == image[0], axis=(1, 2, 3)))
        for images, _ in batches.as_numpy_iterator()
    }
    assert len(patterns) == 4
    kept = np.mean(collected(batches)[0] == image, axis=(1, 2, 3)) == 1
    assert 0.2 < kept.mean() < 0.8


@pytest.mark.parametrize(("size", "known"), [(16, None), (25, 25)])
def test_batches_of_arrays_tell_whether_all_are_whole(size, known):
    batches = training_batches((IMAGES, LABELS), Recipe(1, size), classes=10)
    assert [part.shape[0] for part in batches.element_spec] == [known, known]


def test_what_is_made_here_ends_at_once():
    """Where tf.data tunes a pipeline, its end may wait for the thread that does so."""
    digits = rescaled("digits", "train", limit=50, batch_size=16, shuffle=True)
    blank = np.zeros((1, 40, 40, 1), "float32"), np.zeros((1, 10), "float32")
    for data in (digits, (IMAGES, LABELS)):
        batches = training_batches(data, PLAIN, classes=10)
        repeated, _ = _shares.repeated_in_training(batches, blank, 1)
        for made in (batches, repeated, evaluation_batches(data, 16, classes=10)):
            assert made.options().autotune.enabled is False
    own = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).batch(16)
    assert training_batches(own, PLAIN, 10).options().autotune.enabled is None


@pytest.mark.parametrize("first", [0, 1, 2])
def test_no_more_iterations_are_begun_than_there_are_epochs(first):
    """Those of a stage that follows would have other orders."""
    model = keras.Sequential([keras.Input((4, 4, 1)), keras.layers.Flatten()])
    images = np.arange(6, dtype="float32")[:, None, None, None] * np.ones((4, 4, 1))

    def order(data):
        return [n for batch in data for n in batch[0][:, 0, 0, 0].numpy()]

    def batches():
        tf.random.set_seed(0)
        data = tf.data.Dataset.from_tensor_slices((images, np.zeros((6, 1), "float32")))
        return data.shuffle(6, seed=0).batch(3)

    expected, data = batches(), batches()
    orders = [order(expected) for _ in range(3)]
    found = order(_shares.repeated(data, model, 1, first, 2)[0])
    assert found == [n for epoch in orders[first:2] for n in epoch]
    assert order(data) == orders[2]


MADE = {
    "training": lambda data: training_batches(data, PLAIN, classes=10),
    "evaluation": lambda data: evaluation_batches(data, 16, classes=10),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        (0, 255.0, r"divide .* by 255 .*Received: values up to\]? \[?255"),
        (1, -1, r"number the 10 classes .*Received:\]? \[-1\]"),
        (1, 10, r"number the 10 classes .*Received:\]? \[10\]"),
        (2, -1.0, r"finite numbers >= 0. Received:\]? \[-1"),
        (2, np.nan, r"finite numbers >= 0. Received:\]? \[nan"),
        (2, np.inf, r"finite numbers >= 0. Received:\]? \[inf"),
    ],
)
def test_unfit_values(made, part, value, message):
    """Those of arrays, wherever they are, at once; those of batches when they come."""
    data = np.repeat(IMAGES, 2, axis=0), np.repeat(LABELS, 2), np.ones(100, "float32")
    data[part][90] = value
    with pytest.raises(ValueError, match=message):
        made(data)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(made(tf.data.Dataset.from_tensor_slices(data).batch(16)))


def test_color_jitter_takes_no_standardized_images():
    standardized = np.concatenate([IMAGES[:40], 2 * IMAGES[40:] - 1])
    data = standardized, LABELS
    jitter = Recipe(1, 16, augmentation=Augmentation(contrast=0.1))
    message = r"color jitter clips .* lowest and highest value\]? \[-1 1\]"
    with pytest.raises(ValueError, match=message.replace("1 1", r"1\. +1\.")):
        training_batches(data, jitter, classes=10)
    own = tf.data.Dataset.from_tensor_slices(data).batch(16)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(training_batches(own, jitter, classes=10))
    list(training_batches(data, FLIPPED, classes=10))
    list(evaluation_batches(data, 16, classes=10))


@pytest.mark.parametrize("has_tensorflow", [True, False])
@pytest.mark.parametrize("classes", [1, 10])
def test_weights_of_classes_multiply_those_of_images(
    classes, has_tensorflow, monkeypatch
):
    monkeypatch.setattr(_batches, "has_tensorflow", lambda: has_tensorflow)
    labels = np.minimum(LABELS, max(classes, 2) - 1)
    of_class = {number: 0.5 + number for number in range(max(classes, 2))}
    batches = training_batches((IMAGES, labels, 1.0 + labels), PLAIN, classes)
    for _, targets, weights in _batches.weighted(batches, of_class):
        numbers = targets[:, 0] if classes == 1 else np.argmax(targets, axis=1)
        np.testing.assert_allclose(weights, (0.5 + numbers) * (1.0 + numbers))
