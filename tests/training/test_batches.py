"""Batches as functions of seed, epoch and step, and how they get to Keras."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.data import rescaled
from keras_gdrn.training import Augmentation, _batches
from keras_gdrn.training._batches import Batches, pipeline
from keras_gdrn.training._sources import as_source
from tests.training._small import (
    ARRAYS,
    IMAGES,
    LABELS,
    RECIPE,
    Loader,
    Sequence,
    network,
)

ONE_HOT, SHAPE = np.eye(10)[LABELS], (None, None, None, 1)
WEIGHTED = (*ARRAYS, np.linspace(0.5, 1.5, 44))
PLAIN, JITTER = Augmentation(), Augmentation(contrast=0.1)
EVERYTHING = Augmentation(2, 0.5, 1.5, 0.2, 0.2, 0.2, 0.05, 1.5, 3)


def made_of(data, augmentation=None, size=16, **options) -> Batches:
    """Those of validation, or of training by an augmentation."""
    source = as_source(data)
    return Batches(source, size, SHAPE, 10, augmentation=augmentation, **options)


class Items:
    """Images that are read by number, as PyTorch and grain have them."""

    def __len__(self):
        return 44

    def __getitem__(self, number):
        return IMAGES[number], LABELS[number]


def taken(batches, first, count):
    """What gets to Keras."""
    data = pipeline(batches, first)
    if isinstance(data, keras.utils.PyDataset):
        return [data[number] for number in range(count)]
    return list(data.take(count).as_numpy_iterator())


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_an_epoch_has_each_image_once():
    """Those of training each in another order, those of validation in the data's."""
    numbers, orders = {image.tobytes(): n for n, image in enumerate(IMAGES)}, []
    for kind, seed, epoch in (None, 0, 0), (PLAIN, 0, 0), (PLAIN, 0, 1), (PLAIN, 1, 0):
        batches = made_of(ARRAYS, kind, seed=seed)
        made = [batches.batch(3 * epoch + step) for step in range(batches.steps)]
        assert [len(images) for images, _ in made] == [16, 16, 12]
        images, targets = map(np.concatenate, zip(*made, strict=True))
        orders.append(tuple(numbers[image.tobytes()] for image in images))
        np.testing.assert_array_equal(targets, ONE_HOT[[*orders[-1]]])
    assert orders[0] == tuple(range(44))
    assert {tuple(sorted(order)) for order in orders} == {orders[0]}
    assert len({*orders}) == 4


def test_each_batch_is_augmented_by_numbers_of_its_own():
    images, kept = np.repeat(2 * IMAGES[:1] - 1, 64, axis=0), []
    for seed, number in itertools.product(range(2), range(8)):  # of two epochs
        batches = made_of((images, np.zeros(64)), Augmentation(flip=0.5), seed=seed)
        kept.append(np.all(batches.batch(number)[0] == images[0], axis=(1, 2, 3)))
    assert len(set(map(tuple, kept))) == 16
    assert 0.2 < np.mean(kept) < 0.8


@pytest.mark.parametrize("has_tensorflow", [True, False])
@pytest.mark.parametrize(("augmentation", "seed"), [(EVERYTHING, 2**70), (None, 0)])
def test_the_same_bytes_get_to_keras(has_tensorflow, augmentation, seed, monkeypatch):
    """From any of them on; of what is made elsewhere, in its order."""
    monkeypatch.setattr(_batches, "has_tensorflow", lambda: has_tensorflow)
    own = tf.data.Dataset.from_tensor_slices(ARRAYS).batch(16)
    for data in (ARRAYS, WEIGHTED, Sequence(), own):
        batches, again = (made_of(data, augmentation, seed=seed) for _ in range(2))
        every = again.stream(0) if again.is_stream else map(again.batch, range(7))
        expected = list(itertools.islice(every, 2, 7))
        for found, batch in zip(taken(batches, 2, 5), expected, strict=True):
            assert_same(found, batch)
        if has_tensorflow:
            made = pipeline(batches)
            assert [s.shape[0] for s in made.element_spec] == [None] * len(batch)
            assert made.options().autotune.enabled is False  # its end would wait
    np.testing.assert_array_equal(expected[0][1], ONE_HOT[32:])


def test_kinds_of_data_are_the_same_batch():
    """Which is of the recipe's size, whatever theirs is."""
    longer = IMAGES.astype("longdouble")
    labels = (LABELS[:, None], LABELS.astype("float64"), ONE_HOT, ONE_HOT > 0)
    kinds = [Items(), *((longer, of) for of in labels)]
    for size in (None, 8):
        kinds += [rescaled("digits", "train", canvas=12, limit=44, batch_size=size)]
    for data, augmentation in itertools.product(kinds, (EVERYTHING, None)):
        expected = made_of(ARRAYS, augmentation).batch(5)
        assert_same(made_of(data, augmentation).batch(5), expected)


def test_a_sequence_is_told_of_the_end_of_each_epoch():
    ended = []

    class Shuffled(Sequence):
        def on_epoch_end(self):
            ended.append(self)

    batches = made_of(Shuffled(), PLAIN).stream(0)
    told = [len(ended) for _ in itertools.islice(batches, 9)]
    assert told == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_batches_that_are_too_few():
    batches = made_of(Loader(length=4), PLAIN).stream(0)
    with pytest.raises(ValueError, match=r"4 batches in each .* Received: 3 batches"):
        list(itertools.islice(batches, 4))


@pytest.mark.parametrize(
    ("augmentation", "part", "value", "message"),
    [
        (PLAIN, 0, 255.0, r"divide .* by 255 .*Received: values up to 255"),
        (None, 0, np.nan, r"divide .* by 255 .*Received: values up to nan"),
        (PLAIN, 1, -1, r"the 10 classes .*Received: \[-1\.?\]"),
        (None, 1, 10, r"the 10 classes .*Received: \[10\.?\]"),
        (JITTER, 0, -1.0, r"which it clips.* lowest and highest value -1\.0 and 1\.0"),
    ],
)
def test_unfit_values(augmentation, part, value, message):
    """Those of arrays, wherever they are, at once; those of batches when they come."""
    data = tuple(np.concatenate([part] * 14) for part in ARRAYS)
    data[part][600] = value
    with pytest.raises(ValueError, match=message):
        made_of(data, augmentation)
    own = made_of(tf.data.Dataset.from_tensor_slices(data).batch(16), augmentation)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        taken(own, 0, own.steps)


def test_on_devices_batches_of_training_are_whole():
    for size, devices, expected in (5, 2, [4] * 11), (4, 2, [4] * 11), (64, 8, [40]):
        batches = made_of(ARRAYS, PLAIN, size, devices=devices)
        sizes = [len(batches.batch(number)[0]) for number in range(batches.steps)]
        assert sizes == expected
    message = r"`recipe.batch_size` and the number of images .*: 3 on 4 devices"
    with pytest.raises(ValueError, match=message):
        made_of(ARRAYS, PLAIN, 3, devices=4)
    message = r"divisible by 8 devices .*`drop_remainder=True`.*a batch of 12 images"
    for augmentation in (PLAIN, None):
        batches = made_of(Loader(), augmentation, devices=8)
        with pytest.raises(ValueError, match=message):
            list(itertools.islice(batches.stream(0), 3))


def test_on_devices_validation_counts_each_image_once():
    """Against what Keras says of the same batches on one device."""
    model = network()
    model.compile(loss=RECIPE.loss(), weighted_metrics=["accuracy"])

    def scores(data, size, devices=1):
        batches = made_of(data, None, size, devices=devices)
        made = [batches.batch(number) for number in range(batches.steps)]
        assert all(len(batch[1]) % devices == 0 for batch in made)
        return model.evaluate(pipeline(batches), steps=batches.steps, verbose=0)

    for data, size, devices in itertools.product((ARRAYS, WEIGHTED), (13, 44), (3, 8)):
        found, expected = scores(data, size, devices), scores(data, size)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
