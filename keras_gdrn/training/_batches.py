"""Batches as functions of a seed and of the number of the step, in NumPy."""

import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from keras_gdrn.data._source import ArraySource, Source, generator, order
from keras_gdrn.training import _processes
from keras_gdrn.training._augment import check_shape
from keras_gdrn.training._augment_steps import Draws, augmented, draw
from keras_gdrn.training._recipe import Recipe
from keras_gdrn.training._sources import BatchStream, check_parts
from keras_gdrn.training._values import (
    CHECKED,
    as_targets,
    checked_images,
    checked_weights,
)

Batch = tuple[np.ndarray, ...]


class EvaluationBatches:
    """Batches of all images in their order, with one-hot labels.

    On several devices a batch is filled up by images of weight zero. Keras divides the
    sum of the weighted losses by the number of all images, these included: so the
    weight of the others is, on the whole, as much more than one.

    Args:
        source: Images by number, or batches that are made elsewhere.
        size: Images in a batch; the last one may be smaller.
        model_shape: Shape of the model's input.
        classes: Number of outputs of the model; 1 for one score of two classes.
        devices: Number of devices that share each batch.

    Raises:
        ValueError: Unless the data, as far as they are known at once, are fit.
    """

    name, jitter = "validation_data", False

    def __init__(
        self,
        source: Source | BatchStream,
        size: int,
        model_shape: tuple,
        classes: int,
        devices: int = 1,
    ):
        self.source, self.size, self.classes = source, size, classes
        self.devices, self.weight = devices, 1.0
        self.has_weights = devices > 1
        self.shape = tuple(model_shape[1:])
        parts = self.example = self._example()
        self.has_weights |= len(parts) == 3
        known = parts[0].shape[1:]
        if isinstance(source, BatchStream):
            known = tuple(source.shape[1:])
        self._check_size_of_images(known)
        # Where one of the two leaves the size of the images open, the other has it.
        pairs = zip(known, self.shape, strict=True)
        self.shape = tuple(given or taken for given, taken in pairs)
        self._check_values(parts)
        if devices > 1:
            sizes = self._sizes()
            self.weight = sum(n + -n % devices for n in sizes) / sum(sizes)

    @functools.cached_property
    def steps(self) -> int:
        """Number of batches in an epoch."""
        if isinstance(self.source, BatchStream):
            return self.source.steps
        return math.ceil(len(self.source) / self.size)

    @property
    def rows(self) -> int | None:
        """Images in a batch of this process, if all have as many."""
        if isinstance(self.source, BatchStream) or len(self.source) % self.size:
            return None
        return (self.size + -self.size % self.devices) // _processes.count()

    @property
    def signature(self) -> list[tuple[tuple, str]]:
        """Shape and type of the parts of a batch."""
        shapes = [self.shape, (self.classes,), *([()] if self.has_weights else [])]
        return [((self.rows, *shape), "float32") for shape in shapes]

    def batch(self, number: int) -> Batch:
        """This process' part of a batch; the epochs follow each other."""
        assert not isinstance(self.source, BatchStream)
        epoch, step = divmod(int(number), self.steps)
        rows = self.source.rows(self._numbers(epoch, step))
        return self._finished(self._values(rows), epoch, step)

    def stream(self, first: int, end: int) -> Iterator[Batch]:
        """The batches of these steps, where the data make them in an own order.

        Of an epoch that begins in the middle, as many are skipped.
        """
        assert isinstance(self.source, BatchStream)
        for epoch in range(first // self.steps, math.ceil(end / self.steps)):
            step, begin = -1, max(first - epoch * self.steps, 0)
            for step, parts in enumerate(self.source.epoch()):
                if epoch * self.steps + step == end:
                    return
                if step == self.steps:
                    break
                if step >= begin:
                    yield self._finished(self._values(parts), epoch, step)
            if step < self.steps - 1:
                raise ValueError(
                    f"`{self.name}` must have {self.steps} batches in each iteration. "
                    f"Received: {step + 1} batches"
                )

    def _numbers(self, epoch: int, step: int) -> np.ndarray:
        assert not isinstance(self.source, BatchStream)
        return np.arange(len(self.source))[step * self.size : (step + 1) * self.size]

    def _values(self, parts: Any) -> Batch:
        """A batch with its labels one-hot, or an error unless all is fit."""
        images, labels, *weights = check_parts(parts)
        self._check_size_of_images(images.shape[1:])
        images = checked_images(images, self.jitter)
        return images, as_targets(labels, self.classes), *map(checked_weights, weights)

    def _finished(self, values: Batch, epoch: int, step: int) -> Batch:
        if self.devices == 1:
            return values[0].astype("float32", copy=False), *values[1:]
        count = len(values[0])
        row = own_part(np.arange(count + -count % self.devices))
        images, targets, *weights = (part[row % count] for part in values)
        weight = np.where(row < count, np.float32(self.weight), np.float32(0.0))
        return images.astype("float32"), targets, *(weight * w for w in weights or [1])

    def _example(self) -> Batch:
        if isinstance(self.source, BatchStream):
            return check_parts(self.source.first())
        count = min(self.size, len(self.source))
        return check_parts(self.source.rows(np.arange(count)))

    def _check_values(self, example: Batch) -> None:
        """Of arrays all values, of other data those of a first batch."""
        self._values(example)
        if type(self.source) is ArraySource:
            for start in range(0, len(self.source), CHECKED):
                self._values(self.source.rows(np.s_[start : start + CHECKED]))

    def _check_size_of_images(self, found: tuple) -> None:
        pairs = zip(found, self.shape, strict=True)
        if any(None not in pair and pair[0] != pair[1] for pair in pairs):
            raise ValueError(
                f"`{self.name}` must have images of the shape that the model takes, "
                f"{self.shape}. Received: images of shape {tuple(found)}"
            )

    def _sizes(self) -> list[int]:
        if isinstance(self.source, BatchStream):
            return [len(parts[0]) for parts in self.source.epoch()]
        starts = range(0, len(self.source), self.size)
        return [min(self.size, len(self.source) - start) for start in starts]


class TrainingBatches(EvaluationBatches):
    """Batches of augmented images, each epoch in another order.

    A batch depends on the seed, the epoch and the step, and on nothing else. (The order
    of a `BatchStream` is its own.) On several devices, what cannot be shared out
    equally is left out of an epoch, and comes up in another one.

    Args:
        source, model_shape, classes, devices: As for `EvaluationBatches`.
        recipe: Gives the size of the batches and the augmentation.
        seed: Seed of the order and of the augmentation.
        class_weight: Weight of each class, which multiplies those of the images.
    """

    name = "data"

    def __init__(
        self,
        source: Source | BatchStream,
        recipe: Recipe,
        model_shape: tuple,
        classes: int,
        seed: int = 0,
        class_weight: Mapping[int, float] | None = None,
        devices: int = 1,
    ):
        self.seed, self.augmentation = seed, recipe.augmentation
        self.jitter = any(self.augmentation.jitter)
        self.of_class = None
        if class_weight is not None:
            weights = [class_weight[number] for number in sorted(class_weight)]
            self.of_class = np.array(weights, "float32")
        size = recipe.batch_size
        if not isinstance(source, BatchStream):
            size -= size % devices
            self._order = functools.lru_cache(2)(
                lambda epoch: order(self.seed, epoch, len(source))
            )
        super().__init__(source, size, model_shape, classes, devices)
        images, _, *weights = self.example
        self.has_weights = bool(weights) or self.of_class is not None
        if isinstance(source, BatchStream) and (
            len(images) > size or (len(images) < size and source.steps > 1)
        ):
            raise ValueError(
                f"`data` must have batches of the recipe's size, {size}. "
                f"Received: a batch of {len(images)}"
            )

    @functools.cached_property
    def steps(self) -> int:
        steps = super().steps
        source = self.source
        if self.devices == 1 or steps == 1:
            return steps
        if isinstance(source, BatchStream):
            return steps if source.shape[0] else steps - 1
        return len(source) // self.size

    @property
    def rows(self) -> int | None:
        if self.devices > 1 and not isinstance(self.source, BatchStream):
            count = min(self.size, len(self.source))
            return (count - count % self.devices) // _processes.count()
        return super().rows

    def _numbers(self, epoch: int, step: int) -> np.ndarray:
        return self._order(epoch)[step * self.size : (step + 1) * self.size]

    def _finished(self, values: Batch, epoch: int, step: int) -> Batch:
        images, targets, *weights = values
        check_shape(images, self.jitter)
        if self.of_class is not None:
            is_one = self.classes == 1
            number = targets[:, 0] if is_one else np.argmax(targets, axis=1)
            weight = self.of_class[number.astype("int64")]
            weights = [weight * weights[0] if weights else weight]
        count = len(images) - len(images) % self.devices
        if not count:
            raise ValueError(
                f"A batch must have an image for each of {self.devices} devices. "
                f"Received: {len(images)}"
            )
        random = generator((self.seed, epoch), step + 1)
        drawn = draw(random, (count, *images.shape[1:]), self.augmentation)
        parts = (own_part(part[:count]) for part in (images, targets, *weights))
        images, *others = parts
        drawn = Draws(*map(own_part, drawn))
        return augmented(images, drawn, self.augmentation), *others


def own_part(array: np.ndarray) -> np.ndarray:
    """Of several processes, this one's part of what they share."""
    part = len(array) // _processes.count()
    return array[_processes.number() * part :][:part]
