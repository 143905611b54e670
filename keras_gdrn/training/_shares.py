"""Batches for several devices."""

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from . import _processes

if TYPE_CHECKING:
    import tensorflow as tf


class SharedBatches:
    """Batches of which each of `replicas` devices gets an equal share.

    A last one that cannot be divided is whole on each device. So its mean loss, its
    gradient and its batch statistics are those of one device, which they would not be
    after filling it up; but Keras counts its images once for each device, which `mean`
    corrects.

    Args:
        batches: of (images, labels), of one size but for the last one.
        replicas: number of devices, of all processes.

    Raises:
        ValueError: if the size of the batches is no multiple of `replicas`.

    Attributes:
        data: `tf.data.Dataset` of the part of this process in each batch.
        steps: number of batches.
    """

    def __init__(self, batches: "tf.data.Dataset", replicas: int):
        import tensorflow as tf

        self.replicas = replicas
        self.steps = int(batches.cardinality())
        self.sizes: set[int] = set()
        self.data = batches.map(self._shared, num_parallel_calls=tf.data.AUTOTUNE)
        self.data = self.data.prefetch(tf.data.AUTOTUNE)

    def mean(self, before: float, after: float) -> float:
        """The mean over all images, each counted once.

        Args:
            before: Keras' mean over all batches but the last one.
            after: Keras' mean over all batches.
        """
        full, last = max(self.sizes), min(self.sizes)
        copies = self.replicas if last % self.replicas else 1
        others = (self.steps - 1) * full
        weight = others * (1 - 1 / copies) / (others + last)
        return weight * before + (1 - weight) * after

    def _shared(self, images: "tf.Tensor", labels: "tf.Tensor") -> tuple:
        import tensorflow as tf

        size = tf.numpy_function(self._noted, [tf.shape(labels)[0]], "int32")
        copies = tf.where(size % self.replicas > 0, self.replicas, 1)
        part = size * copies // _processes.count()
        start = part * _processes.number()

        def own(batch: "tf.Tensor") -> "tf.Tensor":
            multiples = tf.stack([copies] + [1] * (len(batch.shape) - 1))
            return tf.tile(batch, multiples)[start : start + part]

        return own(images), own(labels)

    def _noted(self, size: np.ndarray) -> np.ndarray:
        self.sizes.add(int(size))
        return size


def check_divisible(what: str, size: int, replicas: int) -> None:
    """Raises an error unless batches of this size can be shared out."""
    if size % replicas:
        divisors = [n for n in range(1, replicas) if size % n == 0]
        raise ValueError(
            f"{what} must be a multiple of the number of devices; {size} images can be "
            f"shared out to {divisors} devices. Received: {size} on {replicas} devices"
        )


def withheld(
    batches: "tf.data.Dataset", blank: tuple, begun: Callable[[], bool]
) -> "tf.data.Dataset":
    """`batches` repeated; iterators made before training has begun get `blank` instead.

    Under a strategy, TensorFlow looks at one batch before it makes the iterator to
    train with. That would be an iteration over `batches`, which has its own order.
    """
    import tensorflow as tf

    blanks = tf.data.Dataset.from_tensors(blank)

    def chosen(training: "tf.Tensor") -> "tf.data.Dataset":
        # `take(0)` is nothing, `take(-1)` everything.
        return blanks.take(1 - training).concatenate(batches.take(-training))

    phases: tf.data.Dataset = tf.data.Dataset.from_generator(
        lambda: itertools.repeat(int(begun())),
        output_signature=tf.TensorSpec((), "int64"),
    )
    return phases.flat_map(chosen).prefetch(tf.data.AUTOTUNE)
