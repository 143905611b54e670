"""Batches of arrays where TensorFlow is not installed."""

import copy
import math
from collections.abc import Callable

import keras
import numpy as np

from keras_gdrn.data._array_batches import checked_count
from keras_gdrn.data._random import epoch_generator


class NumPyBatches(keras.utils.PyDataset):
    """Batches of an epoch, in the order in which `array_batches` has them.

    Keras makes the batches one by one. (With several workers it would look at some
    before the first epoch, and train on these too.)

    Args:
        arrays: Images, labels and, if need be, weights.
        batch_size: Images in a batch; the last one may be smaller.
        prepare: Function of a batch, and of the two integers of its seed, that returns
            what Keras is given.
        seed: Seed of the shuffling and of the batches; `None` for batches in order.
    """

    def __init__(
        self,
        arrays: tuple[np.ndarray, ...],
        batch_size: int,
        prepare: Callable[[tuple, np.ndarray], tuple],
        seed: int | None,
    ):
        super().__init__()
        self.arrays, self.prepare, self.seed = arrays, prepare, seed
        self.batch_size = batch_size
        self.steps = self.batches = math.ceil(checked_count(*arrays) / batch_size)
        self.begin_epoch(0)

    def begin_epoch(self, epoch: int) -> None:
        """Makes the batches those of this epoch."""
        count = len(self.arrays[0])
        self.order = np.arange(count)
        self.seeds = np.zeros((self.batches, 2), "int64")
        if self.seed is not None:
            # The first order is that in which `training_batches` looks at `tf.data`.
            self.order = epoch_generator(self.seed, epoch + 1).permutation(count)
            self.seeds = batch_seeds(epoch_generator(self.seed, epoch), self.batches)

    def map(self, function: Callable[..., tuple]) -> "NumPyBatches":
        """What a function makes of the parts of each batch."""
        mapped, prepare = copy.copy(self), self.prepare
        mapped.prepare = lambda batch, seed: function(*prepare(batch, seed))
        return mapped

    def take(self, steps: int) -> "NumPyBatches":
        """The first so many batches of each epoch."""
        shorter = copy.copy(self)
        shorter.steps = steps
        return shorter

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, number: int) -> tuple:
        if number >= self.steps:
            raise IndexError(f"There are {self.steps} batches. Received: {number}")
        start = number * self.batch_size
        chosen = self.order[start : start + self.batch_size]
        batch = tuple(array[chosen] for array in self.arrays)
        return self.prepare(batch, self.seeds[number])


def batch_seeds(random: np.random.Generator, steps: int) -> np.ndarray:
    """Two integers for each batch of an epoch, by which it is augmented."""
    return random.integers(2**31, size=(steps, 2))
