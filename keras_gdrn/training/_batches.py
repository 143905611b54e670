"""Batches as functions of a seed, an epoch and a step, in NumPy."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_gdrn.data._source import ArraySource, Source, generator, order
from keras_gdrn.training import _processes
from keras_gdrn.training._augment import Augmentation, check_shape
from keras_gdrn.training._augment_steps import Draws, augmented, draw
from keras_gdrn.training._sources import (
    CHECKED,
    BatchStream,
    as_targets,
    check_parts,
    checked_images,
    checked_weights,
)

Batch = tuple[np.ndarray, ...]


class Batches:
    """Batches of images, one-hot labels and, if there are any, weights of the images.

    Those of training are augmented, each epoch in another order. Each depends on the
    seed, the epoch and the step, and on nothing else. (The order of a `BatchStream` is
    its own.)

    What several devices cannot share out equally is left out of an epoch of training.
    In validation, a batch is filled up by images of weight zero. Keras divides the sum
    of the weighted losses by the number of all images, these included: so the weight of
    the others is, on the whole, as much more than one.

    Args:
        source: Images by number, or batches that are made elsewhere.
        size: Images in a batch; the last one may be smaller.
        model_shape: Shape of the model's input.
        classes: Number of outputs of the model; 1 for one score of two classes.
        devices: Number of devices that share each batch.
        augmentation: Of training; `None` for validation, in the order of the data.
        seed: Seed of the order and of the augmentation.

    Raises:
        ValueError: Unless the data, as far as they are known at once, are fit.
    """

    def __init__(
        self,
        source: Source | BatchStream,
        size: int,
        model_shape: tuple,
        classes: int,
        *,
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
        self.shape, self.has_weights = self._checked()

    @property
    def signature(self) -> list[tuple[tuple, str]]:
        """Shape and type of the parts of a batch."""
        shapes = [self.shape, (self.classes,), *([()] if self.has_weights else [])]
        return [((None, *shape), "float32") for shape in shapes]

    def batch(self, number: int) -> Batch:
        """This process' part of a batch; the epochs follow each other."""
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
        """The batches from a step on, where the data make them in an own order.

        Of an epoch that begins in the middle, as many are skipped.
        """
        for epoch in itertools.count(first // self.steps):
            step = -1
            parts = itertools.islice(self.source.epoch(), self.steps)
            for step, batch in enumerate(parts):
                if epoch * self.steps + step >= first:
                    yield self._finished(self._values(batch), epoch, step)
            if step < self.steps - 1:
                raise ValueError(
                    f"`{self.name}` must have {self.steps} batches in each iteration. "
                    f"Received: {step + 1} batches"
                )

    def _finished(self, values: Batch, epoch: int, step: int) -> Batch:
        images, targets, *weights = values
        if len(images) % self.devices:
            raise ValueError(
                f"`{self.name}` must have batches that {self.devices} devices can "
                "share out equally: of another size, without a last one that is "
                f"smaller (`drop_remainder=True`). Received: {len(images)} images"
            )
        own, *others = map(_own_part, (images, targets, *weights))
        if self.augmentation is None:
            return own.astype("float32", copy=False), *others
        random = generator((self.seed, epoch), step + 1)
        drawn = draw(random, images.shape, self.augmentation)
        return augmented(own, Draws(*map(_own_part, drawn)), self.augmentation), *others

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

    def _checked(self) -> tuple[tuple, bool]:
        """The shape of images, and whether there are weights.

        Of arrays all values are checked, of other data those of a first batch.
        """
        if self.is_stream:
            parts, known = next(self.source.epoch()), tuple(self.source.shape)
            self._check_shape(known)
        else:
            parts = self.source.rows(np.arange(min(self.size, len(self.source))))
            known = parts[0].shape[1:]
        values = self._values(parts)
        count = len(values[0])
        if (
            self.is_stream
            and self.augmentation is not None
            and (count > self.size or (count < self.size and self.steps > 1))
        ):
            raise ValueError(
                f"`data` must have batches of the recipe's size, {self.size}. "
                f"Received: a batch of {count}"
            )
        if type(self.source) is ArraySource:
            for start in range(0, len(self.source), CHECKED):
                end = min(start + CHECKED, len(self.source))
                self._values(self.source.rows(np.arange(start, end)))
        # Where one of the two leaves the size of the images open, the other has it.
        pairs = zip(known, self.shape, strict=True)
        shape = tuple(given or taken for given, taken in pairs)
        return shape, len(values) == 3 or self.weight is not None

    def _values(self, parts: Any) -> Batch:
        """A batch with its labels one-hot, or an error unless all is fit."""
        images, labels, *weights = check_parts(parts)
        self._check_shape(images.shape[1:])
        if self.augmentation is not None:
            check_shape(images, self.jitter)
        images = checked_images(images, self.jitter)
        return images, as_targets(labels, self.classes), *map(checked_weights, weights)

    def _check_shape(self, found: tuple) -> None:
        pairs = zip(found, self.shape, strict=True)
        if any(None not in pair and pair[0] != pair[1] for pair in pairs):
            raise ValueError(
                f"`{self.name}` must have images of the shape that the model takes, "
                f"{self.shape}. Received: images of shape {tuple(found)}"
            )


def _own_part(array: np.ndarray) -> np.ndarray:
    """Of several processes, this one's part of what they share."""
    part = len(array) // _processes.count()
    return array[_processes.number() * part :][:part]
