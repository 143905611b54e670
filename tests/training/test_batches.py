"""Batches as functions of seed, epoch and step, and how they get to Keras."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.data import rescaled, rescaled_arrays
from keras_gdrn.training import Augmentation, _batches
from keras_gdrn.training._batches import Batches, pipeline
from keras_gdrn.training._sources import as_source

IMAGES, LABELS = rescaled_arrays("digits", "train", limit=50)
SHAPE = (None, None, None, 1)
PLAIN = Augmentation()
FLIPPED = Augmentation(flip=0.5)
EVERYTHING = Augmentation(2, 0.5, 0.2, 0.2, 0.2, 0.05, 3)


def training(augmentation, data=(IMAGES, LABELS), size=16, **options):
    source = as_source(data)
    return Batches(source, size, SHAPE, 10, augmentation=augmentation, **options)


def evaluation(data=(IMAGES, LABELS), size=16, **options):
    return training(None, data, size, **options)


def of_tf(*arrays, size=16):
    return tf.data.Dataset.from_tensor_slices(arrays).batch(size)


def collected(batches, epoch=0):
    numbers = range(epoch * batches.steps, (epoch + 1) * batches.steps)
    images, labels = zip(*(batches.batch(n) for n in numbers), strict=True)
    return np.concatenate(images), np.concatenate(labels)


def taken(batches, first, count):
    """What gets to Keras."""
    data = pipeline(batches, first)
    if isinstance(data, keras.utils.PyDataset):
        return [data[number] for number in range(count)]
    return list(data.take(count).as_numpy_iterator())


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


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", [3, 2**40, 2**70])
def test_a_batch_depends_on_its_number_and_the_seed_only(seed):
    expected = [training(EVERYTHING, seed=seed).batch(n) for n in range(9)]
    batches = training(EVERYTHING, seed=seed)
    for number in (8, 2, 5, 2):
        assert_same(batches.batch(number), expected[number])
    for other in (training(EVERYTHING, seed=seed + 1).batch(2), expected[3]):
        with pytest.raises(AssertionError):
            assert_same(other, expected[2])


@pytest.mark.parametrize("has_tensorflow", [True, False])
@pytest.mark.parametrize("weights", [(), (np.linspace(0.5, 1.5, 50),)])
def test_the_same_bytes_get_to_keras(has_tensorflow, weights, monkeypatch):
    monkeypatch.setattr(_batches, "has_tensorflow", lambda: has_tensorflow)
    data = (IMAGES, LABELS, *weights)
    for batches in (training(EVERYTHING, data), evaluation(data)):
        for number, batch in enumerate(taken(batches, 2, 5), start=2):
            assert_same(batch, batches.batch(number))
    if has_tensorflow:
        data = pipeline(training(EVERYTHING, data))
        assert [s.shape[0] for s in data.element_spec] == [None] * len(batch)
        assert data.options().autotune.enabled is False  # its end would wait


def test_data_of_this_package_are_read_by_number():
    """In batches of the recipe's size, whatever their own is."""
    for size in (None, 8):
        data = rescaled("digits", "train", limit=50, batch_size=size)
        assert_same(training(EVERYTHING, data).batch(7), training(EVERYTHING).batch(7))


def test_kinds_of_labels_and_images_are_the_same_batch():
    one_hot, longer = np.eye(10)[LABELS], IMAGES.astype("longdouble")
    expected = training(EVERYTHING).batch(5)
    for kind in (LABELS[:, None], LABELS.astype("float64"), one_hot, one_hot > 0):
        assert_same(training(EVERYTHING, (longer, kind)).batch(5), expected)


@pytest.mark.parametrize("has_tensorflow", [True, False])
def test_batches_made_elsewhere_begin_in_the_middle(has_tensorflow, monkeypatch):
    monkeypatch.setattr(_batches, "has_tensorflow", lambda: has_tensorflow)
    data = of_tf(IMAGES, LABELS)
    epoch = list(data.as_numpy_iterator())
    found = taken(training(PLAIN, data), 2, 7)
    for number, batch in enumerate(found, start=2):
        np.testing.assert_array_equal(batch[0], epoch[number % 4][0])


class Shuffled(keras.utils.PyDataset):
    """Tells how often it has been shuffled."""

    times = 0

    def __len__(self):
        return 3

    def __getitem__(self, number):
        return IMAGES[:16], np.full(16, self.times)

    def on_epoch_end(self):
        self.times += 1


def test_a_sequence_is_told_of_the_end_of_each_epoch():
    batches = training(PLAIN, Shuffled()).stream(0)
    labels = [int(next(batches)[1][0].argmax()) for _ in range(9)]
    assert labels == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_batches_that_are_too_few():
    class TooFew:
        def __len__(self):
            return 2

        def __iter__(self):
            return iter([(IMAGES[:16], LABELS[:16])])

    with pytest.raises(ValueError, match=r"2 batches in each .* Received: 1 batches"):
        list(training(PLAIN, TooFew()).stream(0))


def test_each_batch_is_augmented_by_numbers_of_its_own():
    image = np.repeat(IMAGES[:1], 64, axis=0)
    batches = training(FLIPPED, (image, np.zeros(64, "int32")))
    kept = [np.all(batches.batch(n)[0] == image[0], axis=(1, 2, 3)) for n in range(8)]
    assert len(set(map(tuple, kept))) == 8  # of two epochs
    assert 0.2 < np.mean(kept) < 0.8


@pytest.mark.parametrize("augmentation", [PLAIN, None])
@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        (0, 255.0, r"divide .* by 255 .*Received: values up to 255"),
        (0, np.nan, r"divide .* by 255 .*Received: values up to nan"),
        (1, -1, r"number the 10 classes .*Received: \[-1\.?\]"),
        (1, 10, r"number the 10 classes .*Received: \[10\.?\]"),
    ],
)
def test_unfit_values(augmentation, part, value, message):
    """Those of arrays, wherever they are, at once; those of batches when they come."""
    data = np.repeat(IMAGES, 2, axis=0), np.repeat(LABELS, 2)
    data[part][90] = value
    with pytest.raises(ValueError, match=message):
        training(augmentation, data)
    batches = training(augmentation, of_tf(*data))
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        taken(batches, 0, batches.steps)


def test_color_jitter_takes_no_standardized_images():
    data = np.concatenate([IMAGES[:40], 2 * IMAGES[40:] - 1]), LABELS
    message = r"color jitter clips .* lowest and highest value -1.0 and 1.0"
    jitter = Augmentation(contrast=0.1)
    with pytest.raises(ValueError, match=message):
        training(jitter, data)
    own = training(jitter, of_tf(*data))
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        taken(own, 0, own.steps)
    training(FLIPPED, data)
    evaluation(data)


SOME = (IMAGES[:13], LABELS[:13])


@pytest.mark.parametrize(
    ("size", "devices", "sizes"), [(5, 2, [4] * 3), (4, 2, [4] * 3), (13, 4, [12])]
)
def test_on_devices_batches_of_training_are_whole(size, devices, sizes):
    batches = training(PLAIN, SOME, size, devices=devices)
    assert [len(batches.batch(n)[0]) for n in range(batches.steps)] == sizes


def test_on_devices_batches_made_elsewhere_can_be_shared_out():
    message = r"4 devices share out .*`drop_remainder=True`.*Received: 1 images"
    for augmentation in (PLAIN, None):
        batches = training(augmentation, of_tf(*SOME, size=4), 4, devices=4)
        with pytest.raises(ValueError, match=message):
            list(itertools.islice(batches.stream(0), 4))


@pytest.fixture(scope="module")
def scored() -> keras.Model:
    image = keras.Input((40, 40, 1))
    layers = [keras.layers.Flatten(), keras.layers.Dense(10)]
    model = keras.Sequential([image, *layers])
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, weighted_metrics=["accuracy"])
    return model


@pytest.mark.parametrize("size", [4, 8, 13])
@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize("weights", [(), (np.linspace(0.5, 1.5, 13),)])
def test_on_devices_validation_counts_each_image_once(scored, size, devices, weights):
    """Against what Keras says of the same batches on one device."""

    def scores(devices):
        batches = evaluation((*SOME, *weights), size, devices=devices)
        made = [batches.batch(number) for number in range(batches.steps)]
        assert all(len(batch[1]) % devices == 0 for batch in made)
        return scored.evaluate(pipeline(batches), steps=batches.steps, verbose=0)

    np.testing.assert_allclose(scores(devices), scores(1), rtol=1e-6)
