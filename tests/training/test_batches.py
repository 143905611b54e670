"""Batches as functions of seed, epoch and step, and how they get to Keras."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.data import rescaled, rescaled_arrays
from keras_gdrn.training import Augmentation, Recipe, _pipeline, training_batches
from keras_gdrn.training._batches import Batches
from keras_gdrn.training._pipeline import pipeline
from keras_gdrn.training._sources import as_source

IMAGES, LABELS = rescaled_arrays("digits", "train", limit=50)
SHAPE = (None, None, None, 1)
PLAIN = Recipe(1, 16)
FLIPPED = Recipe(1, 16, augmentation=Augmentation(flip=0.5))
EVERYTHING = Recipe(1, 16, augmentation=Augmentation(2, 0.5, 0.2, 0.2, 0.2, 0.05, 3))


def training(recipe, data=(IMAGES, LABELS), classes=10, **options):
    options = {"augmentation": recipe.augmentation, **options}
    return Batches(as_source(data), recipe.batch_size, SHAPE, classes, **options)


def evaluation(data=(IMAGES, LABELS), classes=10, size=16, **options):
    return Batches(as_source(data), size, SHAPE, classes, **options)


def collected(batches, epoch=0):
    numbers = range(epoch * batches.steps, (epoch + 1) * batches.steps)
    images, labels = zip(*(batches.batch(n) for n in numbers), strict=True)
    return np.concatenate(images), np.concatenate(labels)


def test_evaluation_keeps_all_images_in_order():
    batches = evaluation()
    assert [len(batches.batch(n)[1]) for n in range(4)] == [16, 16, 16, 2]
    images, labels = collected(batches)
    np.testing.assert_array_equal(images, IMAGES)
    np.testing.assert_array_equal(labels, np.eye(10)[LABELS])


def test_each_epoch_has_each_image_once_in_another_order():
    batches, orders = training(PLAIN), []
    numbers = {image.tobytes(): n for n, image in enumerate(IMAGES)}
    for epoch in range(2):
        images, labels = collected(batches, epoch)
        orders.append([numbers[image.tobytes()] for image in images])
        assert sorted(orders[-1]) == list(range(50))
        np.testing.assert_array_equal(labels, np.eye(10)[LABELS[orders[-1]]])
    assert orders[0] != orders[1] and sorted(orders[0]) != orders[0]


@pytest.mark.parametrize("seed", [3, 2**40, 2**70])
def test_a_batch_depends_on_its_number_and_the_seed_only(seed):
    expected = [training(EVERYTHING, seed=seed).batch(n) for n in range(9)]
    batches = training(EVERYTHING, seed=seed)
    for number in (8, 2, 5, 2):
        assert_same(batches.batch(number), expected[number])
    for other in (training(EVERYTHING, seed=seed + 1).batch(2), expected[3]):
        with pytest.raises(AssertionError):
            assert_same(other, expected[2])


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("has_tensorflow", [True, False])
@pytest.mark.parametrize("weights", [(), (np.linspace(0.5, 1.5, 50),)])
def test_the_same_bytes_get_to_keras(has_tensorflow, weights, monkeypatch):
    monkeypatch.setattr(_pipeline, "has_tensorflow", lambda: has_tensorflow)
    for batches in (
        training(EVERYTHING, (IMAGES, LABELS, *weights)),
        evaluation((IMAGES, LABELS, *weights)),
    ):
        data = pipeline(batches, 2, 5)
        assert data.cardinality() == 5 if has_tensorflow else data.num_batches == 5
        in_order = (data[n] for n in range(5)) if not has_tensorflow else ()
        found = list(data.as_numpy_iterator() if has_tensorflow else in_order)
        for number, batch in zip(range(2, 7), found, strict=True):
            assert_same(batch, batches.batch(number))
        if has_tensorflow:
            assert [s.shape[0] for s in data.element_spec] == [None] * len(found[0])
            assert data.options().autotune.enabled is False  # its end would wait


def test_data_of_this_package_are_read_by_number():
    """In batches of the recipe's size, whatever their own is."""
    for size in (None, 8):
        data = rescaled("digits", "train", limit=50, batch_size=size)
        assert_same(training(EVERYTHING, data).batch(7), training(EVERYTHING).batch(7))


def test_the_batches_of_training_are_public():
    data = training_batches((IMAGES, LABELS), EVERYTHING, 10, seed=3, epochs=2)
    expected = training(EVERYTHING, seed=3)
    assert len(data) == 8
    for number, batch in enumerate(data.as_numpy_iterator()):
        assert_same(batch, expected.batch(number))


def test_batches_made_elsewhere_begin_in_the_middle():
    data = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)).batch(16)
    batches = training(PLAIN, data)
    found = list(itertools.islice(batches.stream(2), 7))
    epoch = list(data.as_numpy_iterator())
    expected = [epoch[n % 4] for n in range(2, 9)]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])


def test_batches_that_are_too_few():
    class TooFew:
        def __len__(self):
            return 2

        def __iter__(self):
            return iter([(IMAGES[:16], LABELS[:16])])

    data = TooFew()
    with pytest.raises(ValueError, match=r"2 batches in each .* Received: 1 batches"):
        list(training(PLAIN, data).stream(0))


def test_each_batch_is_augmented_by_numbers_of_its_own():
    image = np.repeat(IMAGES[:1], 64, axis=0)
    batches = training(FLIPPED, (image, np.zeros(64, "int32")))
    patterns = {
        tuple(np.all(batches.batch(n)[0] == image[0], axis=(1, 2, 3)))
        for n in range(8)  # of two epochs
    }
    assert len(patterns) == 8
    kept = np.mean(collected(batches)[0] == image, axis=(1, 2, 3)) == 1
    assert 0.2 < kept.mean() < 0.8


MADE = {
    "training": lambda data: training(PLAIN, data),
    "evaluation": evaluation,
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        (0, 255.0, r"divide .* by 255 .*Received: values up to 255"),
        (1, -1, r"number the 10 classes .*Received: \[-1\]"),
        (1, 10, r"number the 10 classes .*Received: \[10\]"),
        (2, -1.0, r"finite numbers >= 0. Received: \[-1"),
        (2, np.nan, r"finite numbers >= 0. Received: \[nan"),
        (2, np.inf, r"finite numbers >= 0. Received: \[inf"),
    ],
)
def test_unfit_values(made, part, value, message):
    """Those of arrays, wherever they are, at once; those of batches when they come."""
    data = np.repeat(IMAGES, 2, axis=0), np.repeat(LABELS, 2), np.ones(100, "float32")
    data[part][90] = value
    with pytest.raises(ValueError, match=message):
        made(data)
    batches = made(tf.data.Dataset.from_tensor_slices(data).batch(16))
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(pipeline(batches, 0, batches.steps))


def test_color_jitter_takes_no_standardized_images():
    standardized = np.concatenate([IMAGES[:40], 2 * IMAGES[40:] - 1])
    data = standardized, LABELS
    jitter = Recipe(1, 16, augmentation=Augmentation(contrast=0.1))
    message = r"color jitter clips .* lowest and highest value -1.0 and 1.0"
    with pytest.raises(ValueError, match=message):
        training(jitter, data)
    own = training(jitter, tf.data.Dataset.from_tensor_slices(data).batch(16))
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(pipeline(own, 0, own.steps))
    training(FLIPPED, data)
    evaluation(data)


def small_network() -> keras.Model:
    image = keras.Input((40, 40, 1))
    return keras.Sequential([image, keras.layers.Flatten(), keras.layers.Dense(10)])


@pytest.mark.parametrize(
    ("size", "devices", "sizes"), [(5, 2, [4] * 3), (4, 2, [4] * 3), (13, 4, [12])]
)
def test_on_devices_batches_of_training_are_whole(size, devices, sizes):
    data = (IMAGES[:13], LABELS[:13])
    batches = training(Recipe(1, size), data, devices=devices)
    assert [len(batches.batch(n)[0]) for n in range(batches.steps)] == sizes


def test_on_devices_batches_made_elsewhere_can_be_shared_out():
    data = tf.data.Dataset.from_tensor_slices((IMAGES[:13], LABELS[:13])).batch(4)
    message = r"4 devices can share out .*`drop_remainder=True`.*Received: 1 images"
    for batches in (
        training(Recipe(1, 4), data, devices=4),
        evaluation(data, size=4, devices=4),
    ):
        with pytest.raises(ValueError, match=message):
            list(itertools.islice(batches.stream(0), 4))


@pytest.mark.parametrize("size", [4, 8, 13])
@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize("weights", [(), (np.linspace(0.5, 1.5, 13),)])
def test_on_devices_validation_counts_each_image_once(size, devices, weights):
    """Against what Keras says of the same batches on one device."""
    data = (IMAGES[:13], LABELS[:13], *weights)
    model = small_network()
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, weighted_metrics=["accuracy"])
    expected = evaluation(data, size=size)
    expected = model.evaluate(pipeline(expected, 0, expected.steps), verbose=0)
    filled = evaluation(data, size=size, devices=devices)
    made = pipeline(filled, 0, filled.steps)
    assert all(len(batch[1]) % devices == 0 for batch in made)
    np.testing.assert_allclose(model.evaluate(made, verbose=0), expected, rtol=1e-6)
