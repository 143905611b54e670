"""Batches as functions of a seed, an epoch and a step, and how they get to Keras."""

import collections
import functools
import importlib
import itertools
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import keras
import numpy as np

from keras_gdrn.data._source import ArraySource, generator, mapped, order, untuned
from keras_gdrn.training._augment import NUMBERS, Augmentation, augmented
from keras_gdrn.training._sources import (
    CHECKED,
    BatchStream,
    ItemSource,
    as_arrays,
    as_targets,
    checked_images,
    checked_weights,
)

Batch = tuple[np.ndarray, ...]

WORKERS = min(8, os.cpu_count() or 1)  # threads, where there is no `tf.data`


class Batches:
    """Batches of images, one-hot labels and, if there are any, weights of the images.

    Those of training are augmented, each epoch in another order. Each depends on the
    seed, the epoch and the step, and on nothing else. (The order of a `BatchStream` is
    its own.) Without an `augmentation`, they are of validation, in the data's order.

    For several devices, a batch of validation is filled up by images of weight zero.
    Keras divides the weighted losses by the number of all images, these included: so
    the weight of the others is, on the whole, as much more than one.
    """

    def __init__(
        self,
        source: ArraySource | ItemSource | BatchStream,
        size: int,  # of a batch; the last one may be smaller
        model_shape: tuple,
        classes: int,
        devices: int = 1,
        augmentation: Augmentation | None = None,
        seed: int = 0,
    ):
        self.source: Any = source
        self.is_stream = isinstance(source, BatchStream)
        self.size, self.shape, self.classes = size, tuple(model_shape[1:]), classes
        self.devices, self.augmentation, self.seed = devices, augmentation, seed
        self.name = "validation_data" if augmentation is None else "data"
        self.jitter = augmentation is not None and any(augmentation.jitter)
        self.weight = None  # of an image, where batches are filled up
        self.steps = self.source.steps if self.is_stream else self._shared_out()
        self.shapes = self._checked_shapes()

    def batch(self, number: int) -> Batch:
        """One batch; the epochs follow each other."""
        epoch, step = divmod(int(number), self.steps)
        index = np.arange(len(self.source))
        if self.augmentation is not None:
            index = order(self.seed, epoch, len(self.source))
        index = index[step * self.size : (step + 1) * self.size]
        filled = len(index) + -len(index) % self.devices
        values = self._values(self.source.rows(np.resize(index, filled)))
        if self.weight is not None:
            images, targets, *weights = values
            weight = np.where(np.arange(filled) < len(index), self.weight, 0.0)
            weight = weight.astype("float32") * (weights[0] if weights else 1)
            values = images, targets, weight
        return self._finished(values, epoch, step)

    def stream(self, first: int) -> Iterator[Batch]:
        """The batches from a step on, of data that make them in an own order."""
        for epoch in itertools.count(first // self.steps):
            step = -1
            for step, parts in enumerate(self.source.epoch()):
                if epoch * self.steps + step >= first:
                    yield self._finished(self._values(parts), epoch, step)
            if step < self.steps - 1:
                raise ValueError(
                    f"`{self.name}` must have {self.steps} batches in each iteration. "
                    f"Received: {step + 1} batches"
                )

    def _finished(self, values: Batch, epoch: int, step: int) -> Batch:
        images, targets, *weights = values
        if len(images) % self.devices:
            raise ValueError(
                f"`{self.name}` must have batches that {self.devices} devices share "
                f"out equally (`drop_remainder=True`). Received: {len(images)} images"
            )
        if self.augmentation is None:
            return images.astype("float32", copy=False), targets, *weights
        random = generator((self.seed, epoch), step + 1)
        chances = random.random((len(images), NUMBERS))
        return augmented(images, chances, self.augmentation), targets, *weights

    def _shared_out(self) -> int:
        """The number of steps; sets the size of batches and the weight of an image."""
        count, devices = len(self.source), self.devices
        if self.augmentation is None or devices == 1:
            full, rest = divmod(count, self.size)
            filled = full * (self.size + -self.size % devices) + rest + -rest % devices
            self.weight = filled / count if filled > count else None
            return math.ceil(count / self.size)
        size = min(self.size, count)
        if size < devices:
            raise ValueError(
                "`recipe.batch_size` and the number of images must be at least the "
                f"number of devices. Received: {size} on {devices} devices"
            )
        self.size = size - size % devices
        return count // self.size

    def _checked_shapes(self) -> list[tuple]:
        """The shape of each part of a batch, whose size may vary.

        Of arrays all values are checked, of other data those of a first batch.
        """
        if self.is_stream:  # other batches may have other images
            values, images = self._values(next(self.source.epoch())), self.shape
        else:
            is_array, count = type(self.source) is ArraySource, len(self.source)
            for start in range(CHECKED, count, CHECKED) if is_array else ():
                index = np.arange(start, min(start + CHECKED, count))
                self._values(self.source.rows(index))
            first = min(CHECKED if is_array else self.size, count)
            values = self._values(self.source.rows(np.arange(first)))
            images = values[0].shape[1:]
        has_weights = len(values) == 3 or self.weight is not None
        shapes = [images, (self.classes,), *([()] if has_weights else [])]
        return [(None, *shape) for shape in shapes]

    def _values(self, parts: Any) -> Batch:
        """A batch with its labels one-hot, or an error unless all is fit."""
        images, labels, *weights = as_arrays(parts)
        pairs = zip(images.shape[1:], self.shape, strict=True)
        if any(wanted not in (None, size) for size, wanted in pairs):
            raise ValueError(
                f"`{self.name}` must have images of the shape that the model takes, "
                f"{self.shape}. Received: images of shape {images.shape[1:]}"
            )
        images = checked_images(images, self.jitter)
        weights = map(checked_weights, weights)
        return images, as_targets(labels, self.classes), *weights


def pipeline(batches: Batches, first: int = 0) -> Any:
    """The batches from a step on, epoch after epoch, made ahead of their use.

    A `tf.data.Dataset` or, where TensorFlow is not installed, a `PyDataset` of the same
    arrays. It does not end: Keras is given the number of steps.
    """
    ordered = functools.partial(batches.stream, first)
    if not has_tensorflow():
        ahead = functools.partial(_ahead, batches, first)
        return _InOrder(ordered if batches.is_stream else ahead)
    import tensorflow as tf

    spec = [tf.TensorSpec(shape, "float32") for shape in batches.shapes]
    if batches.is_stream:
        made = tf.data.Dataset.from_generator(ordered, output_signature=tuple(spec))
        data = untuned(made)
    else:
        data = mapped(untuned(tf.data.Dataset.counter(first)), batches.batch, spec)
    return data.prefetch(tf.data.AUTOTUNE)


class _InOrder(keras.utils.PyDataset):
    """Batches that are asked for one after the other, each time from the first on."""

    num_batches = None

    def __init__(self, make: Callable[[], Iterator[Batch]]):
        super().__init__()
        self.make = make

    def __getitem__(self, index: int) -> Batch:
        if index == 0:
            self.made = self.make()
        return next(self.made)


def _ahead(batches: Batches, first: int) -> Iterator[Batch]:
    """The batches from a step on, some of them ahead, in other threads."""
    with ThreadPoolExecutor(WORKERS) as pool:
        waiting = collections.deque()
        for number in itertools.count(first):
            waiting.append(pool.submit(batches.batch, number))
            if len(waiting) > WORKERS:
                yield waiting.popleft().result()


def has_tensorflow() -> bool:
    """Whether TensorFlow can be imported: batches are made by `tf.data` then."""
    try:
        importlib.import_module("tensorflow")
    except ImportError:
        return False
    return True
