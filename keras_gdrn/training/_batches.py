"""Batches as functions of a seed, an epoch and a step, and a pipeline of them."""

import collections
import functools
import itertools
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import keras
import numpy as np

from keras_gdrn.data._source import (
    ArraySource,
    generator,
    has_tensorflow,
    mapped,
    order,
    untuned,
)
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

WORKERS = min(32, os.cpu_count() or 1)  # threads, where there is no `tf.data`


class Batches:
    """Batches of images, one-hot labels and any sample weights.

    Training batches are augmented and shuffled in each epoch. Each depends only on the
    seed, the epoch and the step. (A `BatchStream` has its own order.) Without an
    `augmentation`, the batches are for validation, in the order of the data.

    For several devices, a validation batch is padded with images of weight zero. Keras
    divides the weighted losses by the number of all images, padding included. To make
    up for it, the other images weigh more than one.
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
        self.shape, self.classes = tuple(model_shape[1:]), classes
        self.devices, self.augmentation, self.seed = devices, augmentation, seed
        self.name = "validation_data" if augmentation is None else "data"
        self.jitter = augmentation is not None and any(augmentation.jitter)
        if self.is_stream:
            self.size, self.steps, self.weight = size, self.source.steps, None
        else:
            trains, count = augmentation is not None, len(self.source)
            self.size, self.steps, self.weight = _division(count, size, devices, trains)
        self.shapes = self._checked_shapes()

    def batch(self, number: int) -> Batch:
        """One batch, numbered through all epochs."""
        epoch, step = divmod(int(number), self.steps)
        index = np.arange(len(self.source))
        if self.augmentation is not None:
            index = order(self.seed, epoch, len(self.source))
        index = index[step * self.size : (step + 1) * self.size]
        filled = len(index) + -len(index) % self.devices
        values = self._values(self.source.take(np.resize(index, filled)))
        if self.weight is not None:
            images, targets, *weights = values
            weight = np.where(np.arange(filled) < len(index), self.weight, 0.0)
            weight = weight.astype("float32") * (weights[0] if weights else 1)
            values = images, targets, weight
        return self._augmented(values, epoch, step)

    def stream(self, first: int) -> Iterator[Batch]:
        """The batches from a step on, in the order in which the data yield them."""
        for epoch in itertools.count(first // self.steps):
            step = -1
            for step, parts in enumerate(self.source.epoch()):
                if epoch * self.steps + step >= first:
                    yield self._augmented(self._values(parts), epoch, step)
            if step < self.steps - 1:
                raise ValueError(
                    f"`{self.name}` must have {self.steps} batches in each iteration. "
                    f"Received: {step + 1} batches"
                )

    def _augmented(self, values: Batch, epoch: int, step: int) -> Batch:
        images, targets, *weights = values
        if len(images) % self.devices:
            raise ValueError(
                f"`{self.name}` must have batches divisible by {self.devices} devices "
                f"(`drop_remainder=True`). Received: a batch of {len(images)} images"
            )
        if self.augmentation is None:
            return images.astype("float32", copy=False), targets, *weights
        random = generator((self.seed, epoch), step + 1)
        numbers = random.random((len(images), NUMBERS))
        return augmented(images, numbers, self.augmentation), targets, *weights

    def _checked_shapes(self) -> list[tuple]:
        """The shape of each part of a batch, whose size may vary.

        All values of arrays are checked; of other data, those of the first batch.
        """
        if self.is_stream:  # other batches may have other images
            values, images = self._values(next(self.source.epoch())), self.shape
        else:
            is_array, count = type(self.source) is ArraySource, len(self.source)
            for start in range(CHECKED, count, CHECKED) if is_array else ():
                index = np.arange(start, min(start + CHECKED, count))
                self._values(self.source.take(index))
            first = min(CHECKED if is_array else self.size, count)
            values = self._values(self.source.take(np.arange(first)))
            images = values[0].shape[1:]
        has_weights = len(values) == 3 or self.weight is not None
        shapes = [images, (self.classes,), *([()] if has_weights else [])]
        return [(None, *shape) for shape in shapes]

    def _values(self, parts: Any) -> Batch:
        """A batch with one-hot labels, after all checks."""
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
    arrays. It does not end: Keras gets the number of steps.
    """
    ordered = functools.partial(batches.stream, first)
    if not has_tensorflow():
        prefetched = functools.partial(_prefetched, batches, first)
        return _InOrder(ordered if batches.is_stream else prefetched)
    import tensorflow as tf

    spec = [tf.TensorSpec(shape, "float32") for shape in batches.shapes]
    if batches.is_stream:
        made = tf.data.Dataset.from_generator(ordered, output_signature=tuple(spec))
        data = untuned(made)
    else:
        data = mapped(untuned(tf.data.Dataset.counter(first)), batches.batch, spec)
    return data.prefetch(tf.data.AUTOTUNE)


class _InOrder(keras.utils.PyDataset):
    """Batches that are read in order; index 0 starts again."""

    num_batches = None

    def __init__(self, make: Callable[[], Iterator[Batch]]):
        super().__init__()
        self.make = make

    def __getitem__(self, index: int) -> Batch:
        if index == 0:
            self.made = self.make()
        return next(self.made)


def _prefetched(batches: Batches, first: int) -> Iterator[Batch]:
    """The batches from a step on, prefetched in other threads."""
    with ThreadPoolExecutor(WORKERS) as pool:
        waiting = collections.deque()
        for number in itertools.count(first):
            waiting.append(pool.submit(batches.batch, number))
            if len(waiting) > WORKERS:
                yield waiting.popleft().result()


def _division(
    count: int, size: int, devices: int, trains: bool
) -> tuple[int, int, float | None]:
    """The size of a batch, the number of steps and, if padded, an image's weight."""
    if devices == 1 or not trains:
        full, rest = divmod(count, size)
        filled = full * (size + -size % devices) + rest + -rest % devices
        weight = filled / count if filled > count else None
        return size, math.ceil(count / size), weight
    size = min(size, count)
    if size < devices:
        raise ValueError(
            "`recipe.batch_size` and the number of images must be at least the number "
            f"of devices. Received: {size} on {devices} devices"
        )
    size -= size % devices
    return size, count // size, None
